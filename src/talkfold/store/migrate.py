"""Migrations: numbered SQL scripts, each applied whole or not at all, and pinned by their hash.

A script is ``0001_what_it_does.sql`` and carries its own ``BEGIN IMMEDIATE … COMMIT``, so that it can be read and
run by hand. It is stepped through statement by statement (SQLite itself says where one ends, triggers included;
``executescript`` would commit whatever was pending), and the record of it is written just before its COMMIT.
Once released a script is never edited.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from ..errors import DatabaseTooNew, DatabaseTooOld, MigrationChanged, MigrationMissing
from .sqlite.connection import APPLICATION_ID

__all__ = ("Migration", "apply_migrations", "migration_scripts", "pending_migrations", "statements")

_NAME = re.compile(r"(\d{4})_\w+\.sql")


class Migration(Struct, frozen=True):
    """A script: its number (from 1, no gaps), file name, SHA-256 in hex, and text."""

    number: int
    name: str
    sha256: str
    sql: str


def _folder(dialect: str) -> Path:
    # In a wheel the scripts lie beside the package; in a checkout or an editable install at its top.
    package = Path(__file__).resolve().parents[1]
    packaged = package / "_migrations" / dialect
    return packaged if packaged.is_dir() else package.parents[1] / "migrations" / dialect


def migration_scripts(dialect: str = "sqlite") -> tuple[Migration, ...]:
    """The scripts that this talkfold ships, in order. Raises MigrationMissing when one is not there."""
    found: list[Migration] = []
    for path in sorted(_folder(dialect).glob("*.sql")):
        match = _NAME.fullmatch(path.name)
        if match:
            text = path.read_text(encoding="utf-8")
            # Line ends do not count: a checkout may change them.
            digest = sha256(text.replace("\r\n", "\n").encode()).hexdigest()
            found.append(Migration(int(match[1]), path.name, digest, text))
    for number, script in enumerate(found, start=1):
        if script.number != number:
            raise MigrationMissing(number)
    if not found:
        raise MigrationMissing(1)
    return tuple(found)


def statements(sql: str) -> list[str]:
    """The statements of a script, comments before them included. SQLite decides where each ends."""
    found: list[str] = []
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending.strip())
            pending = ""
    if re.sub(r"--[^\n]*", "", pending).strip():
        raise ValueError(f"the script ends inside a statement: {pending.strip()[:80]!r}")
    return found


def pending_migrations(
    connection: sqlite3.Connection, scripts: Sequence[Migration] | None = None
) -> tuple[Migration, ...]:
    """The scripts that this database has not had yet. Changes nothing.

    Raises DatabaseTooNew (a newer talkfold wrote it), MigrationChanged (a script is not the one that was
    applied) and MigrationMissing (a gap in what was applied).
    """
    scripts = migration_scripts() if scripts is None else scripts
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(scripts):
        raise DatabaseTooNew(version, len(scripts))
    if version:
        applied = dict[int, tuple[str, str]](
            (number, (name, digest))
            for number, name, digest in connection.execute("SELECT number, name, sha256 FROM migration")
        )
        for script in scripts[:version]:
            if script.number not in applied:
                raise MigrationMissing(script.number)
            if applied[script.number][1] != script.sha256:
                raise MigrationChanged(script.name)
    return tuple(scripts[version:])


def apply_migrations(
    connection: sqlite3.Connection, *, migrate: bool = True, scripts: Sequence[Migration] | None = None
) -> tuple[Migration, ...]:
    """Bring the database to this talkfold's version and say which scripts were applied.

    The caller holds the lock between processes; several may come here one after the other. Raises
    what ``pending_migrations`` does, and DatabaseTooOld when scripts are pending and ``migrate`` is false.
    """
    scripts = migration_scripts() if scripts is None else scripts
    pending = pending_migrations(connection, scripts)
    if pending and not migrate:
        raise DatabaseTooOld(pending[0].number - 1, len(scripts))
    for script in pending:
        _apply(connection, script)
    return pending


def _apply(connection: sqlite3.Connection, script: Migration) -> None:
    begin, *body, commit = statements(script.sql)
    if not (_bare(begin) == "BEGIN IMMEDIATE;" and _bare(commit) == "COMMIT;"):
        raise ValueError(f"{script.name} must begin with BEGIN IMMEDIATE and end with COMMIT")
    connection.execute(begin)
    try:
        for statement in body:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO migration (number, name, sha256) VALUES (?, ?, ?)",
            (script.number, script.name, script.sha256),
        )
        connection.execute(f"PRAGMA user_version = {script.number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(commit)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _bare(statement: str) -> str:
    return re.sub(r"--[^\n]*", "", statement).strip()
