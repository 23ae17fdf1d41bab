"""A lock between processes, first come, first served.

SQLite makes waiting writers poll, and a busy writer wins almost every time: of eight, most starve. The kernel's
``flock`` keeps a queue, so every writer takes this lock before it begins a transaction. It is held for one
transaction only and the kernel frees it when a process dies.
"""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType

from ...errors import StoreBusy, StoreUnavailable

if sys.platform != "win32":
    import fcntl

__all__ = ("FileLock", "close_lock_file", "open_lock_file")

_descriptors: set[int] = set()


def open_lock_file(path: str) -> int:
    """A descriptor of its own for the lock file, which is made when missing. No forked child keeps it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    _descriptors.add(descriptor)
    return descriptor


def close_lock_file(descriptor: int) -> None:
    """Close it, which frees what it holds."""
    _descriptors.discard(descriptor)
    os.close(descriptor)


def _close_inherited() -> None:
    # The lock belongs to the open file, which a forked child shares: it would keep it when its parent dies.
    while _descriptors:
        os.close(_descriptors.pop())


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_close_inherited)


class _Request:
    """Somebody waits for the lock; whoever comes second (the lock or the time-out) sees what the first did."""

    def __init__(self) -> None:
        self.settled = threading.Lock()
        self.done = threading.Event()
        self.abandoned = False
        self.error: OSError | None = None


class FileLock:
    """A lock on the file ``path`` (made when missing, never removed). Not reentrant; one thread uses it.

    ``with lock:`` waits up to ``timeout`` seconds and raises StoreBusy after that, StoreUnavailable
    when the file cannot be opened any more.
    """

    def __init__(self, path: str, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self._descriptor = open_lock_file(path)

    def __enter__(self) -> None:
        # Windows has no such queue: there SQLite's own locking, which polls, is all.
        if sys.platform != "win32":
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._wait()

    def _wait(self) -> None:
        # flock has a queue but no time-out, so a thread waits in the queue and this one on the clock.
        request = _Request()
        threading.Thread(target=self._queue, args=(request,), daemon=True).start()
        if not request.done.wait(self.timeout):
            with request.settled:
                if not request.done.is_set():
                    request.abandoned = True
                    raise StoreBusy(self.timeout)
        if request.error is not None:
            raise StoreUnavailable(self.path, str(request.error))

    def _queue(self, request: _Request) -> None:
        # A descriptor of its own: flock belongs to the open file, and an abandoned wait must not hold ours.
        try:
            waiting = open_lock_file(self.path)
        except OSError as error:  # its folder was moved or removed
            request.error = error
            request.done.set()
            return
        if sys.platform != "win32":
            fcntl.flock(waiting, fcntl.LOCK_EX)
        with request.settled:
            if request.abandoned:
                close_lock_file(waiting)
                return
            close_lock_file(self._descriptor)
            self._descriptor = waiting
            request.done.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if sys.platform != "win32":
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        close_lock_file(self._descriptor)
