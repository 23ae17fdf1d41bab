"""Where in a log something happened that one may want to go to: turns, runs, messages, calls and what became of them.

Which call a phase or an outcome means is what the fold says: the newest of its name, or of its id.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from ..actions import Finish, MessageStart, Part, Reset, Retry, RunError, Send, Stop, TextDelta
from ..calls import is_open
from ..log import LoggedAction
from ._watched import WatchedFold

__all__ = ("Mark", "MarkKind", "Marker", "Marks")

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


class Marks:
    """The marks of a whole log, in order: ``all``, and how to find one."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        self.all: tuple[Mark, ...] = tuple(marks)
        self._calls: dict[int, list[Mark]] | None = None

    def find(self, *kinds: MarkKind, id: str | None = None) -> tuple[Mark, ...]:  # noqa: A002
        """The marks of these kinds (of all kinds, when none is named), with that id if one is given."""
        return tuple(mark for mark in self.all if (not kinds or mark.kind in kinds) and (id is None or mark.id == id))

    def of_call(self, number: int) -> tuple[Mark, ...]:
        """What became of the call that the action with that number made: itself, its phases, its outcomes."""
        if self._calls is None:
            self._calls = {}
            for mark in self.all:
                if mark.call is not None:
                    self._calls.setdefault(mark.call, []).append(mark)
        return tuple(self._calls.get(number, ()))

    def after(self, number: int, *kinds: MarkKind) -> Mark | None:
        """The first mark after a number, of these kinds if any are named."""
        for index in range(bisect_right(self.all, number, key=_number), len(self.all)):
            if not kinds or self.all[index].kind in kinds:
                return self.all[index]
        return None

    def before(self, number: int, *kinds: MarkKind) -> Mark | None:
        """The last mark before a number, of these kinds if any are named."""
        for index in range(bisect_left(self.all, number, key=_number) - 1, -1, -1):
            if not kinds or self.all[index].kind in kinds:
                return self.all[index]
        return None


def _number(mark: Mark) -> int:
    return mark.number


class Marker:
    """Finds the marks of a log, row by row from the first: ``marks`` are those of the rows so far, in order."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.turn: int = 0
        self._fold = WatchedFold(keep_text=False)
        self._runs: set[str] = set()
        self._text: tuple[str, str | None, str | None] | None = None  # message, within and run of the delta before

    def feed(self, row: LoggedAction) -> None:
        """Take the next row."""
        number, action, fold = row.number, row.action, self._fold
        # Most of a log is text: as long as it goes on for one message of one run, there is nothing to mark.
        text = None
        if type(action) is Part and type(part := action.part) is TextDelta:
            text = part.message_id, action.within, row.run
            if text == self._text:
                return
        self._text = text
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
