"""The database fails under runs that stand at every point of their scripts, on every level: one for them all."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from aftermath import Asked, Found, examine_in_new_process
from fault_play import Outcome, play
from faults import PAUSES, Cell, Here, cells
from msgspec import Struct

from talkfold import Send, StorageFull
from talkfold.store import SessionStore, open_store

Strike = Callable[[SessionStore, Path], AbstractAsyncContextManager[None]]

_HOLDS_THE_WRITE_LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


def _writer(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _HOLDS_THE_WRITE_LOCK, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@asynccontextmanager
async def locked(store: SessionStore, path: Path) -> AsyncGenerator[None]:
    """Another process is in the middle of writing."""
    process = _writer(path)
    try:
        assert process.stdout is not None
        assert await anyio.to_thread.run_sync(process.stdout.readline) == "locked\n"
        yield
    finally:
        await anyio.to_thread.run_sync(process.communicate, "\n")


@asynccontextmanager
async def full(store: SessionStore, path: Path) -> AsyncGenerator[None]:
    """Not one row more fits into the file."""

    def limit(connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")

    await store._writer._thread.run(limit)  # type: ignore[attr-defined]
    await store.create("filler")
    size = 3_000
    while size:
        try:
            await store.append("filler", [Send("u", "x" * size)])
        except StorageFull:
            size //= 2
    yield


@asynccontextmanager
async def closed(store: SessionStore, path: Path) -> AsyncGenerator[None]:
    """Whoever opened the store closes it under the runs."""
    await store.close()  # type: ignore[attr-defined]
    yield


class Struck(Struct, frozen=True):
    """A way in which the database fails: for how many seconds (``None``: until the runs have ended), with what patience
    of the store, and what the runs raise (``None``: they end well). ``some_fit``: what little some have to write may
    still be written."""

    strike: Strike
    seconds: float | None
    patience: float
    raises: str | None = None
    some_fit: bool = False


STRUCK = {
    "locked-for-a-second": Struck(locked, 1, 10),
    "locked-for-longer-than-the-timeout": Struck(locked, None, 0.2, "StoreBusy"),
    "full": Struck(full, None, 10, "StorageFull", some_fit=True),
    "closed": Struck(closed, None, 10, "StoreClosed"),
}


def judged(struck: Struck, outcome: Outcome, found: Found) -> list[str]:
    """What is wrong with how a run ended. One that could still write its end needs nobody to settle it."""
    ending = outcome.ending
    if ending is None:
        return ["the run has no ending"]
    well = (outcome.raised, ending.cause, found.settled) == (None, "agent", False)
    badly = (outcome.raised, ending.cause, found.settled) == (struck.raises, "store", ending.part is None)
    if badly and ending.part is not None and (found.reason, found.meta) != ("error", {"cause": "store"}):
        return [f"the log ends with {found.reason}, {found.meta}"]
    may_be_well = struck.some_fit or struck.raises is None
    return [] if (well and may_be_well) or (badly and struck.raises) else [f"{outcome}, {found}"]


class TestTheDatabase:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.mark.parametrize("how", STRUCK)
    @pytest.mark.anyio
    async def test_the_database_fails_under_every_run(self, how: str, tmp_path: Path) -> None:
        struck, wanted, lines = STRUCK[how], cells(PAUSES), tmp_path / "lines"
        outcomes: dict[str, Outcome] = {}
        waiting: list[Here] = []
        path = tmp_path / "chat.db"
        async with open_store(path, timeout=struck.patience) as store, anyio.create_task_group() as tasks:

            async def one(cell: Cell) -> None:
                outcomes[cell.name] = await play(cell, store, cell.name, lines, flood=0, paused=waiting.append)

            for cell in wanted:
                tasks.start_soon(one, cell)
            with anyio.fail_after(30):
                while len(waiting) < len(wanted):  # noqa: ASYNC110 - many runs, one look
                    await anyio.sleep(0.01)
                for here in waiting:
                    await here.reached.wait()
                async with struck.strike(store, path):
                    for here in waiting:
                        here.go_on.set()
                    if struck.seconds is None:
                        while len(outcomes) < len(wanted):  # noqa: ASYNC110 - many runs, one look
                            await anyio.sleep(0.01)
                    else:
                        await anyio.sleep(struck.seconds)
        asked = [Asked(cell.name, cell.level) for cell in wanted]
        found = await anyio.to_thread.run_sync(examine_in_new_process, path, asked, lines)
        wrong: list[str] = []
        for cell, each in zip(wanted, found, strict=True):
            wrong += [f"{cell.name}: {text}" for text in (*each.problems, *judged(struck, outcomes[cell.name], each))]
        assert wrong == []


@pytest.mark.anyio
async def test_a_store_that_is_closed_under_the_runs_ends_them(store_kind: str, tmp_path: Path) -> None:
    wanted, lines = cells(PAUSES), tmp_path / "lines"
    outcomes: dict[str, Outcome] = {}
    waiting: list[Here] = []
    path = "memory:" if store_kind == "memory" else tmp_path / "chat.db"
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            async with open_store(path) as store:

                async def one(cell: Cell) -> None:
                    outcomes[cell.name] = await play(cell, store, cell.name, lines, flood=0, paused=waiting.append)

                for cell in wanted:
                    tasks.start_soon(one, cell)
                while len(waiting) < len(wanted):  # noqa: ASYNC110 - many runs, one look
                    await anyio.sleep(0.01)
                for here in waiting:
                    await here.reached.wait()
            for here in waiting:
                here.go_on.set()
    assert {outcome.raised for outcome in outcomes.values()} == {"StoreClosed"}
    assert {outcome.ending and outcome.ending.cause for outcome in outcomes.values()} == {"store"}
