"""What an erasure leaves in the file, and taking it away: plain functions over the writing connection.

``secure_delete`` overwrites the deleted rows themselves, but not the copies of them that SQLite left in the unused
middle of a page when it moved rows between pages. Only rewriting the file is sure: about 25 ms a MB.

An erasure commits first and scrubs after that, and its process may die in between. So the erasing transaction marks
the tombstone, in ``head.status``, which means nothing there otherwise and has an index; the scrub takes the mark away.
Whoever opens the file next sees what is left to do.
"""

from __future__ import annotations

import sqlite3

from .search_rows import merge

__all__ = ("ERASED", "finish", "left_unfinished", "unfinished")

ERASED = "erased"
"""The mark of a tombstone whose content may still stand somewhere in the file or its WAL."""

_REWRITTEN = "rewritten"
"""The mark of one whose content is out of the file; the WAL may still have it."""

_SCRUBBED = "idle"

_PATIENCE = 250
"""How many milliseconds to wait for readers: nobody writes meanwhile, and our own readers need less."""


def unfinished(connection: sqlite3.Connection) -> int:
    """Of how many erased sessions something may be left in the file or its WAL."""
    return int(
        connection.execute("SELECT count(*) FROM head WHERE status IN (?, ?)", (ERASED, _REWRITTEN)).fetchone()[0]
    )


def left_unfinished(connection: sqlite3.Connection) -> bool:
    """Whether there is something to finish, as far as a damaged file says: one opens all the same."""
    try:
        return unfinished(connection) > 0
    except sqlite3.DatabaseError:
        return False


def finish(connection: sqlite3.Connection) -> bool:
    """Leave no byte of what was erased. False when a reader keeps old pages in the WAL. Call inside the file lock."""
    if _marked(connection, ERASED):
        _rewrite(connection)
        _mark(connection, ERASED, _REWRITTEN)
    if _marked(connection, _REWRITTEN):
        if not _empty_wal(connection):
            return False
        _mark(connection, _REWRITTEN, _SCRUBBED)
    return True


def _marked(connection: sqlite3.Connection, mark: str) -> bool:
    return connection.execute("SELECT 1 FROM head WHERE status = ? LIMIT 1", (mark,)).fetchone() is not None


def _mark(connection: sqlite3.Connection, old: str, new: str) -> None:
    connection.execute("UPDATE head SET status = ? WHERE status = ?", (new, old))


def _rewrite(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA temp_store = FILE")  # the copy may be larger than memory
    try:
        merge(connection)
        connection.execute("VACUUM")
    except sqlite3.Error:
        _empty_wal(connection)  # where the disk is full, this makes room
        raise
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


def _empty_wal(connection: sqlite3.Connection) -> bool:
    """Move the WAL into the file and cut it to nothing; False when a reader needs what is in it."""
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {min(patience, _PATIENCE)}")
    try:
        return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
