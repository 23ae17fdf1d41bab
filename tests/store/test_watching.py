"""Watching between stores on one file, and what it costs."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import anyio
from children import started

from talkfold.actions import Finish, MessageStart, Part, Send, TextDelta
from talkfold.store import Hold, open_store
from talkfold.store.sqlite.store import SqliteStore

HELLO = Send("u", "hello")
WORD = Part(TextDelta("a", "word "))


async def until(told: list[int], last: int) -> None:
    for _ in range(2_000):
        if told[-1:] == [last]:
            return
        await anyio.sleep(0.005)
    raise AssertionError(f"{last} was not told: {told[-5:]}")


async def test_another_process_is_told_of(path: Path) -> None:
    told: list[int] = []
    async with open_store(path) as store:
        await store.create("s")
        async with store.watch("s", told.append) as number:
            assert number == 0
            code = """
async def main():
    async with open_store(path) as store:
        for _ in range(5):
            await store.append("s", [Send("u", "hello")] * 2)
            sys.stdin.readline()
        await store.erase("s")
        sys.stdin.readline()
run(main())
"""
            with started(path, code) as process:
                assert process.stdin is not None
                for step in range(1, 6):
                    await until(told, 2 * step)
                    process.stdin.write("\n")
                    process.stdin.flush()
                await until(told, -1)
        assert told == [2, 4, 6, 8, 10, -1]


async def test_own_commits_are_told_before_they_are_answered(path: Path) -> None:
    told: list[int] = []
    async with open_store(path) as store:
        await store.create("s")
        async with store.watch("s", told.append):
            for number in range(1, 20):
                await store.append("s", [HELLO])
                assert told[-1] == number
            await store.erase("s")
            assert told == [*range(1, 20), -1]


async def test_five_hundred_watchers_cost_one_query_and_only_after_a_write(path: Path) -> None:
    told: dict[int, list[int]] = {index: [] for index in range(500)}
    async with open_store(path, synchronous="NORMAL") as store, open_store(path, synchronous="NORMAL") as other:
        for index in told:
            await store.create(f"s{index}")
        said: list[str] = []
        reader = cast("SqliteStore", store)._reader
        async with AsyncExitStack() as stack:
            for index, numbers in told.items():
                await stack.enter_async_context(store.watch(f"s{index}", numbers.append))
            await anyio.sleep(0.05)
            await reader.run(lambda connection: connection.set_trace_callback(said.append))
            await anyio.sleep(0.1)
            assert [sql for sql in said if not sql.startswith("PRAGMA data_version")] == []
            assert len(said) > 5
            said.clear()
            await other.append("s7", [HELLO])
            await until(told[7], 1)
            await anyio.sleep(0.05)
            assert len([sql for sql in said if not sql.startswith("PRAGMA data_version")]) == 1
            await reader.run(lambda connection: connection.set_trace_callback(None))
        assert {index for index, numbers in told.items() if numbers} == {7}
        followers = cast("SqliteStore", store)._followers
        assert followers._watching == {}
        await anyio.sleep(0.03)
        assert followers._poller is None  # nobody looks where nobody watches


async def test_a_run_that_writes_touches_its_lease_only_when_a_third_is_over(path: Path) -> None:
    said: list[str] = []
    hold = Hold("run", 3_600)
    async with open_store(path) as store:
        await store.create("s")
        await store.start("s", HELLO, hold=hold)
        await store.append("s", [Part(MessageStart("a"))], hold=hold)
        writing = cast("SqliteStore", store)._writer._thread
        await writing.run(lambda connection: connection.set_trace_callback(said.append))
        for _ in range(20):
            await store.append("s", [WORD], hold=hold)
        await store.append("s", [Part(Finish("stop"))], hold=hold)
        await writing.run(lambda connection: connection.set_trace_callback(None))
    assert sum(sql.startswith("COMMIT") for sql in said) == 21
    assert [sql for sql in said if "lease" in sql] == []
