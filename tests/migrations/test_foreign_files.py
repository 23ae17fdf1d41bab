"""A file of another program is refused, and neither it nor its folder is touched."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from talkfold.actions import Send
from talkfold.errors import ForeignDatabase
from talkfold.store import ANY, open_store


def _database(path: Path, *sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in sql:
            connection.execute(statement)


def _killed(path: Path, *sql: str) -> None:
    """A database as a process leaves it that was killed after these statements."""
    code = "import os, sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    code += "for sql in sys.argv[2:]: c.execute(sql)\nos.kill(os.getpid(), 9)\n"
    done = subprocess.run([sys.executable, "-c", code, str(path), *sql], check=False)
    assert done.returncode == -signal.SIGKILL


FILES: dict[str, Callable[[Path], None]] = {
    "text": lambda path: path.write_text("Dear diary, " * 1_000) and None,
    "a few bytes": lambda path: path.write_bytes(b"hi") and None,
    "noise": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)) and None,
    "half a header": lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 200) and None,
    "tables": lambda path: _database(path, "CREATE TABLE session (id)", "INSERT INTO session VALUES (1)"),
    "another application": lambda path: _database(path, "PRAGMA application_id = 1", "CREATE TABLE t (x)"),
    "another application, empty": lambda path: _database(path, "PRAGMA application_id = 7"),
    "another application with our version": lambda path: _database(
        path, "PRAGMA application_id = 7", "PRAGMA user_version = 1"
    ),
    "WAL": lambda path: _database(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)"),
    "WAL of a killed process": lambda path: _killed(
        path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)", "PRAGMA wal_checkpoint", "INSERT INTO t VALUES (1)"
    ),
    "nothing but a WAL": lambda path: _killed(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)"),
    "a journal to roll back": lambda path: _killed(
        path,
        "CREATE TABLE t (x)",
        "INSERT INTO t SELECT zeroblob(900) FROM (VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9))",
        "PRAGMA cache_size = 1",
        "BEGIN",
        "UPDATE t SET x = randomblob(900)",
        "INSERT INTO t SELECT a.x FROM t a, t b",
    ),
}


def files(path: Path) -> dict[str, bytes]:
    """All that lies in the folder; the index of a WAL is SQLite's scratch pad, and made anew by anybody who looks."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}


@pytest.mark.parametrize("what", FILES)
async def test_a_foreign_file_is_refused_untouched(path: Path, what: str) -> None:
    FILES[what](path)
    before = files(path)
    for migrate in (True, False):
        with pytest.raises(ForeignDatabase) as caught:
            async with open_store(path, migrate=migrate):
                pytest.fail("this must not open")
        assert str(path) in str(caught.value)
        assert caught.value.exit_code == 6
    assert files(path) == before


async def test_an_empty_file_becomes_ours(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT))
    async with open_store(path) as store:
        await store.create("s")


async def test_a_database_without_tables_becomes_ours(path: Path) -> None:
    _database(path, "CREATE TABLE t (x)", "DROP TABLE t", "PRAGMA journal_mode = DELETE")
    async with open_store(path) as store:
        await store.create("s")


@pytest.mark.parametrize("name", ["a b", "100%", "what?", "#1", "é🎈", "a&b=c;d", "back\\slash", "'quote\""])
async def test_any_file_name(tmp_path: Path, name: str) -> None:
    for place in (tmp_path / name, tmp_path / f"{name} folder" / "chat.db"):
        place.parent.mkdir(exist_ok=True)
        for number in (1, 2):
            async with open_store(place) as store:
                assert (await store.append("s", [Send("u", "hi")], expected=ANY)).last == number
        assert place.is_file()
    assert len(os.listdir(tmp_path)) == 3


async def test_our_own_file_as_a_killed_process_left_it(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
        kept = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    for name, content in kept.items():
        (path.parent / name).write_bytes(content)
    async with open_store(path) as store:
        assert (await store.check("s")).problems == ()
