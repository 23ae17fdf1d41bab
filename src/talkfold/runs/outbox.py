"""What a run hands to its caller: a short row of actions between two tasks, the faster of which waits."""

from __future__ import annotations

from collections import deque

import anyio

from ..actions import SessionAction
from .weight import weight

__all__ = ("Outbox",)

_MOST = 1_024
_MOST_TEXT = 1 << 20
"""How much may wait for the reader, in actions and in characters, before whoever hands it out is held back."""

_FEW = 4
"""So few, however large, hold nobody back."""


class Outbox:
    """A bounded row. It fills up for a caller who has not begun to read, and is emptied for one who never will."""

    def __init__(self) -> None:
        self._row: deque[tuple[SessionAction, int]] = deque()
        self._weight = 0
        self._wanted = True
        self._hurried = False
        self._ended = False
        self._changed = anyio.Event()
        self._reading = False

    def put(self, action: SessionAction) -> None:
        """Hand an action out, if anybody wants it."""
        if self._wanted:
            heavy = weight(action)
            self._weight += heavy
            self._row.append((action, heavy))
            if self._reading:
                self._change()

    @property
    def crowded(self) -> bool:
        """Whether the reader is behind: whoever puts next awaits ``room`` first."""
        return self._full and not self._hurried

    @property
    def _full(self) -> bool:
        heavy = self._weight >= _MOST_TEXT and len(self._row) >= _FEW
        return heavy or len(self._row) >= _MOST

    def hurry(self) -> None:
        """The run must end: what is still put does not wait for the reader."""
        self._hurried = True
        self._change()

    async def room(self) -> None:
        """Wait until the reader has caught up."""
        while self.crowded:
            await self._changed.wait()

    def unwanted(self) -> None:
        """Nobody will read any more."""
        self._wanted = False
        self._row.clear()
        self._weight = 0
        self._change()

    def end(self) -> None:
        """Nothing more comes."""
        self._ended = True
        self._change()

    async def take(self) -> SessionAction | None:
        """The next action, in order; ``None`` after the last."""
        while not self._row:
            if self._ended:
                return None
            self._reading = True
            try:
                await self._changed.wait()
            finally:
                self._reading = False
        full = self._full
        action, heavy = self._row.popleft()
        self._weight -= heavy
        if full:
            self._change()
        return action

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
