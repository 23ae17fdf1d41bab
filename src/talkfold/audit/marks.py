"""Where in a log something happened that one may want to go to: turns, runs, messages, calls and what became of them.

Which call a phase or an outcome means is what the fold says: the newest of its name, or of its id.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ..actions import Finish, MessageStart, Part, Reset, Retry, RunError, Send, Stop
from ..calls import is_open
from ..log import LoggedAction
from ._watched import WatchedFold

__all__ = ("Mark", "MarkKind", "Marker")

MarkKind: TypeAlias = Literal[
    "run", "send", "retry", "stop", "reset", "message", "call", "phase", "outcome", "finish", "error"
]
"""``run``: the first action of a run. ``call``, ``phase``, ``outcome``: a call was made, waits or goes on, has ended;
one action that ends several calls has a mark for each. ``finish``, ``error``: the session's own, not a nested run's."""


class Mark(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One such place.

    ``number`` is the action's. ``turn`` counts the sends and retries so far, this one included. ``id`` is that of the
    message, the call or the run. ``call`` is, for everything about a call, the number of the action that made it;
    ``state`` is what it is in from here on. For ``finish``, ``state`` is the reason. ``within`` is the delegate call
    whose nested run it happened in.
    """

    number: int
    kind: MarkKind
    turn: int
    id: str | None = None
    name: str | None = None
    state: str | None = None
    call: int | None = None
    within: str | None = None


class Marker:
    """Finds the marks of a log, row by row from the first: ``marks`` are those of the rows so far, in order."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.turn: int = 0
        self._fold = WatchedFold(keep_text=False)
        self._runs: set[str] = set()

    def feed(self, row: LoggedAction) -> None:
        """Take the next row."""
        number, action, fold = row.number, row.action, self._fold
        kind = type(action)
        if kind is Send or kind is Retry:
            self.turn += 1
        if row.run is not None and row.run not in self._runs:
            self._runs.add(row.run)
            self.marks.append(Mark(number, "run", self.turn, row.run))
        fold.step(number, action)
        if isinstance(action, Part):
            self._part(number, action)
        elif isinstance(action, Send):
            self.marks.append(Mark(number, "send", self.turn, action.id))
        elif kind in _KINDS:
            self.marks.append(Mark(number, _KINDS[kind], self.turn))
        for note in fold.changed:
            call = note.call
            if call is not None:
                happened: MarkKind = "call" if note.born == number else "phase" if is_open(call) else "outcome"
                owner = note.message.row.owner
                within = owner.call.id if owner is not None and owner.call is not None else None
                self.marks.append(Mark(number, happened, self.turn, call.id, call.name, call.state, note.born, within))

    def _part(self, number: int, action: Part) -> None:
        part = action.part
        if isinstance(part, MessageStart):
            if self._fold.level is not None:
                self.marks.append(Mark(number, "message", self.turn, part.message_id, within=action.within))
        elif action.within is None and isinstance(part, Finish):
            self.marks.append(Mark(number, "finish", self.turn, state=part.reason))
        elif action.within is None and isinstance(part, RunError):
            self.marks.append(Mark(number, "error", self.turn))


_KINDS: dict[type, MarkKind] = {Retry: "retry", Stop: "stop", Reset: "reset"}
