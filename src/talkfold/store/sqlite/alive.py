"""Whether a process still lives, as the kernel knows it: each open store keeps one byte of a file locked.

A lease notes the byte's offset, and whoever wonders tries the lock. A process id would not do: it is used again, and
means another process in another PID namespace (a container's). The lock is of the open file (an OFD lock), so the
kernel frees it when its last descriptor is closed: on a clean end, a crash and SIGKILL alike, at that moment and in
every namespace. A frozen process keeps it; that is what a lease's end is for.

The file is the one that writers queue on with ``flock``; the two kinds of lock do not know of each other. Offsets are
random and far beyond the file's end: a byte need not be there to be locked, and two stores never draw the same one.

Linux only. Elsewhere, and on a file system without such locks, there is no byte: only the lease's end counts.
"""

from __future__ import annotations

import os
import secrets
import struct
import sys

from .filelock import close_lock_file, open_lock_file

if sys.platform == "linux":
    import fcntl

__all__ = ("AliveByte",)

_FLOCK = struct.Struct("hhqqi0q")
"""``struct flock``: type, whence, start, length, process (0 for locks of an open file)."""


class AliveByte:
    """The byte that says that this store is open. ``offset`` is ``None`` where no byte can be locked.

    ``shared``: the file is on a network file system. There a ``flock`` locks every byte, so nobody takes one.
    """

    def __init__(self, path: str, *, shared: bool = False) -> None:
        self.offset: int | None = None
        self._descriptor: int | None = None
        if sys.platform == "linux" and not shared:
            self._descriptor = open_lock_file(path)
            self.offset = _lock_any(self._descriptor)
            if self.offset is not None and not _seen_by_others(path, self.offset):
                self.offset = None

    def lives(self, offset: int | None) -> bool:
        """Whether the store that keeps this byte is still open; true where nobody can tell. Any thread may ask."""
        if offset is None or offset == self.offset or self._descriptor is None or self.offset is None:
            return True
        return _is_locked(self._descriptor, offset)

    def close(self) -> None:
        """Free the byte: from now on every lease of this store is dead."""
        if self._descriptor is not None:
            close_lock_file(self._descriptor)
            self._descriptor = None


def _lock_any(descriptor: int) -> int | None:
    """Lock a random byte; ``None`` where the file system has no such locks."""
    if sys.platform != "linux":
        return None
    offset = secrets.randbits(62)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0))
    except OSError:
        return None
    return offset


def _seen_by_others(path: str, offset: int) -> bool:
    other = open_lock_file(path)
    try:
        return _is_locked(other, offset)
    finally:
        close_lock_file(other)


def _is_locked(descriptor: int, offset: int) -> bool:
    """Whether another open file has this byte locked. When the kernel does not say, it may be."""
    if sys.platform != "linux":
        return True
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
    try:
        kind: int = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))[0]
    except OSError:
        return True
    return kind != fcntl.F_UNLCK
