"""A position in a log, with some states around it: what makes a step back as cheap as one forward."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import TypeAlias

from ..actions import SessionAction
from ..fold import fold
from ..model import EMPTY_SESSION, SessionState
from ..reducer import session_reducer

__all__ = ("NEAR", "Actions", "Known", "Trail", "nearest")

Known: TypeAlias = "tuple[int, SessionState]"
"""A number, and the state after it."""

Actions: TypeAlias = Callable[[int, int], Iterable[SessionAction]]
"""``(after, through)`` in, those actions out."""

NEAR = 16
"""Who steps back gets so many actions applied one by one, and each state in between is kept."""

_MOST = 64
"""The most states that are kept around the position."""


class Trail:
    """Begins at 0, before all actions. ``number`` is the position: how many actions have been applied."""

    def __init__(self) -> None:
        self.number: int = 0
        self.state: SessionState = EMPTY_SESSION
        self._known: list[Known] = []

    def nearest(self, number: int) -> Known | None:
        """The last state of the trail at that number or before."""
        return nearest(self._known, number)

    def walk(self, known: Known, number: int, actions: Actions) -> SessionState:
        """Go to a number from a state at that number or before, and leave states behind; the state there."""
        at, state = known
        # Halfway states are left behind, so that going back finds one at about any distance.
        while number - at > NEAR:
            middle = at + (number - at + 1) // 2
            state = fold(actions(at, middle), state)
            at = middle
            self.arrive(at, state)
        for action in actions(at, number):
            state = session_reducer(state, action)
            at += 1
            self.arrive(at, state)
        self.arrive(number, state)
        return state

    def arrive(self, number: int, state: SessionState) -> None:
        """Make that the position, and the end of the trail."""
        self.number, self.state = number, state
        known = self._known
        while known and known[-1][0] >= number:
            known.pop()
        known.append((number, state))
        if len(known) > _MOST:
            kept: list[Known] = []
            distance = 0
            for entry in reversed(known):
                away = number - entry[0]
                if away < NEAR or away >= 2 * distance:
                    kept.append(entry)
                    distance = away
            self._known = kept[::-1]


def nearest(known: list[Known], number: int) -> Known | None:
    """The last of these states, which are in order, at that number or before."""
    index = bisect_right(known, number, key=_number)
    return known[index - 1] if index else None


def _number(known: Known) -> int:
    return known[0]
