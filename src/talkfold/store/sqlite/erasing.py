"""Removing sessions: one function each, run inside a write transaction.

As with the other operations, everything is checked before anything is written. Copies of what is deleted stay in the
file until the writer scrubs it.
"""

from __future__ import annotations

from ..protocol import Tombstone
from .transaction import Transaction

__all__ = ("erase", "erase_session")

_CONTENT = ("action", "snapshot", "append_key", "lease")
"""The tables whose rows are content, each with a column ``session``."""


def erase(tx: Transaction, session_id: str, owner: str | None, by: str | None) -> tuple[int, Tombstone]:
    """Remove a session's content; gives its key and what is left of it."""
    head = tx.head(session_id, owner)
    tx.flush()
    return head.key, erase_session(tx, head.key, by)


def erase_session(tx: Transaction, key: int, by: str | None) -> Tombstone:
    """Remove everything of the session with this key but its tombstone. What the transaction logged is flushed."""
    connection = tx.connection
    connection.execute(
        "UPDATE session SET title = NULL, metadata = NULL, forked_from = NULL, forked_at = NULL,"
        " erased = ?, erased_by = ? WHERE key = ?",
        (tx.now, by, key),
    )
    for table in _CONTENT:
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (key,))
    connection.execute(
        "UPDATE head SET hash = x'', status = 'idle', turns = 0, size = 0, updated = ? WHERE session = ?",
        (tx.now, key),
    )
    session_id, owner, number = connection.execute(
        "SELECT id, owner, number FROM session JOIN head ON head.session = key WHERE key = ?", (key,)
    ).fetchone()
    tx.forget(key)
    return Tombstone(session_id, tx.now, number, owner, by)
