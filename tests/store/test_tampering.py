"""Somebody with another program changes the file. The check names the place; a noted digest tells of the rest.

What is changed in one row of the log is in ``test_chain.py``, in a snapshot's state in ``test_snapshots.py``. Here:
rows that move between sessions, everything beside the log, a log that is written anew as a whole, and bits at random.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_database import key_of, raw

from talkfold.actions import Finish, MessageStart, Part, Send, SessionAction, TextDelta
from talkfold.codec import encode_action
from talkfold.errors import StoreDamaged, TalkfoldError
from talkfold.fold import fold
from talkfold.log import chain_link, chain_start
from talkfold.store import CheckReport, Hold, SessionStore, Waiting, open_store
from talkfold.store.entries import request_of
from talkfold.store.sqlite import snapshotter
from talkfold.testing.store_contract.samples import CONVERSATION


def _turn(number: int) -> list[SessionAction]:
    message = f"a{number}"
    deltas = [Part(TextDelta(message, f"word {step} ")) for step in range(12)]
    return [Send(f"u{number}", f"question {number}"), Part(MessageStart(message)), *deltas, Part(Finish("stop"))]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sessions: `s` with snapshots, keys and a run that waits, `other` and `t`. Written once, copied by each."""
    path = tmp_path_factory.mktemp("tampering") / "chat.db"

    async def write() -> None:
        async with open_store(path) as store:
            for name in ("s", "other"):
                await store.create(name, owner="ann" if name == "other" else None, metadata={"n": 1})
                await store.append(name, CONVERSATION, run="r1", actor="Ann", meta={"cause": "test"}, key="k")
                for number in range(10):
                    await store.append(name, _turn(number), run=f"r{number}", key=f"turn {number}")
            await store.create("t", actions=CONVERSATION)
            hold = Hold("r-last", 10_000)
            number = (await store.start("s", Send("u", "go"), hold=hold)).number
            await store.park("s", [], hold=hold, waiting=Waiting(number, "c", "pay", "approval", "Pay?"))
            await anyio.sleep(0.05)
            for name in ("s", "other", "t"):
                assert (await store.check(name)).problems == ()
            assert (await store.check("s")).snapshots > 2

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshotter, "SNAPSHOT_BYTES", 2_000)
        anyio.run(write)
    return path


@pytest.fixture
def path(untouched: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(untouched, tmp_path / "chat.db"))


async def check(path: Path, session_id: str = "s", since: bytes | None = None) -> CheckReport:
    async with open_store(path) as store:
        return await store.check(session_id, since=since)


async def used(path: Path) -> None:
    """Every way to read works, or says what is wrong in an error of ours."""
    async with open_store(path) as store:
        calls: tuple[Callable[[SessionStore], Any], ...] = (
            lambda store: store.get("s"),
            lambda store: store.read("s"),
            lambda store: store.state("s"),
            lambda store: store.state("s", at=20),
            lambda store: store.fork("s"),
            lambda store: store.open_session("s"),
        )
        for call in calls:
            try:
                await call(store)
            except TalkfoldError:
                pass  # it says what is wrong and what to do, as all of them do
        assert {it.id for it in (await store.list()).sessions} >= {"other", "t"}


async def test_what_nobody_touched_is_whole(path: Path) -> None:
    await used(path)
    for name in ("s", "other", "t"):
        assert (await check(path, name)).problems == ()


# ---- rows that move ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 5, len(CONVERSATION), 100])
async def test_a_row_that_moved_to_another_session_is_found_in_both(path: Path, number: int) -> None:
    with raw(path, guarded=False) as connection:
        one, two = key_of(connection, "s"), key_of(connection, "t")
        connection.execute(
            "UPDATE action SET session = ?, number = (SELECT max(number) FROM action WHERE session = ?) + 1"
            " WHERE session = ? AND number = ?",
            (two, two, one, number),
        )
    for name in ("s", "t"):
        assert (await check(path, name)).problems


@pytest.mark.parametrize("number", [1, 10, 100])
async def test_a_row_that_is_exchanged_with_the_same_number_of_another_session_is_found(
    path: Path, number: int
) -> None:
    with raw(path, guarded=False) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        one, two = key_of(connection, "s"), key_of(connection, "other")
        for key, to in ((one, -1), (two, one), (-1, two)):
            connection.execute("UPDATE action SET session = ? WHERE session = ? AND number = ?", (to, key, number))
    for name in ("s", "other"):
        assert (await check(path, name)).problems


async def test_a_session_under_another_id_is_found(path: Path) -> None:
    """The chain begins with the id: a log cannot be passed off as another session's."""
    with raw(path) as connection:
        connection.execute("UPDATE session SET id = 'x' WHERE id = 's'")
        connection.execute("UPDATE session SET id = 's' WHERE id = 't'")
    for name in ("x", "s"):
        assert "chain" in {problem.code for problem in (await check(path, name)).problems}


# ---- beside the log ---------------------------------------------------------------------------------------


BESIDE = {
    "snapshot of a number beyond the log": ("snapshot", "UPDATE snapshot SET number = 9999 WHERE number = {last}"),
    "snapshot of number 0": ("snapshot", "UPDATE snapshot SET number = 0, base = 0, keep = 0 WHERE number = {last}"),
    "snapshot of a number below": ("snapshot", "UPDATE snapshot SET number = -1, base = 0 WHERE number = {last}"),
    "snapshot of another number": ("snapshot", "UPDATE snapshot SET number = number + 1 WHERE number = {last}"),
    "snapshot of another size": ("snapshot", "UPDATE snapshot SET size = size - 1 WHERE number = {last}"),
    "snapshot of another session": (
        "snapshot",
        "UPDATE snapshot SET state = (SELECT state FROM snapshot WHERE session <> {key} AND base = 0 LIMIT 1)"
        " WHERE number = {last} AND base > 0",
    ),
    "key of other actions": ("key", "UPDATE append_key SET first = 1, last = 2 WHERE session = {key} AND key = 'k'"),
    "key of one action less": ("key", "UPDATE append_key SET last = last - 1 WHERE session = {key} AND key = 'turn 3'"),
    "request of a key": ("key", "UPDATE append_key SET request = zeroblob(32) WHERE session = {key} AND key = 'k'"),
    "lease that waits for nothing there": (
        "lease",
        "UPDATE lease SET waiting = json_set(waiting, '$.number', 9999) WHERE session = {key}",
    ),
    "lease that waits for what cannot be read": ("lease", "UPDATE lease SET waiting = '{{' WHERE session = {key}"),
    "lease that waits for something else": ("lease", "UPDATE lease SET waiting = '7' WHERE session = {key}"),
    "metadata": ("metadata", "UPDATE session SET metadata = '[' WHERE key = {key}"),
    "status": ("status", "UPDATE head SET status = 'idle' WHERE session = {key}"),
    "size": ("size", "UPDATE head SET size = 0 WHERE session = {key}"),
    "number": ("head", "UPDATE head SET number = number - 1 WHERE session = {key}"),
    "digest": ("head", "UPDATE head SET hash = (SELECT hash FROM head WHERE session <> {key}) WHERE session = {key}"),
}


@pytest.mark.parametrize("what", BESIDE)
async def test_what_is_beside_the_log_is_compared_with_it(path: Path, what: str) -> None:
    code, sql = BESIDE[what]
    with raw(path) as connection:
        key = key_of(connection, "s")
        (last,) = connection.execute("SELECT max(number) FROM snapshot WHERE session = ?", (key,)).fetchone()
        changed = connection.execute(sql.format(key=key, last=f"{last} AND session = {key}")).rowcount
        assert changed == 1
    report = await check(path)
    assert code in {problem.code for problem in report.problems}
    assert all(problem.text for problem in report.problems)
    assert (await check(path, "other")).problems == ()
    await used(path)


async def test_keys_that_are_exchanged_are_found(path: Path) -> None:
    with raw(path) as connection:
        key = key_of(connection, "s")
        for old, new in (("k", "x"), ("turn 1", "k"), ("x", "turn 1")):
            connection.execute("UPDATE append_key SET key = ? WHERE session = ? AND key = ?", (new, key, old))
    # Each still names the actions that it stands beside: only those who used the keys can tell.
    assert (await check(path)).problems == ()
    async with open_store(path) as store:
        with pytest.raises(TalkfoldError, match="key"):
            await store.append("s", CONVERSATION, key="k")


async def test_what_the_chain_does_not_cover(path: Path) -> None:
    """These may change by rights at any time; the page about privacy says so."""
    with raw(path) as connection:
        connection.execute("UPDATE session SET title = 'another', metadata = '{}', created = 1 WHERE id = 's'")
        connection.execute("UPDATE session SET forked_from = 'x', forked_at = 1, owner = 'eve' WHERE id = 's'")
        connection.execute("UPDATE head SET updated = 1 WHERE session = ?", (key_of(connection, "s"),))
        connection.execute("DELETE FROM lease")
        connection.execute("DELETE FROM append_key")
        connection.execute("DELETE FROM snapshot")
    assert (await check(path)).problems == ()
    await used(path)


# ---- a log written anew -----------------------------------------------------------------------------------


def write_anew(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the bodies of `s` and make everything else so that it closes: what nobody can see in the file alone."""
    with raw(path, guarded=False) as connection:
        key = key_of(connection, "s")
        rows = connection.execute(
            "SELECT number, time, run, actor, meta, body, hash FROM action WHERE session = ? ORDER BY number", (key,)
        ).fetchall()
        link, size = chain_start("s"), 0
        bodies: dict[int, bytes] = {}
        for number, time, run, actor, meta, body, noted in rows:
            bodies[number] = changed = change(body)
            link = chain_link(link, number, time, run, actor, meta, changed)
            size += len(changed)
            connection.execute(
                "UPDATE action SET body = ?, hash = ? WHERE session = ? AND number = ?",
                (changed, None if noted is None else link, key, number),
            )
        connection.execute("UPDATE head SET hash = ?, size = ? WHERE session = ?", (link, size, key))
        connection.execute("DELETE FROM snapshot WHERE session = ?", (key,))
        for name, first, last in connection.execute(
            "SELECT key, first, last FROM append_key WHERE session = ?", (key,)
        ).fetchall():
            request = request_of(bodies[number] for number in range(first, last + 1))
            connection.execute("UPDATE append_key SET request = ? WHERE session = ? AND key = ?", (request, key, name))


async def test_only_a_noted_digest_tells_of_a_log_that_was_written_anew(path: Path) -> None:
    before = await check(path)
    write_anew(path, lambda body: body.replace(b"question 7", b"QUESTION 7"))
    assert (await check(path)).problems == ()
    report = await check(path, since=before.digest)
    assert [(problem.code, problem.number) for problem in report.problems] == [("since", before.number)]
    assert report.since is None
    await used(path)


async def test_what_was_noted_before_the_change_still_holds_up_to_there(path: Path) -> None:
    """A digest that was noted after turn 3 proves the first three turns, whatever became of the seventh."""
    async with open_store(path) as store:
        rows = await store.read("s")
    early = next(row for row in rows if row.number > len(CONVERSATION) + 30 and row.hash is not None)
    assert early.hash is not None
    write_anew(path, lambda body: body.replace(b"question 7", b"QUESTION 7"))
    report = await check(path, since=early.hash)
    assert (report.since, report.problems) == (early.number, ())


async def test_a_stored_hash_alone_is_no_proof(path: Path) -> None:
    """The noted digest still stands in its row, but the rows before it are others."""
    before = await check(path)
    with raw(path, guarded=False) as connection:
        body = encode_action(Send("u1", "Never said"))
        connection.execute(
            "UPDATE action SET body = ? WHERE session = ? AND number = 1", (body, key_of(connection, "s"))
        )
    report = await check(path, since=before.digest)
    assert report.since is None
    assert {problem.code for problem in report.problems} >= {"chain", "since"}
    (since,) = (problem for problem in report.problems if problem.code == "since")
    assert since.number == before.number
    assert "not what was noted" in since.text


async def test_a_digest_of_an_end_that_was_cut_off_is_missed(path: Path) -> None:
    before = await check(path, "t")
    with raw(path, guarded=False) as connection:
        key = key_of(connection, "t")
        connection.execute("DELETE FROM action WHERE session = ?", (key,))
        connection.execute("DELETE FROM snapshot WHERE session = ?", (key,))
        connection.execute(
            "UPDATE head SET number = 0, hash = ?, size = 0, status = 'idle', turns = 0 WHERE session = ?",
            (chain_start("t"), key),
        )
    assert (await check(path, "t")).problems == ()
    report = await check(path, "t", since=before.digest)
    assert [problem.code for problem in report.problems] == ["since"]


# ---- bits at random ---------------------------------------------------------------------------------------

COLUMNS = {
    "action": ("session", "number", "time", "run", "actor", "meta", "body", "hash"),
    "head": ("number", "hash", "status", "turns", "size"),
    "append_key": ("first", "last", "request"),
}
"""What the check proves, to the bit. ``head.updated`` and names of keys have nothing to be compared with."""

SNAPSHOT_COLUMNS = ("number", "fold", "base", "keep", "size", "state")


def flip(path: Path, table: str, column: str, chance: random.Random) -> bool:
    """Turn one bit of one value of `s` over; false where the database itself refuses it."""
    with raw(path, guarded=False) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        key = key_of(connection, "s")
        place = "rowid" if table == "head" else "number" if table in ("action", "snapshot") else "key"
        kind = f"typeof({column})"
        rows = connection.execute(
            f"SELECT {place}, {kind}, CASE WHEN {kind} = 'text' THEN CAST({column} AS BLOB) ELSE {column} END"
            f" FROM {table} WHERE session = ? AND {column} IS NOT NULL ORDER BY {place}",
            (key,),
        ).fetchall()
        which, type_, value = chance.choice(rows)
        changed: object
        if type_ == "integer":
            changed = value ^ (1 << chance.randrange(63))
        else:
            data = bytearray(value)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            changed = bytes(data)
        shown = "CAST(? AS TEXT)" if type_ == "text" else "?"
        try:
            connection.execute(
                f"UPDATE {table} SET {column} = {shown} WHERE session = ? AND {place} = ?", (changed, key, which)
            )
        except sqlite3.IntegrityError:
            return False
    return True


async def _found(path: Path) -> bool:
    try:
        return bool((await check(path)).problems)
    except StoreDamaged:
        return True


@settings(max_examples=150, deadline=None)
@given(
    where=st.sampled_from([(table, column) for table, columns in COLUMNS.items() for column in columns]),
    seed=st.integers(0, 2**32),
)
def test_a_flipped_bit_is_always_found(untouched: Path, where: tuple[str, str], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(untouched, Path(folder) / "chat.db"))
        if flip(path, *where, random.Random(seed)):
            assert anyio.run(_found, path), where
            anyio.run(used, path)


async def _states(path: Path) -> list[object]:
    async with open_store(path) as store:
        end = (await store.get("s")).number
        return [(await store.state("s", at=at)).state for at in range(0, end + 1, 7)]


@settings(max_examples=80, deadline=None)
@given(column=st.sampled_from(SNAPSHOT_COLUMNS), seed=st.integers(0, 2**32))
def test_a_flipped_bit_of_a_snapshot_is_found_or_has_no_effect(untouched: Path, column: str, seed: int) -> None:
    """One of another version of the fold, or whose base is not there, is never read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(untouched, Path(folder) / "chat.db"))
        if flip(path, "snapshot", column, random.Random(seed)) and not anyio.run(_found, path):
            assert column in ("fold", "base"), column
            actions = anyio.run(_actions, untouched)
            assert anyio.run(_states, path) == [fold(actions[:at]) for at in range(0, len(actions) + 1, 7)]


async def _actions(path: Path) -> list[SessionAction]:
    async with open_store(path) as store:
        return [row.action for row in await store.read("s")]
