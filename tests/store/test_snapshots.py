"""Snapshots: taken by size, never the truth, never heavy. Any of them may be missing."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from raw_database import raw

from talkfold.actions import (
    Finish,
    MessageStart,
    Part,
    Reset,
    Send,
    SessionAction,
    Stop,
    TextDelta,
    ToolCall,
    ToolResult,
)
from talkfold.fold import fold
from talkfold.model import SessionState
from talkfold.store import SessionStore, open_store
from talkfold.store.sqlite import reading, snapshots, snapshotter
from talkfold.testing.store_contract.samples import CONVERSATION, ODD_BODIES

SMALL = 2_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots every 2,000 bytes of log instead of every 256 KiB."""
    monkeypatch.setattr(snapshotter, "SNAPSHOT_BYTES", SMALL)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SessionStore]:
    async with open_store(path, synchronous="NORMAL") as store:
        yield store


def chat(turns: int, *, deltas: int = 8) -> list[SessionAction]:
    """A conversation that grows as they do: a question, a tool, an answer in pieces, again and again."""
    actions: list[SessionAction] = []
    for turn in range(turns):
        message, call = f"a{turn}", f"c{turn}"
        actions += [
            Send(f"u{turn}", f"question {turn}"),
            Part(MessageStart(message)),
            Part(ToolCall(message, call, "search", {"q": turn})),
            Part(ToolResult(call, {"found": [turn] * 5})),
            *(Part(TextDelta(message, f"piece {piece} ")) for piece in range(deltas)),
            Part(Finish("stop")),
        ]
    return actions


async def taken(store: SessionStore) -> None:
    """Wait for the snapshots that are in the making, so that a test does not depend on how fast the machine is."""
    task = store._snapshotter._task  # type: ignore[attr-defined]
    if task is not None:
        await asyncio.wait([task])


async def write(store: SessionStore, actions: list[SessionAction], *, at_once: int = 7) -> None:
    """Append in pieces, taking snapshots between them."""
    for start in range(0, len(actions), at_once):
        await store.append("s", actions[start : start + at_once])
        await taken(store)


def rows(path: Path) -> list[tuple[int, int, int, int, int]]:
    """The snapshots: number, base, messages kept, bytes of the log, own bytes."""
    with raw(path) as connection:
        return connection.execute(
            "SELECT number, base, keep, size, length(state) FROM snapshot ORDER BY number"
        ).fetchall()


@pytest.mark.usefixtures("small")
async def test_they_are_taken_by_size(path: Path) -> None:
    async with opened(path) as store:
        await store.create("s")
        await store.append("s", [Send("u", "x" * 100)] * 3)
        await taken(store)
        assert rows(path) == []
        await write(store, chat(40))
        size = (await store.get("s")).size
    found = rows(path)
    assert len(found) >= size // SMALL // 8  # each covers a stretch of the log, and none of the log is far behind
    assert len(found) <= size // SMALL
    for (_, _, _, before, _), (_, _, _, after, _) in itertools.pairwise(found):
        assert after - before >= SMALL


@pytest.mark.usefixtures("small")
async def test_together_they_weigh_at_most_half_of_the_log(path: Path) -> None:
    chance = random.Random(3)
    async with opened(path) as store:
        await store.create("s")
        for _ in range(6):
            await write(store, chat(10, deltas=chance.randrange(30)))
            await store.append("s", [Send("u", "x" * chance.randrange(6_000)), Reset(), *CONVERSATION])
        size = (await store.get("s")).size
    async with opened(path) as store:  # a store that finds them, and goes on
        await write(store, chat(20))
        size = (await store.get("s")).size
        assert (await store.check("s")).snapshots == len(rows(path)) > 3
    assert sum(own for *_, own in rows(path)) * 2 <= size


@pytest.mark.usefixtures("small")
async def test_one_huge_message_does_not_make_them_quadratic(path: Path) -> None:
    actions: list[SessionAction] = [Send("u", "tell me all"), Part(MessageStart("a"))]
    actions += [Part(TextDelta("a", f"a sentence with the number {number}. ")) for number in range(3_000)]
    async with opened(path) as store:
        await store.create("s")
        await write(store, actions, at_once=20)
        size = (await store.get("s")).size
        found = rows(path)
        assert sum(own for *_, own in found) * 2 <= size
        assert len(found) <= 12
        assert (await store.state("s")).state == fold(actions)
        await store.append("s", [Part(Finish("stop"))])
        await write(store, chat(150, deltas=40), at_once=50)
        assert (await store.check("s")).problems == ()
        assert (await store.get("s")).size > 2 * size
        assert len(rows(path)) > len(found)  # once the log outweighs the message, they are taken again


@pytest.mark.usefixtures("small")
async def test_the_state_is_right_at_every_number_with_any_of_them_missing(path: Path, tmp_path: Path) -> None:
    actions = [*chat(6), *CONVERSATION, *chat(5)]
    states = [fold(actions[:at]) for at in range(len(actions) + 1)]
    async with opened(path) as store:
        await store.create("s")
        await write(store, actions, at_once=3)
    found = [row[0] for row in rows(path)]
    assert 4 <= len(found) <= 16
    chance = random.Random(5)
    subsets = [set[int](), set(found), *({number} for number in found), *(set(found) - {number} for number in found)]
    subsets += [{number for number in found if chance.random() < 0.5} for _ in range(10)]
    for subset in subsets:
        copy = Path(shutil.copy(path, tmp_path / "copy.db"))
        with raw(copy) as connection:
            for number in subset:
                connection.execute("DELETE FROM snapshot WHERE number = ?", (number,))
        async with opened(copy) as store:
            for at in chance.sample(range(len(actions) + 1), 12):
                assert (await store.state("s", at=at)).state == states[at], (subset, at)
            assert (await store.state("s")).state == states[-1]
            assert (await store.check("s")).problems == ()


@pytest.mark.usefixtures("small")
async def test_the_state_is_right_while_they_come_and_go(path: Path) -> None:
    chance = random.Random(11)
    pool: list[SessionAction | bytes] = [*CONVERSATION, *ODD_BODIES, *chat(3), Stop()]
    async with opened(path) as store:
        await store.create("s")
        for _ in range(60):
            await store.append("s", [chance.choice(pool) for _ in range(chance.randrange(1, 25))])
            if chance.random() < 0.2:
                with raw(path) as connection:
                    connection.execute("DELETE FROM snapshot WHERE random() % 2 = 0")
            log = [row.action for row in await store.read("s", limit=10_000)]
            at = chance.randrange(len(log) + 1)
            assert (await store.state("s", at=at)).state == fold(log[:at])
            assert (await store.state("s")).state == fold(log)
    async with opened(path) as store:
        assert (await store.state("s")).state == fold(log)
        assert (await store.check("s")).problems == ()


@pytest.mark.usefixtures("small")
async def test_two_halves_of_a_pair_around_one(path: Path) -> None:
    async with opened(path) as store:
        await store.create("s")
        await store.append("s", [Send("u", "hi"), Part(MessageStart("a")), *[Part(TextDelta("a", "…"))] * 40])
        for _ in range(60):
            for half in (rb"\ud83d", rb"\ude00"):
                delta = rb'{"type":"part","part":{"type":"text-delta","messageId":"a","delta":"' + half + b'"}}'
                await store.append("s", [delta])
                await taken(store)
    found = rows(path)
    assert found
    async with opened(path) as store:
        for number, *_ in found:
            for at in (number, number + 1):
                log = [row.action for row in await store.read("s", limit=at)]
                assert (await store.state("s", at=at)).state == fold(log)
        assert (await store.state("s")).state.messages[1].parts[0].text.endswith("😀" * 60)  # type: ignore[union-attr]
        assert (await store.check("s")).problems == ()


CORRUPTED = {
    "another state": "state = (SELECT state FROM snapshot WHERE number < (SELECT max(number) FROM snapshot) LIMIT 1)",
    "a byte": "state = CAST(replace(state, 'question', 'Question') AS BLOB)",
    "more kept": "keep = keep + 1",
    "less kept": "keep = keep - 1",
    "another status": "state = CAST(replace(state, '\"idle\"', '\"error\"') AS BLOB)",
    "no JSON": "state = x'ff'",
    "nothing": "state = x''",
    "another base": "base = (SELECT min(number) FROM snapshot)",
    "a base that is later": "base = number",
    "another type": "state = CAST('[]' AS BLOB)",
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("what", CORRUPTED)
async def test_a_corrupted_one_is_found(path: Path, what: str) -> None:
    actions = chat(30)
    async with opened(path) as store:
        await store.create("s")
        await write(store, actions, at_once=13)
        await store.append("s", [Stop()])
    with raw(path) as connection:
        newest = connection.execute("SELECT max(number) FROM snapshot").fetchone()[0]
        before = connection.execute("SELECT * FROM snapshot WHERE number = ?", (newest,)).fetchone()
        connection.execute(f"UPDATE snapshot SET {CORRUPTED[what]} WHERE number = ?", (newest,))
        assert connection.execute("SELECT * FROM snapshot WHERE number = ?", (newest,)).fetchone() != before
    async with opened(path) as store:
        problems = (await store.check("s")).problems
        assert [(problem.code, problem.number) for problem in problems] == [("snapshot", newest)]
        assert [
            row.action for row in await store.read("s", limit=len(actions))
        ] == actions  # the log is not touched by it


@pytest.mark.usefixtures("small")
async def test_those_of_two_processes_are_all_checked(path: Path) -> None:
    """Two processes take theirs side by side, so one may build on an older one than the last."""
    async with opened(path) as one, opened(path) as two:
        await one.create("s")
        for turn in range(40):
            await write((one, two)[turn % 2], chat(2))
        assert (await one.check("s")).problems == ()
        found = rows(path)
        assert (await one.check("s")).snapshots == len(found)
        assert any(base not in (0, before[0]) for before, (_, base, *_) in itertools.pairwise(found)), "all in one row"
    for number, *_ in found:
        with raw(path) as connection:
            (body,) = connection.execute("SELECT state FROM snapshot WHERE number = ?", (number,)).fetchone()
            broken = body.replace(b'"idle"', b'"error"').replace(b'"streaming"', b'"error"')
            connection.execute("UPDATE snapshot SET state = ? WHERE number = ?", (broken, number))
        async with opened(path) as store:
            assert ("snapshot", number) in [
                (problem.code, problem.number) for problem in (await store.check("s")).problems
            ]
        with raw(path) as connection:
            connection.execute("UPDATE snapshot SET state = ? WHERE number = ?", (body, number))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("what", ["no JSON", "nothing", "another type", "a base that is later"])
async def test_one_that_cannot_be_read_is_passed_over(path: Path, what: str) -> None:
    """A snapshot is a cache; one that is visibly broken must not stand between a person and the conversation."""
    actions = chat(30)
    async with opened(path) as store:
        await store.create("s")
        await write(store, actions, at_once=13)
    for which in ("max", "min"):
        with raw(path) as connection:
            number = connection.execute(f"SELECT {which}(number) FROM snapshot").fetchone()[0]
            connection.execute(f"UPDATE snapshot SET {CORRUPTED[what]} WHERE number = ?", (number,))
        async with opened(path) as store:
            assert (await store.state("s")).state == fold(actions)
            assert (await store.state("s", at=number)).state == fold(actions[:number])
            opened_session = await store.open_session("s")
            assert opened_session.state == fold(actions)


@pytest.mark.usefixtures("small")
async def test_those_of_another_fold_are_passed_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actions = chat(20)
    async with opened(path) as store:
        await store.create("s")
        await write(store, actions)
    with raw(path) as connection:
        connection.execute("UPDATE snapshot SET fold = 99, state = x'ff'")
    async with opened(path) as store:
        assert (await store.state("s")).state == fold(actions)
        assert (await store.check("s")).problems == ()
        await write(store, chat(20))
        assert (await store.check("s")).problems == ()
        assert (await store.check("s")).snapshots > 0


@pytest.mark.usefixtures("small")
async def test_a_state_costs_a_snapshot_and_its_tail(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the log is, a cold read folds only what came after the newest snapshot."""
    actions = chat(150)
    async with opened(path) as store:
        await store.create("s")
        await write(store, actions, at_once=25)
    newest = rows(path)[-1][0]
    assert len(actions) - newest < 150
    folded: list[int] = []
    real = reading.fold_page

    def counted(connection: sqlite3.Connection, key: int, at: int, warm: snapshots.Warm) -> snapshots.Warm:
        further = real(connection, key, at, warm)
        folded.append(further.number - warm.number)
        return further

    monkeypatch.setattr("talkfold.store.sqlite.read_calls.fold_page", counted)
    async with opened(path) as store:
        assert (await store.state("s")).state == fold(actions)
        assert sum(folded) == len(actions) - newest
        folded.clear()
        await store.state("s")
        await store.append("s", [Send("u", "one more")])
        await store.state("s")
        assert sum(folded) == 1  # warm: only what is new
        folded.clear()
        for number, *_ in rows(path)[::5]:
            assert (await store.state("s", at=number)).state == fold(actions[:number])
        assert sum(folded) == 0


@pytest.mark.usefixtures("small")
async def test_erasing_takes_them_along(path: Path) -> None:
    async with opened(path) as store:
        await store.create("s")
        for _ in range(5):
            await store.append("s", chat(20))  # due, and perhaps in the making, when the session goes
            await anyio.lowlevel.checkpoint()
        await store.erase("s")
        await taken(store)
        assert rows(path) == []


async def test_at_their_real_size(path: Path) -> None:
    actions = chat(1_200, deltas=20)
    async with opened(path) as store:
        await store.create("s")
        await write(store, actions, at_once=500)
        size = (await store.get("s")).size
        assert size > 5 * snapshots.SNAPSHOT_BYTES
        found = rows(path)
        assert len(found) >= 3
        assert sum(own for *_, own in found) * 2 <= size
    async with opened(path) as store:
        state: SessionState = (await store.state("s")).state
        assert state == fold(actions)
        assert (await store.check("s")).problems == ()
