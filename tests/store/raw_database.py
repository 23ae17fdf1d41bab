"""The database as somebody with another program sees it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from talkfold.store.migrate import apply_migrations, migration_scripts

_TRIGGERS = ("action_append", "action_update", "action_delete")


@contextmanager
def raw(path: Path, *, guarded: bool = True) -> Iterator[sqlite3.Connection]:
    """A plain connection in autocommit. Not ``guarded``: the log's triggers are away, and put back at the end."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    try:
        triggers = dict[str, str](
            connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        )
        assert set(_TRIGGERS) <= set(triggers)
        if not guarded:
            for name in triggers:
                connection.execute(f"DROP TRIGGER {name}")
        yield connection
        if not guarded:
            for sql in triggers.values():
                connection.execute(sql)
    finally:
        connection.close()


def as_left_by(connection: sqlite3.Connection, number: int) -> None:
    """Make the database what it was when only the first so many migrations were there; its sessions stay."""
    old = sqlite3.connect(":memory:", isolation_level=None)
    apply_migrations(old, scripts=migration_scripts()[:number])
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table'"
    kept = {name for (name,) in old.execute(tables)}
    old.close()
    while newer := [name for (name,) in connection.execute(tables) if name not in kept]:
        connection.execute(f"DROP TABLE {min(newer, key=len)}")  # a virtual table before its shadows, which go with it
    connection.execute("DELETE FROM migration WHERE number > ?", (number,))
    connection.execute(f"PRAGMA user_version = {number}")


def key_of(connection: sqlite3.Connection, session_id: str) -> int:
    """The small integer that stands for a session in every table."""
    return int(connection.execute("SELECT key FROM session WHERE id = ?", (session_id,)).fetchone()[0])


def open_files() -> list[str]:
    """What this process has open, by name (Linux tells)."""
    found = list[str]()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except FileNotFoundError:
            continue  # the handle that listed them
    return sorted(found)
