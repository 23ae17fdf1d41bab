"""Removing sessions: one function each, run inside a write transaction.

As with the other operations, everything is checked before anything is written. Copies of what is deleted stay in the
file until the writer scrubs it, as the mark in the tombstone says.
"""

from __future__ import annotations

from ..protocol import Tombstone
from .scrubbing import ERASED
from .search_rows import forget_session
from .transaction import Transaction, find_session

__all__ = ("erase", "erase_owner", "erase_session")

_CONTENT = ("action", "snapshot", "append_key", "lease")
"""The tables whose rows are content, each with a column ``session``."""


def erase(tx: Transaction, session_id: str, owner: str | None, by: str | None) -> tuple[int, Tombstone]:
    """Remove a session's content; gives its key and what is left of it."""
    key = find_session(tx.connection, session_id, owner)
    return key, erase_session(tx, key, by)


def erase_owner(tx: Transaction, owner: str, by: str | None) -> dict[int, Tombstone]:
    """Remove the content of all of an owner's sessions; gives their keys, oldest first, and what is left of them."""
    keys = tx.connection.execute(
        "SELECT key FROM session WHERE owner = ? AND erased IS NULL ORDER BY key", (owner,)
    ).fetchall()
    return {key: erase_session(tx, key, by) for (key,) in keys}


def erase_session(tx: Transaction, key: int, by: str | None) -> Tombstone:
    """Remove everything of the session with this key but its tombstone, also where its rows are damaged."""
    tx.flush()
    connection = tx.connection
    session_id, owner, number = connection.execute(
        "SELECT id, owner, coalesce(head.number, (SELECT max(number) FROM action WHERE session = key), 0)"
        " FROM session LEFT JOIN head ON head.session = key WHERE key = ?",
        (key,),
    ).fetchone()
    connection.execute(
        "UPDATE session SET title = NULL, metadata = NULL, forked_from = NULL, forked_at = NULL,"
        " erased = ?, erased_by = ? WHERE key = ?",
        (tx.now, by, key),
    )
    for table in _CONTENT:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (key,))
    connection.execute(
        "INSERT OR REPLACE INTO head (session, number, hash, status, turns, size, updated)"
        " VALUES (?, ?, x'', ?, 0, 0, ?)",
        (key, number, ERASED, tx.now),
    )
    forget_session(tx, key)
    tx.forget(key)
    return Tombstone(session_id, tx.now, number, owner, by)
