"""What goes wrong in life: callers that leave, processes that are killed, disks that are full, readers that stay."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import anyio
import pytest
from children import started
from raw_database import raw

from talkfold.actions import MessageStart, Part, Send, SessionAction, TextDelta
from talkfold.errors import StorageFull, StoreDamaged
from talkfold.fold import fold
from talkfold.log import Entry
from talkfold.store import ANY, EXISTS, Appended, SessionStore, open_store
from talkfold.testing.store_contract.samples import CONVERSATION

HELLO = Send("u", "hello")

SMALL_SNAPSHOTS = """
from talkfold.store.sqlite import snapshotter
snapshotter.SNAPSHOT_BYTES = 3_000
"""


# ---- callers that leave ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["task", "scope"])
async def test_a_thousand_callers_cancelled_at_random(path: Path, how: str) -> None:
    chance = random.Random(1)
    sizes: dict[str, int] = {}
    acknowledged: dict[str, Appended] = {}
    cancelled: list[str] = []

    async with open_store(path) as store:
        for name in ("a", "b", "c"):
            await store.append(name, [HELLO], expected=ANY)

        def patience() -> float:
            # Many leave at once, some wait for the answer, the rest go in between, however slow the machine is.
            return chance.choice([0, 30, chance.random() ** 2 * 0.2, chance.random() ** 2 * 0.2])

        async def append(caller: str) -> None:
            count = sizes[caller] = chance.randrange(1, 4)
            acknowledged[caller] = await store.append(
                "abc"[int(caller) % 3], [Entry(HELLO, actor=f"caller {caller}")] * count, key=caller
            )

        async def in_scope(caller: str) -> None:
            with anyio.move_on_after(patience()) as scope:
                await append(caller)
            if scope.cancelled_caught:
                cancelled.append(caller)

        async def in_task(caller: str) -> None:
            task = asyncio.create_task(append(caller))
            await asyncio.wait([task], timeout=patience())
            if task.cancel():
                cancelled.append(caller)
            await asyncio.wait([task])

        async def other_calls() -> None:
            """Every other call is cancelled as well, among the appends."""
            while len(sizes) < 1_000:
                calls: list[Awaitable[Any]] = [
                    store.state("a"),
                    store.check("b"),
                    store.fork("c", at=1),
                    store.open_session("a"),
                    store.update("b", title="t"),
                    anext(store.subscribe("a", after=1)),  # type: ignore[arg-type]
                ]
                with anyio.move_on_after(chance.random() * 0.01):
                    await asyncio.gather(*calls)

        async with anyio.create_task_group() as group:
            group.start_soon(other_calls)
            for caller in range(1_000):
                group.start_soon(in_scope if how == "scope" else in_task, str(caller))
                if chance.random() < 0.1:
                    await anyio.sleep(0.002)

        assert len(cancelled) > 100, "too few were cancelled for this to mean anything"
        assert len(acknowledged) > 100

        # No lock stays: this store writes on, and another program can.
        with raw(path) as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        for name in ("a", "b", "c"):
            await store.append(name, [HELLO])

        written: dict[str, list[tuple[str, int]]] = {}
        for name in ("a", "b", "c"):
            log = await store.read(name, limit=10_000)
            assert [row.number for row in log] == list(range(1, len(log) + 1))
            assert (await store.check(name)).problems == ()
            for row in log:
                if row.actor and row.actor.startswith("caller "):
                    written.setdefault(row.actor.removeprefix("caller "), []).append((name, row.number))
        for caller, rows in written.items():  # whole or not at all, in one piece
            assert len(rows) == sizes[caller]
            assert [number for _, number in rows] == list(range(rows[0][1], rows[0][1] + len(rows)))
        for caller, appended in acknowledged.items():
            assert [number for _, number in written[caller]] == list(range(appended.first, appended.last + 1))
        for caller in cancelled:  # whoever does not know asks again
            again = await store.append("abc"[int(caller) % 3], [HELLO] * sizes[caller], key=caller, expected=EXISTS)
            assert again.repeated == (caller in written)


# ---- processes that are killed ---------------------------------------------------------------------------

WRITER = (
    SMALL_SNAPSHOTS
    + """
async def write(store, session, caller):
    step = 0
    while True:
        key = f"{args[0]}.{caller}.{step}"
        say("try", session, key)
        appended = await store.append(
            session, [Send("u", key), Part(MessageStart(key)), Part(TextDelta(key, key * 5))], key=key, actor=key,
            expected=ANY)
        say("ack", session, key, appended.first, appended.last)
        step += 1

async def main():
    async with open_store(path) as store:
        await asyncio.gather(*(write(store, session, caller) for session in "ab" for caller in range(3)))
run(main())
"""
)


def actions_of(key: str) -> list[SessionAction]:
    return [Send("u", key), Part(MessageStart(key)), Part(TextDelta(key, key * 5))]


async def kill_often(path: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: dict[str, tuple[str, int, int]] = {}
    tried: dict[str, str] = {}
    at_work = 0
    for kill in range(kills):
        with started(path, WRITER, kill) as process:
            assert process.stdout is not None
            if chance.random() < 0.9:
                process.stdout.readline()  # it has begun to write; else it may die while it opens
            await asyncio.sleep(chance.random() ** 2 * 0.25)
            process.kill()
            said, complained = process.communicate()
            assert complained == ""
        known = len(acknowledged)
        for line in said.splitlines():
            match line.split():
                case ["try", session, key]:
                    tried[key] = session
                case ["ack", session, key, first, last]:
                    acknowledged[key] = (session, int(first), int(last))
        at_work += len(acknowledged) > known
        if kill % 5 and kill < kills - 1:
            continue  # most of the time the next process finds the file as the dead one left it
        async with open_store(path) as store:
            await _prove(store, acknowledged, tried)
    assert at_work > kills // 2, "too few were killed at work for this to mean anything"


async def _prove(store: SessionStore, acknowledged: dict[str, tuple[str, int, int]], tried: dict[str, str]) -> None:
    for session in {session for session, *_ in acknowledged.values()}:
        log: list[Any] = []
        while page := await store.read(session, after=len(log), limit=10_000):
            log += page
        assert [row.number for row in log] == list(range(1, len(log) + 1))
        assert (await store.check(session)).problems == ()
        assert (await store.state(session)).state == fold([row.action for row in log])
        of: dict[str, list[int]] = {}
        for row in log:
            of.setdefault(row.actor, []).append(row.number)
        for key, numbers in of.items():
            assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2], (key, numbers)  # whole, and once
        for key, (where, first, last) in acknowledged.items():
            if where == session:
                assert of[key] == list(range(first, last + 1))
                again = await store.append(session, actions_of(key), key=key)
                assert again == Appended(first, last, repeated=True)
        for key in [key for key, where in tried.items() if where == session and key not in acknowledged]:
            again = await store.append(session, actions_of(key), key=key, actor=key)  # nobody knows; the key does
            assert again.repeated == (key in of)
            acknowledged[key] = (session, again.first, again.last)
        assert (await store.check(session)).problems == ()


async def test_killed_twenty_times_while_writing(path: Path) -> None:
    await kill_often(path, 20, seed=20)


@pytest.mark.long
@pytest.mark.timeout(1_800)
async def test_killed_three_hundred_times_while_writing(path: Path) -> None:
    await kill_often(path, 300, seed=300)


# ---- disks that are full ---------------------------------------------------------------------------------


async def limit_pages(store: SessionStore, pages: int) -> None:
    """SQLite's own bound on the file: past it every write fails as on a full disk."""

    def limit(connection: sqlite3.Connection) -> None:
        used = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {max(1, used + pages)}")

    await store._writer._thread.run(limit)  # type: ignore[attr-defined]


async def _append_until_full(store: SessionStore) -> int:
    """How many appends of fifty actions fitted."""
    for number in range(1_000):
        try:
            await store.append("s", [HELLO] * 50, key=f"k{number}")
        except StorageFull:
            return number
    pytest.fail("the disk was never full")


async def test_a_full_disk_is_said_and_survived(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s", title="kept")
        await store.append("s", CONVERSATION, key="k")
        await limit_pages(store, 3)
        before = await store.get("s")
        with pytest.raises(StorageFull) as caught:
            await store.append("s", [Send("u", "x" * 100_000)], key="large")
        assert str(path) in str(caught.value)
        number = await _append_until_full(store)
        after = await store.get("s")
        log = await store.read("s", limit=10_000)
        assert len(log) == after.number == before.number + 50 * number  # none of the refused ones, all of the others
        assert (await store.state("s")).state == fold([row.action for row in log])
        assert (await store.check("s")).problems == ()
        with pytest.raises(StorageFull):
            await store.append("s", [HELLO] * 500)
        assert (await store.append("s", CONVERSATION, key="k")).repeated  # what needs no room is still answered

        await limit_pages(store, 10_000)
        assert (await store.append("s", [HELLO] * 50, key=f"k{number}")).first == after.number + 1
        assert (await store.append("s", [Send("u", "x" * 100_000)], key="large")).first == after.number + 51
        assert (await store.check("s")).problems == ()
    async with open_store(path) as store:
        assert (await store.get("s")).number == after.number + 51


async def test_a_full_disk_refuses_only_what_does_not_fit(path: Path) -> None:
    """Callers are written together; the one that is too large must not take the small ones down."""
    async with open_store(path) as store:
        await store.create("s")
        await store.append("s", CONVERSATION)
        await limit_pages(store, 8)
        await store.append("s", [HELLO])
        answers = await asyncio.gather(
            *(store.append("s", [Send("u", "x" * 200_000) if index == 5 else HELLO]) for index in range(12)),
            return_exceptions=True,
        )
        assert [index for index, answer in enumerate(answers) if isinstance(answer, StorageFull)] == [5]
        assert (await store.get("s")).number == len(CONVERSATION) + 12
        assert (await store.check("s")).problems == ()


async def test_every_write_says_that_the_disk_is_full(path: Path) -> None:
    large = "x" * 60_000
    async with open_store(path) as store:
        await store.create("s")
        await store.append("s", [*CONVERSATION[:6], Send("u", large)])
        await limit_pages(store, 0)
        for call in (
            store.create(title=large),
            store.update("s", title=large),
            store.update("s", metadata={"project": large}),
            store.fork("s"),
            store.append("new", [Send("u", large)], expected=ANY),
        ):
            with pytest.raises(StorageFull):
                await call
        assert [session.id for session in (await store.list()).sessions] == ["s"]
        assert (await store.get("s")).title is None
        await store.erase("s")  # makes room, needs none
        await store.create("small")


# ---- readers that stay -----------------------------------------------------------------------------------


async def _write_beside_a_reader(path: Path, total: int) -> tuple[int, int]:
    """The WAL's largest size while a reader holds its moment, and its size soon after it let go."""
    wal = path.with_name("chat.db-wal")
    largest = 0
    async with open_store(path, synchronous="NORMAL") as store:
        await store.create("s")
        with raw(path) as reader:
            reader.execute("BEGIN")
            held = reader.execute("SELECT count(*) FROM action").fetchone()
            for _ in range(total // 100):
                await asyncio.gather(*(store.append("s", [HELLO]) for _ in range(100)))
                largest = max(largest, wal.stat().st_size)
            assert reader.execute("SELECT count(*) FROM action").fetchone() == held
            reader.execute("COMMIT")
        for _ in range(3):
            await store.append("s", [HELLO])
        after = wal.stat().st_size
        assert (await store.get("s")).number == total + 3
        assert (await store.check("s")).problems == ()
    return largest, after


async def test_a_long_reader_leaves_a_bounded_wal(path: Path) -> None:
    largest, after = await _write_beside_a_reader(path, 20_000)
    assert largest > 5 * 2**20, "the reader was not in the way"
    assert after <= 4 * 2**20


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_a_long_reader_beside_a_hundred_thousand_appends(path: Path) -> None:
    _, after = await _write_beside_a_reader(path, 100_000)
    assert after <= 4 * 2**20


async def test_many_appends_alone_keep_the_wal_small(path: Path) -> None:
    wal = path.with_name("chat.db-wal")
    async with open_store(path, synchronous="NORMAL") as store:
        await store.create("s")
        for _ in range(15):
            await asyncio.gather(*(store.append("s", [HELLO]) for _ in range(1_000)))
            assert wal.stat().st_size <= 8 * 2**20


# ---- files that are damaged ------------------------------------------------------------------------------


async def test_a_page_that_is_no_page(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
        await store.append("s", CONVERSATION * 40)
    ruin(path)
    async with open_store(path) as store:
        met: list[str] = []
        for call in (store.check("s"), store.read("s", limit=10_000), store.append("s", [HELLO] * 100)):
            try:
                await call
            except StoreDamaged as error:
                met.append(error.next_step)
        assert met, "no call met the damage"
        assert all("backup" in next_step for next_step in met)


def ruin(path: Path) -> None:
    """Overwrite every other page of the second half, where the log is; before it stand schema and sessions."""
    with open(path, "r+b") as file:
        pages = path.stat().st_size // 4096
        for page in range(pages // 2, pages, 2):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
