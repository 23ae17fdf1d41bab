"""Who writes: the runs of a log, each from its first action to its last, and what they noted in ``meta``."""

from __future__ import annotations

from typing import Literal, cast

from ...json_values import fits_unicode, is_list, is_object
from ...log import LoggedAction
from ...model import Json
from ._conversation import Standing
from ._telling import Telling
from .codes import AGENT_FAULTS

__all__ = ("Drivers", "noted")

_CAUSES = {"cancelled": "run-cancelled", "raised": "run-raised", "store": "run-store-failed"}
_LONGEST = 500


def noted(row: LoggedAction, key: str) -> Json:
    """What ``meta`` says under a key, if it says something."""
    return None if row.meta is None else row.meta.get(key)


def _said(value: object, otherwise: str) -> str:
    """A text out of ``meta`` as it may stand in a sentence."""
    return str(fits_unicode(value[:_LONGEST])) if isinstance(value, str) else otherwise


class Drivers:
    """The runs of a log. ``current`` is the run whose turn it is."""

    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._over: dict[str, Literal["ended", "settled"]] = {}
        self.current: str | None = None

    def begin(self, row: LoggedAction) -> None:
        """A turn begins with this row. Told: a run that is over begins once more."""
        self._is_over(row, row.run)
        self.current = row.run

    def is_foreign(self, row: LoggedAction, standing: Standing) -> bool:
        """Whether a row inside a turn is of another run than the turn; told."""
        run = row.run
        if run is None:
            return False
        if run == self.current:
            return self._over.get(run) == "settled" and self._is_over(row, run)
        if self._is_over(row, run):
            return True
        if self.current is None:
            self.current = run
            return False
        if standing in ("running", "stopped"):
            current = repr(self.current)
            self._telling.tell("runs-interleaved", (row.number,), once=run, run=run, current=current)
            return True
        return False

    def _is_over(self, row: LoggedAction, run: str | None) -> bool:
        how = None if run is None else self._over.get(run)
        if how is not None:
            code = "fenced-run-wrote" if how == "settled" else "run-after-end"
            self._telling.tell(code, (row.number,), once=run, run=run)
        return how is not None

    def settle(self, row: LoggedAction) -> None:
        """A stop by talkfold itself: the run's process is gone."""
        run, cause = row.run, noted(row, "cause")
        if run is not None and self._over.get(run) == "settled":
            self._telling.tell("settled-again", (row.number,), run=run)
            return
        told = _said(cause, "no cause is noted")
        self._telling.tell("run-settled", (row.number,), run=run, cause=told)
        if run is not None:
            self._over[run] = "settled"

    def end(self, row: LoggedAction) -> None:
        """The turn's run is over, by its own word."""
        run = self.current
        if run is not None:
            self._over.setdefault(run, "ended")
        if row.meta:
            self._notes(row, row.meta)

    def forget(self) -> None:
        """The session was reset: whatever ran in it is over."""
        if self.current is not None:
            self._over.setdefault(self.current, "ended")
        self.current = None

    def _notes(self, row: LoggedAction, meta: dict[str, Json]) -> None:
        tell, at = self._telling.tell, (row.number,)
        cause = meta.get("cause")
        if isinstance(cause, str) and cause in _CAUSES:
            tell(_CAUSES[cause], at)
        faults = meta.get("faults")
        for fault in faults if is_list(faults) else ():
            if is_object(fault):
                code, count = cast("object", fault.get("code")), cast("object", fault.get("count"))
                known = code if isinstance(code, str) and code in AGENT_FAULTS else "agent-fault"
                times = f"{count} times" if type(count) is int and count != 1 else "once"
                told = _said(fault.get("text"), _said(code, "it is not said how"))
                tell(known, at, times=times, told=told)
        dropped = meta.get("dropped")
        if type(dropped) is int and dropped > 0:
            tell("parts-dropped", at, count=dropped)
