"""Where a database file lies: on a local disk, or on a network file system that SQLite must not trust."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...errors import NetworkFileSystem

__all__ = ("network_file_system", "refuse_network")

_NETWORK = frozenset(
    "9p afs ceph cifs fuse.glusterfs fuse.sshfs gfs2 glusterfs lustre ncpfs nfs nfs4 ocfs2 smb3 smbfs".split()
)
_MOUNTS = Path("/proc/self/mountinfo")


def network_file_system(path: str, mounts: Path = _MOUNTS) -> str | None:
    """The kind of network file system that ``path`` lies on; ``None`` for a local one, or where nobody can tell.

    Linux says it in mountinfo: the mount point that is the longest prefix of the path decides.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        if len(point) >= len(best) and (real == point or real.startswith(point.rstrip("/") + "/")):
            best, kind = point, after.split(" ")[0]
    return kind if kind in _NETWORK else None


def refuse_network(path: str) -> None:
    """Raise NetworkFileSystem when the database would lie on one."""
    kind = network_file_system(path)
    if kind is not None:
        raise NetworkFileSystem(path, kind)
