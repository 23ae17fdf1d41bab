"""The abort signal: how a run, an adapter and a tool hear that the person pressed Stop.

As on the web, the right to abort and the right to listen are two objects: whoever starts something keeps the
``AbortController``, everyone else gets its ``signal``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

import anyio

from .threads import to_loop

__all__ = ("AbortController", "AbortSignal")

_log = logging.getLogger(__name__)


class AbortSignal:
    """Listens: whether and why something was aborted. Safe to use from every task and thread.

    It changes once, from not aborted to aborted, and never back.
    """

    __slots__ = ("_listeners", "_lock", "_reason")

    def __init__(self) -> None:
        self._lock = Lock()
        self._reason: str | None = None
        self._listeners: dict[object, Callable[[], object]] = {}

    def __repr__(self) -> str:
        return f"<AbortSignal {'not aborted' if self._reason is None else self._reason!r}>"

    @property
    def aborted(self) -> bool:
        """Whether it was aborted."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why it was aborted; ``None`` as long as it was not."""
        return self._reason

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call ``listener`` once when it is aborted, or now if it was; returns the function that unsubscribes.

        The listener runs in the thread that aborts. What it raises is logged and stops nothing.
        """
        key = object()
        with self._lock:
            if self._reason is None:
                self._listeners[key] = listener

                def unsubscribe() -> None:
                    self._listeners.pop(key, None)

                return unsubscribe
        _tell(listener)
        return _nothing

    async def wait(self) -> str:
        """Wait until it is aborted, on any anyio backend; returns the reason."""
        aborted = anyio.Event()
        unsubscribe = self.subscribe(to_loop(aborted.set))
        try:
            await aborted.wait()
        finally:
            unsubscribe()
        return self._reason or ""

    def _abort(self, reason: str) -> bool:
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
            listeners = list(self._listeners.values())
            self._listeners.clear()
        for listener in listeners:
            _tell(listener)
        return True


class AbortController:
    """Aborts: the owner's end of a signal."""

    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal: AbortSignal = AbortSignal()

    def abort(self, reason: str = "aborted") -> bool:
        """Abort, from any task or thread, without waiting and without ever raising.

        True when this call did it; False when it had been aborted before, whose reason then stays.
        """
        return self.signal._abort(reason)  # pyright: ignore[reportPrivateUsage]


def _tell(listener: Callable[[], object]) -> None:
    try:
        listener()
    except BaseException:  # nothing that one listener does may keep the others from hearing it
        _log.exception("a listener of an abort signal raised")


def _nothing() -> None:
    pass
