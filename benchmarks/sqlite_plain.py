"""Plain sqlite3: what a store is measured against. The same SQLite library, WAL, synchronous=FULL.

It writes the same rows into the same kind of table and does nothing else: no thread, no queue, no version check, no
hash to compute (the rows carry one of the same length), no triggers, no snapshots. It is the floor, not a rival.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from .stores import Store, StoredLog

__all__ = ("PLAIN", "Row", "connect", "insert_many", "row")

Row = tuple[int, int, int, bytes, bytes]

_HASH = bytes(range(32))

INSERT = "INSERT INTO action (session, number, time, body, hash) VALUES (?, ?, ?, ?, ?)"


def connect(path: Path) -> sqlite3.Connection:
    """A connection as talkfold's writer has it, and the table of a log's rows."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        """
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        CREATE TABLE IF NOT EXISTS action (
            session INTEGER NOT NULL, number INTEGER NOT NULL, time INTEGER NOT NULL,
            run TEXT, actor TEXT, meta BLOB, body BLOB NOT NULL, hash BLOB NOT NULL,
            PRIMARY KEY (session, number)
        ) STRICT, WITHOUT ROWID;
        """
    )
    return connection


def row(session: int, number: int, body: bytes) -> Row:
    """One action's row, its hash any 32 bytes."""
    return session, number, 1_750_000_000_000, body, _HASH


def insert_many(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """One transaction with one ``executemany``; durable when it returns."""
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT, rows)
    connection.execute("COMMIT")


class _Log:
    def __init__(self, connection: sqlite3.Connection, session: int) -> None:
        self._connection = connection
        self._session = session
        self._number = 0

    async def append(self, items: Sequence[bytes]) -> None:
        session, after = self._session, self._number + 1
        rows = [row(session, number, body) for number, body in enumerate(items, after)]
        self._number += len(rows)
        if len(rows) > 1:
            insert_many(self._connection, rows)
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(INSERT, rows[0])
        self._connection.execute("COMMIT")

    async def load(self) -> int:
        query = "SELECT body FROM action WHERE session = ? ORDER BY number"
        return len(self._connection.execute(query, (self._session,)).fetchall())


class _Plain:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sessions: dict[str, int] = {}

    async def log(self, name: str) -> StoredLog:
        return _Log(self._connection, self._sessions.setdefault(name, len(self._sessions) + 1))


@asynccontextmanager
async def _opened(folder: Path) -> AsyncGenerator[_Plain]:
    connection = connect(folder / "plain.db")
    try:
        yield _Plain(connection)
    finally:
        connection.close()


PLAIN = Store("plain sqlite3", f"SQLite {sqlite3.sqlite_version}", list, _opened)
