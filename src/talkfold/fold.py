"""fold, first version."""

from __future__ import annotations

from collections.abc import Iterable

from .actions import SessionAction
from .model import EMPTY_SESSION, SessionState
from .reducer import session_reducer

__all__ = ("fold",)


def fold(actions: Iterable[SessionAction], state: SessionState = EMPTY_SESSION) -> SessionState:
    """The state after the actions, starting from ``state``."""
    for action in actions:
        state = session_reducer(state, action)
    return state
