"""The clock of a store under test: the real one, until a test stops it."""

from __future__ import annotations

import time

__all__ = ("Clock",)


class Clock:
    """Gives milliseconds since 1970. Once stopped, only ``forward`` moves it, so a test can stand at an exact end."""

    def __init__(self) -> None:
        self._stopped: int | None = None

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 if self._stopped is None else self._stopped

    def stop(self) -> int:
        """Stand still now; gives the time."""
        self._stopped = self()
        return self._stopped

    def forward(self, milliseconds: int) -> int:
        """Stand still that much later; gives the new time."""
        self._stopped = self() + milliseconds
        return self._stopped
