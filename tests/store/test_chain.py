"""Whoever drops the triggers can rewrite the file; the check tells."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import anyio
import pytest
from raw_database import key_of, raw

from talkfold.actions import Send
from talkfold.codec import encode_action
from talkfold.errors import StoreDamaged
from talkfold.log import Entry, chain_link
from talkfold.store import Appended, CheckReport, open_store
from talkfold.testing.store_contract.samples import CONVERSATION, ODD_BODIES

LENGTH = len(CONVERSATION) + len(ODD_BODIES) + 1


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a session `s` of several appends, and another beside it; written once, copied by each test."""
    path = tmp_path_factory.mktemp("chain") / "chat.db"

    async def write() -> None:
        async with open_store(path) as store:
            for name in ("s", "other"):
                await store.create(name)
                await store.append(name, CONVERSATION[:10], run="r1", actor="Ann", meta={"cause": "test"}, key="k")
                await store.append(name, ODD_BODIES)
                await store.append(name, [Entry(Send("u", "own time"), time=5, meta={})])
                await store.append(name, CONVERSATION[10:], actor="Bo")
            assert (await store.check("s")).problems == ()

    anyio.run(write)
    return path


@pytest.fixture
def path(untouched: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(untouched, tmp_path / "chat.db"))


async def check(path: Path, session_id: str = "s") -> CheckReport:
    async with open_store(path) as store:
        return await store.check(session_id)


def _swap(connection: sqlite3.Connection, key: int, one: int, two: int) -> None:
    for number, to in ((one, 10_000), (two, one), (10_000, two)):
        connection.execute("UPDATE action SET number = ? WHERE session = ? AND number = ?", (to, key, number))


def _shift(connection: sqlite3.Connection, key: int, first: int, by: int) -> None:
    """Renumber all from ``first`` on, so that the row has no gap and no hole."""
    order = "DESC" if by > 0 else "ASC"
    numbers = connection.execute(
        f"SELECT number FROM action WHERE session = ? AND number >= ? ORDER BY number {order}", (key, first)
    ).fetchall()
    for (number,) in numbers:
        connection.execute("UPDATE action SET number = ? WHERE session = ? AND number = ?", (number + by, key, number))


CHANGED_COLUMNS = {
    "time": "time = time + 1",
    "run": "run = 'another'",
    "run, none before": "run = ifnull(run || 'x', 'x')",
    "run gone": "run = CASE WHEN run IS NULL THEN 'r1' END",
    "run that is no text": "run = CAST(x'ff' AS TEXT)",
    "actor": "actor = 'Eve'",
    "actor gone": "actor = CASE WHEN actor IS NULL THEN 'Ann' END",
    "actor empty": "actor = ''",
    "run and actor swapped": "run = ifnull(actor, 'Bo'), actor = ifnull(run, 'r1')",
    "meta": 'meta = CAST(\'{"cause":"else"}\' AS BLOB)',
    "meta gone": "meta = CASE WHEN meta IS NULL THEN x'7b7d' END",
    "meta empty": "meta = x''",
    "meta that is no JSON": "meta = x'ff'",
    "body, another action": 'body = CAST(\'{"type":"stop"}\' AS BLOB)',
    "body, one blank more": "body = CAST(body || ' ' AS BLOB)",
    "body cut": "body = substr(body, 1, length(body) - 1)",
    "body that is no JSON": "body = x'ff00'",
    "body empty": "body = x''",
    "hash": "hash = zeroblob(32)",
    "hash too short": "hash = x'00'",
    "hash empty": "hash = x''",
}


@pytest.mark.parametrize("what", CHANGED_COLUMNS)
@pytest.mark.parametrize("number", [1, 5, 10, 11, LENGTH - 1, LENGTH])
async def test_a_changed_column_of_any_row_is_found(path: Path, what: str, number: int) -> None:
    with raw(path, guarded=False) as connection:
        connection.execute(
            f"UPDATE action SET {CHANGED_COLUMNS[what]} WHERE session = ? AND number = ?",
            (key_of(connection, "s"), number),
        )
    report = await check(path)
    assert report.problems
    # The chain's value stands at the end of each append, so that is where it shows.
    assert all(problem.number >= number for problem in report.problems)
    assert (await check(path, "other")).problems == ()


@pytest.mark.parametrize("number", range(1, LENGTH + 1))
async def test_a_changed_byte_of_any_body_is_found(path: Path, number: int) -> None:
    with raw(path, guarded=False) as connection:
        key = key_of(connection, "s")
        where = (key, number)
        (body,) = connection.execute("SELECT body FROM action WHERE session = ? AND number = ?", where).fetchone()
        middle = len(body) // 2
        changed = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
        connection.execute("UPDATE action SET body = ? WHERE session = ? AND number = ?", (changed, *where))
    assert (await check(path)).problems


@pytest.mark.parametrize(("one", "two"), [(1, 2), (1, LENGTH), (4, 5), (11, 12), (LENGTH - 1, LENGTH)])
async def test_reordered_rows_are_found(path: Path, one: int, two: int) -> None:
    with raw(path, guarded=False) as connection:
        _swap(connection, key_of(connection, "s"), one, two)
    assert (await check(path)).problems


@pytest.mark.parametrize("closed_up", [False, True])
@pytest.mark.parametrize("number", [1, 2, 10, 11, LENGTH - 1, LENGTH])
async def test_a_removed_row_is_found(path: Path, number: int, closed_up: bool) -> None:
    with raw(path, guarded=False) as connection:
        key = key_of(connection, "s")
        connection.execute("DELETE FROM action WHERE session = ? AND number = ?", (key, number))
        if closed_up:
            _shift(connection, key, number + 1, -1)
    report = await check(path)
    assert report.problems
    if not closed_up and number < LENGTH:
        assert report.problems[0].code == "gap"


@pytest.mark.parametrize("kept", [0, 1, 10, LENGTH - 1])
async def test_a_cut_off_end_is_found(path: Path, kept: int) -> None:
    with raw(path, guarded=False) as connection:
        connection.execute("DELETE FROM action WHERE session = ? AND number > ?", (key_of(connection, "s"), kept))
    report = await check(path)
    assert [problem.code for problem in report.problems] == ["head"]
    assert report.number == kept


@pytest.mark.parametrize("number", [1, 2, 10, 11, 12, LENGTH, LENGTH + 1])
async def test_an_inserted_row_is_found(path: Path, number: int) -> None:
    with raw(path, guarded=False) as connection:
        key = key_of(connection, "s")
        _shift(connection, key, number, 1)
        connection.execute(
            "INSERT INTO action (session, number, time, body) VALUES (?, ?, 0, ?)",
            (key, number, encode_action(Send("u", "never said"))),
        )
    assert (await check(path)).problems


async def test_an_appended_row_is_found_even_with_a_chain_made_for_it(path: Path) -> None:
    """Only whoever rewrites the head as well gets past the file; then the digest that a person noted tells."""
    body = encode_action(Send("u", "never said"))
    with raw(path, guarded=False) as connection:
        key = key_of(connection, "s")
        (before,) = connection.execute("SELECT hash FROM head WHERE session = ?", (key,)).fetchone()
        link = chain_link(before, LENGTH + 1, 0, None, None, None, body)
        connection.execute(
            "INSERT INTO action (session, number, time, body, hash) VALUES (?, ?, 0, ?, ?)",
            (key, LENGTH + 1, body, link),
        )
    assert [problem.code for problem in (await check(path)).problems] == ["head"]
    with raw(path) as connection:
        connection.execute("UPDATE head SET number = number + 1, hash = ? WHERE session = ?", (link, key))
    report = await check(path)
    assert report.digest == link != before


async def test_a_log_moved_to_another_session_is_found(path: Path) -> None:
    with raw(path, guarded=False) as connection:
        one, two = key_of(connection, "s"), key_of(connection, "other")
        for key, to in ((one, 99), (two, one), (99, two)):
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("UPDATE action SET session = ? WHERE session = ?", (to, key))
    assert (await check(path)).problems
    assert (await check(path, "other")).problems


async def test_hashes_taken_away_still_leave_the_proof(path: Path) -> None:
    """The chain's values between the ends are conveniences: without them the last one still covers every byte."""
    with raw(path, guarded=False) as connection:
        key = key_of(connection, "s")
        connection.execute("UPDATE action SET hash = NULL WHERE session = ?", (key,))
    assert (await check(path)).problems == ()
    with raw(path, guarded=False) as connection:
        connection.execute("UPDATE action SET time = time + 1 WHERE session = ? AND number = 3", (key,))
    assert (await check(path)).problems


CHANGED_BESIDE = {
    "head": (
        "UPDATE head SET number = number - 1 WHERE session = :key",
        "UPDATE head SET number = number + 1 WHERE session = :key",
        "UPDATE head SET number = 0 WHERE session = :key",
        "UPDATE head SET hash = zeroblob(32) WHERE session = :key",
        "UPDATE head SET hash = x'' WHERE session = :key",
    ),
    "status": (
        "UPDATE head SET status = 'idle' WHERE session = :key",
        "UPDATE head SET status = 'error' WHERE session = :key",
        "UPDATE head SET turns = turns + 1 WHERE session = :key",
        "UPDATE head SET turns = 0 WHERE session = :key",
    ),
    "size": ("UPDATE head SET size = size + 1 WHERE session = :key",),
    "key": (
        "UPDATE append_key SET last = 9999 WHERE session = :key",
        "UPDATE append_key SET first = 0 WHERE session = :key",
        "UPDATE append_key SET first = 5, last = 4 WHERE session = :key",
    ),
}


@pytest.mark.parametrize(("code", "sql"), [(code, sql) for code, all_of in CHANGED_BESIDE.items() for sql in all_of])
async def test_what_is_kept_beside_the_log_is_compared_with_it(path: Path, code: str, sql: str) -> None:
    with raw(path) as connection:
        connection.execute(sql, {"key": key_of(connection, "s")})
    assert [problem.code for problem in (await check(path)).problems] == [code]


async def test_a_lost_head_is_damage_with_a_name(path: Path) -> None:
    with raw(path) as connection:
        connection.execute("DELETE FROM head WHERE session = ?", (key_of(connection, "s"),))
    async with open_store(path) as store:
        for call in (
            store.get("s"),
            store.read("s"),
            store.state("s"),
            store.append("s", [Send("u", "hi")]),
            store.open_session("s"),
            store.fork("s"),
            store.check("s"),
        ):
            with pytest.raises(StoreDamaged):
                await call
        assert (await store.append("other", [Send("u", "hi")])).last == LENGTH + 1


async def test_a_damaged_log_takes_no_more(path: Path) -> None:
    """What is written after lost rows would hide that they are lost."""
    with raw(path, guarded=False) as connection:
        connection.execute("DELETE FROM action WHERE session = ? AND number > 5", (key_of(connection, "s"),))
    async with open_store(path) as store:
        with pytest.raises(StoreDamaged):
            await store.append("s", [Send("u", "hi")])
        assert (await store.get("s")).number == LENGTH
        assert (await store.append("other", [Send("u", "hi")])).last == LENGTH + 1
        assert (await store.check("other")).problems == ()


@pytest.mark.parametrize("number", [1, 11, LENGTH])
async def test_a_fork_of_a_damaged_log_is_refused_whole(path: Path, number: int) -> None:
    with raw(path, guarded=False) as connection:
        connection.execute(
            "UPDATE action SET body = x'ff' WHERE session = ? AND number = ?", (key_of(connection, "s"), number)
        )
    async with open_store(path) as store:
        forked, appended = await asyncio.gather(
            store.fork("s", new_id="f"), store.append("other", [Send("u", "a neighbour")]), return_exceptions=True
        )
        assert isinstance(forked, StoreDamaged)
        assert isinstance(appended, Appended)
        assert sorted(session.id for session in (await store.list()).sessions) == ["other", "s"]
        with raw(path) as connection:
            assert connection.execute("SELECT count(DISTINCT session) FROM action").fetchone() == (2,)


async def test_one_bad_row_does_not_hide_the_rest(path: Path) -> None:
    with raw(path, guarded=False) as connection:
        connection.execute(
            "UPDATE action SET body = x'ff' WHERE session = ? AND number = 11", (key_of(connection, "s"),)
        )
    async with open_store(path) as store:
        assert [row.number for row in await store.read("s", limit=10)] == list(range(1, 11))
        assert [row.number for row in await store.read("s", after=11)] == list(range(12, LENGTH + 1))
        assert (await store.state("s", at=10)).number == 10
        assert (await store.get("s")).number == LENGTH
        for call in (store.read("s"), store.state("s"), store.open_session("s"), store.fork("s", at=11)):
            with pytest.raises(StoreDamaged, match="action 11 cannot be read"):
                await call


async def test_unreadable_metadata_hides_no_session_and_is_found(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    async with open_store(path, metadata_keys=["k"]) as store:
        for name in ("a", "b"):
            await store.create(name, metadata={"k": name})
        with raw(path) as connection:
            connection.execute("UPDATE session SET metadata = '{bad' WHERE id = 'a'")
        assert [session.id for session in (await store.list()).sessions] == ["b", "a"]
        assert [session.id for session in (await store.list(metadata={"k": "b"})).sessions] == ["b"]
        assert [problem.code for problem in (await store.check("a")).problems] == ["metadata"]
        assert (await store.check("b")).problems == ()
