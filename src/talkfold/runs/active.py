"""Which adapters are in a run of this process: an adapter that runs must not change its model."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .adapter import AgentAdapter

__all__ = ("is_running", "running_adapter")

_lock = Lock()
_running: dict[int, list[AgentAdapter]] = {}  # by identity: an adapter need not be hashable


@contextmanager
def running_adapter(adapter: AgentAdapter) -> Generator[None]:
    """The adapter runs as long as this context lasts; it may run several times at once."""
    with _lock:
        _running.setdefault(id(adapter), []).append(adapter)
    try:
        yield
    finally:
        with _lock:
            rows = _running[id(adapter)]
            rows.pop()
            if not rows:
                del _running[id(adapter)]


def is_running(adapter: AgentAdapter) -> bool:
    """Whether a run of this adapter goes on in this process."""
    return id(adapter) in _running
