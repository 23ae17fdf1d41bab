"""Opening and closing: whatever happens on the way, no thread, file handle or lock is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import aiosqlite
import anyio
import pytest
from raw_database import open_files, raw

from talkfold.actions import Send
from talkfold.errors import ForeignDatabase, StoreBusy, StoreClosed, StoreUnavailable, TalkfoldError
from talkfold.store import ANY, Hold, SessionStore, open_store
from talkfold.testing.store_contract.samples import CONVERSATION

HELLO = Send("u", "hello")

POINTS = [*range(0, 12), *(step / 2_000 for step in range(1, 40))]
"""Where to cancel: after so many turns of the event loop (whole numbers), or after so many seconds."""


async def reach(point: float) -> None:
    if isinstance(point, int):
        for _ in range(point):
            await asyncio.sleep(0)
    else:
        await asyncio.sleep(point)


def assert_nothing_left(path: Path) -> None:
    """No handle on any of the database's files, no thread, and both locks free."""
    for thread in threading.enumerate():
        if thread.name.endswith(("(_connection_worker_thread)", "(_queue)")):
            thread.join(5)
            assert not thread.is_alive()
    assert [name for name in open_files() if name.startswith(str(path))] == []
    assert not Path(f"{path}-wal").exists()  # the last one to leave puts the log into the database
    if path.is_file() and path.stat().st_size:
        with open(f"{path}-lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("ROLLBACK")
        connection.close()


async def test_open_and_close_leave_nothing(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
        assert len([name for name in open_files() if name.startswith(str(path))]) >= 3
    assert_nothing_left(path)


async def test_opening_cancelled_at_any_point(path: Path) -> None:
    opened = 0
    for point in POINTS:

        async def use() -> None:
            nonlocal opened
            async with open_store(path):
                opened += 1
                await asyncio.sleep(1)

        task = asyncio.create_task(use())
        await reach(point)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert_nothing_left(path)
    assert 0 < opened < len(POINTS)  # some before it was open, some after
    async with open_store(path) as store:
        await store.create("s")


async def test_opening_in_a_cancelled_scope_at_any_point(tmp_path: Path) -> None:
    opened = 0
    for index, point in enumerate(POINTS):
        path = tmp_path / f"{index}.db"  # new each time: so migrations are cancelled, too
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def cancel(after: float, scope: anyio.CancelScope) -> None:
                    await reach(after)
                    scope.cancel()

                group.start_soon(cancel, point, scope)
                async with open_store(path):
                    opened += 1
                    await anyio.sleep(1)
        assert_nothing_left(path)
        async with open_store(path) as store:
            await store.create("s")
    assert opened


async def test_closing_cancelled_at_any_point_and_twice(path: Path) -> None:
    acknowledged = 0
    for point in POINTS[:30]:
        entered = asyncio.Event()

        async def use(entered: asyncio.Event) -> None:
            nonlocal acknowledged
            async with open_store(path) as store:
                await store.append("s", [HELLO] * 5, expected=ANY)
                acknowledged += 5
                background = [asyncio.create_task(store.append("s", [HELLO])) for _ in range(3)]
                entered.set()
            await asyncio.gather(*background)

        task = asyncio.create_task(use(entered))
        await entered.wait()
        task.cancel()
        await reach(point)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert_nothing_left(path)
    async with open_store(path) as store:
        assert (await store.get("s")).number >= acknowledged
        assert (await store.check("s")).problems == ()


async def test_an_error_inside_closes_the_store(path: Path) -> None:
    stores: list[SessionStore] = []

    async def fail() -> None:
        async with open_store(path) as store:
            stores.append(store)
            await store.create("s")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert_nothing_left(path)
    with pytest.raises(StoreClosed):
        await stores[0].get("s")


async def test_what_cannot_be_opened_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("not a database, but longer than its header would be" * 50)
    for name, kind in (
        ("no/such/folder/chat.db", StoreUnavailable),
        ("folder", StoreUnavailable),
        ("text", ForeignDatabase),
    ):
        with pytest.raises(kind) as caught:
            async with open_store(tmp_path / name):
                pytest.fail("this must not open")
        assert str(tmp_path / name) in str(caught.value)
        assert [file for file in open_files() if file.startswith(str(tmp_path))] == []


async def test_closing_while_everything_is_under_way(path: Path) -> None:
    """Everybody gets an answer or StoreClosed, soon; and what was acknowledged is there."""

    def calls(store: SessionStore, index: int) -> list[Callable[[], Awaitable[Any]]]:
        return [
            lambda: store.append("s", [HELLO]),
            lambda: store.create(),
            lambda: store.read("s", limit=10_000),
            lambda: store.state("s"),
            lambda: store.state("s", at=5),
            lambda: store.check("s"),
            lambda: store.list(),
            lambda: store.fork("s"),
            lambda: store.erase(f"gone{index}"),
            lambda: store.open_session("s"),
            lambda: anext(store.subscribe("s", after=10)),
            lambda: store.start("s", HELLO, hold=Hold("run")),
            lambda: store.renew("s", hold=Hold("run")),
            lambda: store.release("s", hold=Hold("run")),
        ]

    acknowledged = 10
    for round_ in range(25):
        async with open_store(path) as store:
            if round_ == 0:
                await store.append("s", CONVERSATION[:10], expected=ANY)
            await store.create(f"gone{round_}")
            tasks = [asyncio.create_task(call()) for call in calls(store, round_)]  # type: ignore[arg-type]
            appends = tasks[:1]
            for _ in range(3):
                tasks += [asyncio.create_task(call()) for call in calls(store, round_)[:8]]  # type: ignore[arg-type]
                appends.append(tasks[-8])
            await reach(round_ if round_ < 12 else round_ / 5_000)
        answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        for answer in answers:
            assert not isinstance(answer, BaseException) or isinstance(answer, TalkfoldError), answer
        acknowledged += sum(not isinstance(task.exception(), StoreClosed) for task in appends)
        assert_nothing_left(path)
    async with open_store(path) as store:
        assert (await store.get("s")).number >= acknowledged
        assert (await store.check("s")).problems == ()


async def test_closing_while_another_process_holds_the_lock(path: Path) -> None:
    async with open_store(path):
        pass
    lock = os.open(f"{path}-lock", os.O_RDWR)
    with contextlib.suppress(StoreBusy):  # said or not, nothing is kept
        async with open_store(path, timeout=0.3) as store:
            await store.create("s")
            fcntl.flock(lock, fcntl.LOCK_EX)
    os.close(lock)
    assert_nothing_left(path)
    async with open_store(path) as store:
        assert (await store.get("s")).number == 0


async def test_closing_twice(path: Path) -> None:
    opened = open_store(path)
    store: Any = await opened.__aenter__()
    await store.close()
    await store.close()
    await opened.__aexit__(None, None, None)
    assert_nothing_left(path)


async def test_two_stores_in_one_process(path: Path) -> None:
    async with open_store(path) as one:
        async with open_store(path) as two:
            await one.create("s")
            for number in range(20):
                assert (await (one, two)[number % 2].append("s", [HELLO], expected=number)).last == number + 1
        assert (await one.append("s", [HELLO])).last == 21
        assert (await one.check("s")).problems == ()
    assert_nothing_left(path)


async def test_the_connection_is_set_up_for_safety(path: Path) -> None:
    for synchronous, level in (("FULL", 2), ("NORMAL", 1)):
        async with open_store(path, synchronous=synchronous) as store:  # type: ignore[arg-type]

            def told(connection: sqlite3.Connection) -> dict[str, Any]:
                names = ("synchronous", "journal_mode", "secure_delete", "foreign_keys", "trusted_schema", "query_only")
                return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

            writer = await store._writer._thread.run(told)  # type: ignore[attr-defined]
            assert writer["synchronous"] == level
            await store.create(synchronous)
            assert (writer["journal_mode"], writer["secure_delete"], writer["foreign_keys"]) == ("wal", 1, 1)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                await store._reader.run(lambda connection: connection.execute("DELETE FROM head"))  # type: ignore[attr-defined]
            with pytest.raises(sqlite3.OperationalError):
                await store._reader.run(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))  # type: ignore[attr-defined]


async def test_a_reader_never_holds_its_moment(path: Path) -> None:
    """Between two calls there is no open read transaction: one would keep the WAL from being cut."""
    async with open_store(path) as store:
        await store.append("s", CONVERSATION * 5, expected=ANY)
        following = store.subscribe("s")
        for _ in range(7):
            await anext(following)
        await store.read("s", limit=3)
        await store.state("s", at=9)
        await store.list(limit=1)
        with raw(path) as connection:
            assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
        await following.aclose()  # type: ignore[attr-defined]


async def test_aiosqlite_is_as_we_use_it() -> None:
    """The private names that store/sqlite/thread.py relies on. If this fails after an upgrade, read that file."""
    made: list[int] = []

    def connect() -> sqlite3.Connection:
        made.append(threading.get_ident())
        return sqlite3.connect(":memory:", check_same_thread=False)

    inner = aiosqlite.Connection(connect, iter_chunk_size=1)
    assert isinstance(inner._tx, SimpleQueue)
    assert isinstance(inner._thread, threading.Thread)
    assert not inner._thread.is_alive()
    inner._thread.daemon = True
    await inner
    assert made == [inner._thread.ident]
    future: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
    silent = threading.Event()
    inner._tx.put_nowait((None, silent.set))
    inner._tx.put_nowait((future, threading.get_ident))
    assert await asyncio.wait_for(future, 5) == inner._thread.ident
    assert silent.is_set()  # in the order in which they were put
    failing: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    inner._tx.put_nowait((failing, lambda: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(failing, 5)
    await inner.close()
    inner._thread.join(5)
    assert not inner._thread.is_alive()
