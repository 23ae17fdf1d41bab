"""Retention beside others who write, and one that is cut short."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import cast

import anyio
import pytest

from talkfold.actions import Send
from talkfold.store import Expired, Hold, Retention, open_store
from talkfold.store.sqlite import retaining
from talkfold.store.sqlite.doctor import diagnose
from talkfold.store.sqlite.retaining import Due, batches
from talkfold.store.sqlite.store import SqliteStore

SECRET = b"zqretain7f3a9"
EVERYTHING = Retention(timedelta(0))


def files(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


async def test_what_happens_between_the_look_and_the_erasure_counts(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process writes to one session, runs a second, and erases a third; only the rest goes."""
    now = 1_000_000
    async with (
        open_store(path, clock=lambda: now) as opened,
        open_store(path, clock=lambda: now) as elsewhere,
    ):
        store = cast("SqliteStore", opened)
        for name in ("written", "runs", "erased", "goes"):
            await store.create(name)
        now += 10_000
        look = store._due  # pyright: ignore[reportPrivateUsage]

        async def meanwhile(rule: Retention) -> list[Due]:
            due = await look(rule)
            await elsewhere.append("written", [Send("u", "hi")])
            await elsewhere.start("runs", Send("u", "hi"), hold=Hold("r", 60))
            await elsewhere.erase("erased", by="somebody else")
            return due

        monkeypatch.setattr(store, "_due", meanwhile)
        erased = await store.retain(Retention(timedelta(seconds=5)), dry_run=False)
        assert [it.id for it in erased] == ["goes"]
        assert {it.id for it in (await store.list()).sessions} == {"written", "runs"}
        for name in ("written", "runs"):
            assert (await store.check(name)).problems == ()


async def test_others_write_between_the_batches(path: Path) -> None:
    async with open_store(path) as store:
        for number in range(450):
            await store.create(f"s{number}")
        await store.create("live", owner="ann")
        done = False
        seen: list[int] = []

        async def write() -> None:
            while not done:
                await store.append("live", [Send("u", "hi")])
                seen.append(len((await store.list(limit=1000)).sessions))

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            rule = Retention(timedelta(0), statuses=("idle",))
            await store.append("live", [Send("u", "a turn is open, so its status is another one")])
            erased = await store.retain(rule, dry_run=False)
            done = True
        assert len(erased) == 450
        assert any(1 < count < 451 for count in seen), "all went in one transaction"
        assert (await store.check("live")).problems == ()


@pytest.mark.parametrize("after", [1, 2])
async def test_one_that_is_cancelled_has_erased_some_and_left_no_trace_of_them(
    path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(retaining, "_MOST_SESSIONS", 3)
    async with open_store(path) as store:
        for number in range(12):
            await store.create(
                f"s{number}", actions=[Send("u", SECRET.decode())] if number < 3 else [Send("u", "kept")]
            )
        real, begun = retaining.erase_due, 0
        loop = asyncio.get_running_loop()

        def counted(*arguments: object, **more: object) -> object:
            nonlocal begun
            begun += 1
            if begun == after:
                loop.call_soon_threadsafe(task.cancel)
            return real(*arguments, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(retaining, "erase_due", counted)
        task = asyncio.create_task(store.retain(EVERYTHING, dry_run=False))
        with pytest.raises(asyncio.CancelledError):
            await task
        left = (await store.list()).sessions
        assert len(left) == 12 - 3 * after
        for session in left:
            assert (await store.check(session.id)).problems == ()
        assert SECRET not in files(path)
    assert diagnose(path).healthy


def test_batches_are_small_in_number_and_bytes() -> None:
    def due(*sizes: int) -> list[Due]:
        return [Due(key, Expired(f"s{key}", "idle", 1, size, 0)) for key, size in enumerate(sizes)]

    million = 1024 * 1024
    assert list(batches([])) == []
    assert [len(batch) for batch in batches(due(*[0] * 250))] == [100, 100, 50]
    assert list(batches(due(3 * million, million, 1, 9 * million, 9 * million, 0))) == [[0, 1], [2], [3], [4], [5]]
