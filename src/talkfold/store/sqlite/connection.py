"""Connections to a database file: how they are opened, and what SQLite's errors mean.

One connection writes. It alone checkpoints, always inside the file lock: SQLite before 3.51.3 can corrupt a WAL
when one connection checkpoints while another one commits. Readers are opened ``mode=ro``, which cannot.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Literal, TypeAlias
from urllib.parse import quote

from ...errors import (
    ForeignDatabase,
    StorageFull,
    StoreBusy,
    StoreDamaged,
    StoreUnavailable,
    TalkfoldError,
)

__all__ = (
    "APPLICATION_ID",
    "READER_PRAGMAS",
    "WRITER_PRAGMAS",
    "Synchronous",
    "connect_reader",
    "connect_writer",
    "refuse_foreign",
    "refuse_no_file",
    "sqlite_errors",
)

Synchronous: TypeAlias = Literal["FULL", "NORMAL"]

APPLICATION_ID = 0x74666C64
"""``tfld``: what the file's header says it is."""

_OLDEST_SQLITE = (3, 38, 0)

WRITER_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # what is erased is overwritten
    "PRAGMA trusted_schema = OFF",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16384",  # KiB
    "PRAGMA journal_size_limit = 4194304",  # a WAL that a long reader made grow is cut to this afterwards
)

READER_PRAGMAS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16384",
)

_MEANING: dict[int, Literal["full", "busy", "damaged"]] = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
    sqlite3.SQLITE_CONSTRAINT: "damaged",  # every rule is checked before writing: the rows are not what they were
}


def _translate(error: sqlite3.Error, path: str, timeout: float) -> TalkfoldError:
    text, undecodable, _ = str(error).partition(" with text ")  # what comes after it is content
    if undecodable:
        return StoreDamaged(text)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code; the rest is detail
    match _MEANING.get(code):
        case "full":
            return StorageFull(path)
        case "busy":
            return StoreBusy(timeout)
        case "damaged":
            return StoreDamaged(str(error))
        case None:
            return StoreUnavailable(path, str(error))


@contextmanager
def sqlite_errors(path: str, timeout: float) -> Generator[None]:
    """Turn what sqlite3 raises inside into talkfold's errors."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, path, timeout) from error


def _uri(path: str, mode: Literal["ro", "rwc"]) -> str:
    return f"file:{quote(os.path.abspath(path))}?mode={mode}"


def _connect(path: str, mode: Literal["ro", "rwc"], timeout: float) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        raise StoreUnavailable(path, f"SQLite {sqlite3.sqlite_version} is too old; {oldest} or newer is needed")
    # isolation_level=None: nothing begins a transaction behind our back. The thread is ours alone.
    return sqlite3.connect(_uri(path, mode), uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


def connect_writer(path: str, timeout: float, synchronous: Synchronous) -> sqlite3.Connection:
    """The one connection that writes. The caller holds the file lock, and migrates afterwards.

    Raises ForeignDatabase for another program's file, before anything is changed in it.
    """
    connection = _connect(path, "rwc", timeout)
    try:
        _recognise(connection, path)
        if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreUnavailable(path, "this place cannot hold a write-ahead log (WAL)")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        for pragma in WRITER_PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection


def _recognise(connection: sqlite3.Connection, path: str) -> None:
    try:
        # In one statement, so of one moment: another process may be making this very database.
        found, tables = connection.execute(
            "SELECT (SELECT application_id FROM pragma_application_id), count(*) FROM sqlite_schema"
        ).fetchone()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            raise ForeignDatabase(path, "the file is no SQLite database") from error
        raise
    if found == APPLICATION_ID:
        return
    if found != 0 or tables:
        raise ForeignDatabase(path, f"its application id is {found:#x}, not {APPLICATION_ID:#x}")


def refuse_no_file(path: str) -> None:
    """Raise StoreUnavailable for a folder or a device, before a lock is made beside it."""
    if os.path.isdir(path):
        raise StoreUnavailable(path, "this is a folder; name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise StoreUnavailable(path, "this is no ordinary file")


def refuse_foreign(path: str) -> None:
    """Raise ForeignDatabase for another program's file, leaving it and the folder around it exactly as they are.

    Opened to write, even a file that is refused would have its journal rolled back, or its WAL moved into it.
    """
    if not os.path.isfile(path) or not os.path.getsize(path):
        return
    # Without a WAL the file is all there is, and `immutable` makes no files beside it.
    how = "mode=ro" if os.path.exists(f"{path}-wal") else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?{how}", uri=True)) as connection:
            _recognise(connection, path)
    except sqlite3.Error:
        return  # whatever it is, opening it says it better


def connect_reader(path: str, timeout: float) -> sqlite3.Connection:
    """A connection that can neither write nor checkpoint. The database is there and migrated."""
    connection = _connect(path, "ro", timeout)
    try:
        for pragma in READER_PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection
