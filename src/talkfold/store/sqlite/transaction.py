"""One write transaction: who is in it, what it has logged so far, and where each session's log ends.

Operations (``operations.py``) run inside one, in the writer's thread. Rows are collected and inserted together;
the heads of the sessions stay in memory from one transaction to the next for as long as no other process has
written, which SQLite tells by ``data_version``.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple, get_args

from ...errors import AmbiguousSession, SessionErased, SessionNotFound, StoreDamaged
from ...log import chain_link
from ...model import SessionStatus
from ..entries import Batch, next_status
from .lease_rows import LEASE_COLUMNS, Moment, NotedLease, lease_from

__all__ = (
    "Head",
    "HeadCache",
    "SessionRow",
    "Transaction",
    "find_session",
)

_MOST_HEADS = 10_000

# sqlite3 looks for an adapter for every parameter that is bytes or None, which costs more than the insert itself;
# for str and bytearray it does not. So bodies go in as bytearray, and nothing as an empty text, which names never are.
_NOTHING = bytearray()
_INSERT_ACTION = (
    "INSERT INTO action (session, number, time, run, actor, meta, body, hash)"
    " VALUES (?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, x''), ?, nullif(?, x''))"
)
_MOVE_HEAD = "UPDATE head SET number = ?, hash = ?, size = ?, updated = ? WHERE session = ?"
_TURN_HEAD = "UPDATE head SET number = ?, hash = ?, size = ?, updated = ?, status = ?, turns = ? WHERE session = ?"


class SessionRow(NamedTuple):
    key: int
    owner: str | None
    erased: int | None
    erased_by: str | None


def find_session(connection: sqlite3.Connection, session_id: str, owner: str | None) -> int:
    """A session's key. Raises SessionNotFound, SessionErased, AmbiguousSession."""
    sql = "SELECT key, owner, erased, erased_by FROM session WHERE id = ?"
    found = (
        connection.execute(sql, (session_id,))
        if owner is None
        else connection.execute(f"{sql} AND ifnull(owner, '') = ?", (session_id, owner))
    ).fetchall()
    if not found:
        raise SessionNotFound(session_id)
    if len(found) > 1:
        living = [row for row in found if row[2] is None]
        # Nobody's session comes first: no owner who takes the same id can put it out of reach.
        found = [row for row in living if row[1] is None] or living or found[:1]
        if len(found) > 1:
            raise AmbiguousSession(session_id, [row[1] for row in found])
    row = SessionRow(*found[0])
    if row.erased is not None:
        raise SessionErased(session_id, row.erased, row.erased_by)
    return row.key


class Head:
    """Where a session's log ends, and who runs the session. ``turned``: its status changed in this transaction."""

    __slots__ = ("hash", "key", "lease", "number", "size", "status", "turned", "turns", "updated")

    def __init__(
        self,
        key: int,
        number: int,
        link: bytes,
        status: SessionStatus,
        turns: int,
        size: int,
        updated: int,
        lease: NotedLease | None,
    ) -> None:
        self.key: int = key
        self.number: int = number
        self.hash: bytes = link
        self.status: SessionStatus = status
        self.turns: int = turns
        self.size: int = size
        self.updated: int = updated
        self.lease: NotedLease | None = lease
        self.turned: bool = False


class HeadCache:
    """Heads by what callers name them: owner and id. True for as long as only this connection writes."""

    def __init__(self) -> None:
        self.heads: dict[tuple[str | None, str], Head] = {}
        self.by_key: dict[int, Head] = {}
        self._version = -1

    def clear(self) -> None:
        self.heads.clear()
        self.by_key.clear()

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Forget everything if another connection has written. Call inside the transaction."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version or len(self.heads) > _MOST_HEADS:
            self.clear()
            self._version = version


class Transaction:
    """An open write transaction, at one moment: everything in it has the same time."""

    def __init__(self, connection: sqlite3.Connection, cache: HeadCache, moment: Moment) -> None:
        self.connection = connection
        self.moment = moment
        self.now: int = moment.now
        self.moved: dict[int, Head] = {}
        self._unwritten: dict[int, Head] = {}  # of those that moved, the ones whose row is behind
        self._cache = cache
        self._rows: list[tuple[object, ...]] = []

    def head(self, session_id: str, owner: str | None) -> Head:
        """Where a session's log ends. Raises SessionNotFound, SessionErased, AmbiguousSession."""
        head = self._cache.heads.get((owner, session_id))
        if head is None:
            head = self.head_of(find_session(self.connection, session_id, owner))
            self._cache.heads[owner, session_id] = head
        return head

    def head_of(self, key: int) -> Head:
        """Where the log of the session with this key ends. Raises StoreDamaged when that is not noted anywhere."""
        head = self._cache.by_key.get(key)
        if head is None:
            row = self.connection.execute(
                "SELECT h.session, h.number, h.hash, h.status, h.turns, h.size, h.updated,"
                f" {LEASE_COLUMNS} FROM head h LEFT JOIN lease l ON l.session = h.session WHERE h.session = ?",
                (key,),
            ).fetchone()
            if row is None:
                raise StoreDamaged(f"nothing says where the log of session {key} ends")
            if row[3] not in get_args(SessionStatus):
                raise StoreDamaged(f"session {key} is listed with the status {row[3]!r}, which does not exist")
            _, number, link, status, turns, size, updated, *lease = row
            head = Head(key, number, link, status, turns, size, updated, lease_from(tuple(lease)))
            self._cache.by_key[key] = head
        return head

    def added(self, session_id: str) -> None:
        """There is a session of this id more: without an owner, the id may now mean several."""
        self._cache.heads.pop((None, session_id), None)

    def log(self, head: Head, batch: Batch) -> tuple[int, int]:
        """Put a batch at the end of a session's log; gives its first and last number."""
        key, number, link, now = head.key, head.number, head.hash, self.now
        first = number + 1
        rows = self._rows
        for time, run, actor, meta, body in batch.rows:
            number += 1
            if time is None:
                time = now
            link = chain_link(link, number, time, run, actor, meta, body)
            rows.append(
                (
                    key,
                    number,
                    time,
                    run or "",
                    actor or "",
                    _NOTHING if meta is None else bytearray(meta),
                    bytearray(body),
                    _NOTHING,
                )
            )
        if batch.rows:
            rows[-1] = (*rows[-1][:-1], bytearray(link))  # the end of an append carries the chain
        head.number = number
        head.hash = link
        head.size += batch.size
        head.updated = now
        for action in batch.turning:
            head.status, head.turns = next_status(head.status, head.turns, action)
            head.turned = True
        self.moved[key] = self._unwritten[key] = head
        return first, number

    def written(self) -> tuple[int, int]:
        """Changes whenever something is written or waits to be."""
        return self.connection.total_changes, len(self._rows)

    def flush(self) -> None:
        """Write what ``log`` collected. Needed before anything reads the log again, and before the end."""
        if self._rows:
            self.connection.executemany(_INSERT_ACTION, self._rows)
            self._rows.clear()
            moved: list[tuple[object, ...]] = []
            turned: list[tuple[object, ...]] = []
            for head in self._unwritten.values():
                if head.turned:
                    turned.append((head.number, head.hash, head.size, head.updated, head.status, head.turns, head.key))
                    head.turned = False
                else:
                    moved.append((head.number, bytearray(head.hash), head.size, head.updated, head.key))
            if moved:
                self.connection.executemany(_MOVE_HEAD, moved)
            if turned:
                self.connection.executemany(_TURN_HEAD, turned)
            self._unwritten.clear()

    def forget(self, key: int) -> None:
        """A session is gone, or changed behind the cache."""
        self._cache.clear()
        self.moved.pop(key, None)
        self._unwritten.pop(key, None)
