"""A look at a database file and at the place where it lies. Changes nothing, and needs no healthy file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from typing import Literal, TypeAlias

import aiosqlite
from msgspec import Struct

from ..._version import __version__
from ...errors import DatabaseNotFound, TalkfoldError
from ..migrate import migration_scripts, pending_migrations
from .connection import APPLICATION_ID, connect_reader, sqlite_errors
from .place import network_file_system
from .scrubbing import unfinished

__all__ = ("Diagnosis", "Remark", "Severity", "diagnose", "has_wal_reset_fault")

Severity: TypeAlias = Literal["fine", "note", "bad"]

_LARGE_WAL = 64 * 1024 * 1024
_LITTLE_ROOM = 256 * 1024 * 1024
_FIXED_BACKPORTS = {(3, 44): 6, (3, 50): 7}


class Remark(Struct, frozen=True):
    """One thing that was looked at: ``bad`` needs a hand, ``note`` is good to know. ``text`` says what to do."""

    severity: Severity
    subject: str
    text: str


class Diagnosis(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What was seen. Sizes are in bytes; a field that could not be read is ``None``."""

    path: str
    talkfold: str
    sqlite: str
    aiosqlite: str
    wal_reset_fault: bool
    size: int
    wal_size: int
    free_space: int
    network_file_system: str | None
    migration: int | None
    known_migrations: int
    journal_mode: str | None
    sessions: int | None
    actions: int | None
    remarks: tuple[Remark, ...]

    @property
    def healthy(self) -> bool:
        """Nothing needs a hand."""
        return not any(remark.severity == "bad" for remark in self.remarks)


def has_wal_reset_fault(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite can corrupt a WAL when one connection checkpoints while another commits.

    Fixed in 3.51.3, and in 3.50.7 and 3.44.6 of the older branches (sqlite.org/wal.html).
    """
    branch, patch = version[:2], version[2]
    return version < (3, 51, 3) and not patch >= _FIXED_BACKPORTS.get(branch, patch + 1)


def diagnose(path: str | os.PathLike[str], *, thorough: bool = False) -> Diagnosis:
    """Look at a database. ``thorough`` compares every index with its table, which reads the whole file.

    Blocks while it reads; run it in a thread. Raises DatabaseNotFound; every other fault is a remark.
    """
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise DatabaseNotFound(path)
    remarks: list[Remark] = []
    network = network_file_system(path)
    if network is not None:
        remarks.append(
            Remark(
                "bad",
                "place",
                f"on a network file system ({network}): its locks cannot be trusted; use a local disk",
            )
        )
    fault = has_wal_reset_fault(sqlite3.sqlite_version_info)
    if fault:
        remarks.append(
            Remark(
                "note",
                "sqlite",
                f"SQLite {sqlite3.sqlite_version} can corrupt a WAL when two connections meet at a checkpoint; talkfold"
                " checkpoints only inside its own lock, so let no other program write this file (3.51.3 has the fix)",
            )
        )
    free = shutil.disk_usage(os.path.dirname(path)).free
    if free < _LITTLE_ROOM:
        remarks.append(Remark("bad", "space", f"only {free:,} bytes are free; make room before appends fail"))
    wal = _size(f"{path}-wal")
    if wal > _LARGE_WAL:
        remarks.append(
            Remark("note", "wal", f"the WAL has {wal:,} bytes: a reader is or was open for long; it shrinks by itself")
        )
    seen = _Seen()
    try:
        with sqlite_errors(path, 5.0):
            _look_inside(path, seen, remarks, thorough)
    except TalkfoldError as error:
        remarks.append(Remark("bad", "database", f"{error}. {error.next_step}"))
    if not remarks:
        remarks.append(Remark("fine", "all", "nothing to do"))
    return Diagnosis(
        path,
        __version__,
        sqlite3.sqlite_version,
        aiosqlite.__version__,
        fault,
        _size(path),
        wal,
        free,
        network,
        seen.migration,
        len(migration_scripts()),
        seen.journal_mode,
        seen.sessions,
        seen.actions,
        tuple(remarks),
    )


class _Seen:
    """What could be read before something failed."""

    migration: int | None = None
    journal_mode: str | None = None
    sessions: int | None = None
    actions: int | None = None


def _look_inside(path: str, seen: _Seen, remarks: list[Remark], thorough: bool) -> None:
    connection = connect_reader(path, 5.0)
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION_ID:
            remarks.append(Remark("bad", "database", f"not a talkfold database (application id {application:#x})"))
            return
        seen.migration = connection.execute("PRAGMA user_version").fetchone()[0]
        seen.journal_mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if seen.journal_mode != "wal":
            remarks.append(
                Remark("bad", "journal", f"the journal mode is {seen.journal_mode}; open it once with talkfold")
            )
        pending = pending_migrations(connection)
        if pending:
            remarks.append(Remark("bad", "migrations", f"{len(pending)} to apply; run `talkfold migrate`"))
        found = [
            row[0]
            for row in connection.execute(f"PRAGMA {'integrity_check' if thorough else 'quick_check'}(20)")
            if row[0] != "ok"
        ]
        remarks.extend(
            Remark("bad", "integrity", f"{text}; copy the file away and restore a good backup") for text in found
        )
        seen.sessions, seen.actions = connection.execute(
            "SELECT count(*), coalesce(sum(number), 0) FROM session JOIN head ON head.session = session.key"
            " WHERE erased IS NULL"
        ).fetchone()
        (headless,) = connection.execute(
            "SELECT count(*) FROM session WHERE erased IS NULL AND key NOT IN (SELECT session FROM head)"
        ).fetchone()
        if headless:
            remarks.append(
                Remark(
                    "bad",
                    "sessions",
                    f"of {headless:,} session{'s' * (headless > 1)} nothing says where the log ends, so no list shows"
                    " them; somebody changed the file: restore a good backup",
                )
            )
        left = unfinished(connection)
        if left:
            remarks.append(
                Remark(
                    "bad",
                    "erasure",
                    f"of {left:,} erased session{'s' * (left > 1)} traces are left in the file: a process died, or a"
                    " reader was in the way; end other readers and run any talkfold command on it",
                )
            )
    finally:
        connection.close()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
