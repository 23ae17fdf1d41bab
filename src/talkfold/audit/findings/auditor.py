"""The reader of a log: one pass, row by row, whole or as it grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...actions import Part, TextDelta
from ...log import LoggedAction
from ._halves import carries_half, find_half
from ._telling import Telling
from ._turns import Turns
from .codes import Finding

__all__ = ("HUGE_BYTES", "Auditor", "findings")

HUGE_BYTES = 1 << 18
"""From how many bytes of JSON on a single action is told as huge."""

_MINUTE = 60_000
"""How far times may go back, in milliseconds, before it is told."""


def findings(rows: Iterable[LoggedAction], *, living: bool = False) -> Iterator[Finding]:
    """What a log shows, in one pass: each finding as soon as it is certain, what only the end can tell at the end.

    ``rows`` is the log from its start. ``living``: a run goes on in the session, so what is open may still end. Takes
    time linear in the log (times the depth of sub-agents where those abort), and memory for its ids and what is open,
    not for what was said. Never raises on logged actions.
    """
    auditor = Auditor()
    yield from auditor.read(rows)
    yield from auditor.pending(living=living)


class Auditor:
    """Reads a log from its start as it comes: what is told does not depend on how the rows are split."""

    def __init__(self) -> None:
        self._telling = Telling()
        self._turns = Turns(self._telling)
        self._number: int = 0
        self._time: int = 0  # the newest
        self._time_at: int = 0  # the action that it is of
        self._quiet = False  # whether more text for the same message, of the same run, can show nothing new
        self._message_id = ""
        self._within: str | None = None
        self._run: str | None = None

    def feed(self, rows: Iterable[LoggedAction]) -> list[Finding]:
        """What the next rows show for certain."""
        return [*self.read(rows)]

    def pending(self, *, living: bool = False) -> list[Finding]:
        """What would be told besides if the log ended here. Changes nothing: it may go on afterwards.

        ``living``: a run goes on in the session, so what is open may still end.
        """
        telling = Telling()
        self._turns.pending(telling, self._number, living)
        return telling.take()

    def read(self, rows: Iterable[LoggedAction]) -> Iterator[Finding]:
        """Like ``feed``, but each finding comes as soon as its row is read; rows are taken one at a time."""
        # Most of a log is text: as long as it goes on for one message and nothing was wrong, little is looked at.
        number, time, time_at = self._number, self._time, self._time_at
        quiet, message_id, within, run = self._quiet, self._message_id, self._within, self._run
        telling = self._telling
        try:
            for row in rows:
                if quiet:
                    action = row.action
                    if type(action) is Part and type(part := action.part) is TextDelta:
                        if (
                            part.message_id == message_id
                            and row.number == number + 1
                            and (moment := row.time) >= time
                            and (action.within is within or action.within == within)
                            and (row.run is run or row.run == run)
                            and ((delta := part.delta).isascii() or find_half(delta) is None)
                            and len(row.body) < HUGE_BYTES
                        ):
                            number += 1
                            if moment > time:
                                time, time_at = moment, number
                            continue
                self._number, self._time, self._time_at = number, time, time_at
                self._look(row)
                number, time, time_at = self._number, self._time, self._time_at
                quiet, message_id, within, run = self._quiet, self._message_id, self._within, self._run
                if telling.found:
                    yield from telling.take()
        finally:
            self._number, self._time, self._time_at = number, time, time_at

    def _look(self, row: LoggedAction) -> None:
        self._telling.run = row.run
        self._envelope(row)
        action = row.action
        text = action.part if type(action) is Part and type(action.part) is TextDelta else None
        # In JSON, half of a pair is an escape: few rows have one.
        if text is None and (b"\\ud" in row.body or b"\\uD" in row.body) and carries_half(action):
            self._telling.tell("lone-surrogate", (row.number,))
        self._quiet = self._turns.take(row)
        if self._quiet and text is not None and type(action) is Part:
            self._message_id, self._within, self._run = text.message_id, action.within, row.run

    def _envelope(self, row: LoggedAction) -> None:
        tell, number, last = self._telling.tell, row.number, self._number
        if number != last + 1:
            code = "number-gap" if number > last else "number-again"
            tell(code, (number, last) if last else (number,), last=last)
        self._number = number
        if row.time < self._time - _MINUTE:
            numbers, seconds = (number, self._time_at), (self._time - row.time) // 1000
            tell("time-back", numbers, last=self._time_at, seconds=seconds)
            self._time, self._time_at = row.time, number
        elif row.time > self._time:
            self._time, self._time_at = row.time, number
        if len(row.body) >= HUGE_BYTES:
            tell("huge-part", (number,), size=len(row.body))
