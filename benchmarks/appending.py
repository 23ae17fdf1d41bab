"""Writing: one durable append, a hundred actions at once, and many callers at a time.

All with text deltas of about 204 bytes of JSON, so that what is measured is the writing and not the variety.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count, cycle, islice
from pathlib import Path
from typing import Self

from .bench import Bench
from .logs import bodies, deltas
from .measure import Contender, Stopwatch, Timing, in_turns
from .sqlite_plain import PLAIN, connect, insert_many, row
from .stores import OpenedStore, Store, StoredLog
from .table import Line, duration, peer_ratios, speed
from .talkfold_store import TALKFOLD

__all__ = ("append_hundred", "append_one", "many_callers")


async def append_one(bench: Bench) -> list[Line]:
    """One action, awaited until it is on the disk, one after the other in one session."""
    async with bench.opened([TALKFOLD, PLAIN, *bench.peers]) as opened, bench.scratch() as folder:
        contenders = [await _appending(store, place, size=1, appends=10) for store, place in opened]
        with _Thread(folder / "hop.db") as hop:
            times = await in_turns([*contenders, hop.contender(appends=10)], bench.size(60, 10))
    floor = times.pop(_Thread.name)
    return [
        _line("one durable append", "0.75 × the same transaction in plain sqlite3", 0.75, times),
        Line(
            "of that: plain sqlite3 in a thread of its own, one hop an append (no event loop is blocked)",
            "the limit of any such store",
            f"talkfold reaches {speed(times[TALKFOLD.name], floor, 'hop')}",
            None,
        ),
    ]


async def append_hundred(bench: Bench) -> list[Line]:
    """A hundred actions in one transaction."""
    stores = [TALKFOLD, PLAIN, *(peer for peer in bench.peers if peer.batches)]
    async with bench.opened(stores) as opened:
        contenders = [await _appending(store, place, size=100, appends=1) for store, place in opened]
        times = await in_turns(contenders, bench.size(100, 10), warm_up=3)
    return [_line("one append of 100 actions", "0.7 × one `executemany` of the same rows", 0.7, times)]


async def many_callers(bench: Bench) -> list[Line]:
    """Many tasks, each with a session of its own, each awaiting one append; plain sqlite3 writes the same rows with
    one ``executemany``. The peers get a tenth of the callers: some open a connection for each."""
    callers = bench.size(1000, 200)
    async with bench.opened([TALKFOLD, *bench.peers]) as opened, bench.scratch() as folder:
        contenders = [
            await _calling(store, place, callers if store is TALKFOLD else callers // 10) for store, place in opened
        ]
        with closing(connect(folder / "plain.db")) as plain:
            rivals = [*contenders, _all_at_once(plain, callers), _only_waiting(callers)]
            failures: dict[str, str] = {}
            times = await in_turns(rivals, bench.size(20, 4), failures=failures)
    floor = times.pop(_WAITING)
    work = f"{callers:,} callers, each awaiting one durable append"
    return [
        _line(work, "0.25 × one `executemany` of the same rows", 0.25, times, failures),
        Line(
            f"of that: {callers:,} asyncio tasks that only await a future, nothing written",
            "the limit of any such store",
            f"{duration(floor.median)} a caller, {floor.median / times[TALKFOLD.name].median:.0%} of talkfold's time",
            None,
        ),
    ]


async def _appending(store: Store, place: OpenedStore, size: int, appends: int) -> Contender:
    """Turns of ``appends`` appends of ``size`` actions each, all to one session."""
    log = await place.log("s-1")
    # Enough different items that none is used twice by those that refuse that.
    items = iter(store.prepare(bodies(deltas(size * appends * 130))))

    async def turn(watch: Stopwatch) -> None:
        batches = [list(islice(items, size)) for _ in range(appends)]
        with watch.running():
            for batch in batches:
                await log.append(batch)

    return Contender(store.name, turn, units=appends, every=store.every)


async def _calling(store: Store, place: OpenedStore, callers: int) -> Contender:
    """Turns in which ``callers`` tasks append one action each, all at once."""
    logs: Sequence[StoredLog] = [await place.log(f"s-{number}") for number in range(callers)]
    items = cycle(store.prepare(bodies(deltas(64))))

    async def turn(watch: Stopwatch) -> None:
        item = next(items)
        with watch.running():
            ends = await asyncio.gather(*(log.append([item]) for log in logs), return_exceptions=True)
        for error in filter(None, ends):
            raise error  # only now, when none of them is still at work

    return Contender(store.name, turn, units=callers, every=store.every, may_fail=store is not TALKFOLD)


def _all_at_once(connection: sqlite3.Connection, callers: int) -> Contender:
    """Turns in which plain sqlite3 writes the next row of each of ``callers`` sessions in one transaction."""
    body = bodies(deltas(2))[1]
    numbers = count(1)

    async def turn(watch: Stopwatch) -> None:
        number = next(numbers)
        rows = [row(session, number, body) for session in range(1, callers + 1)]
        with watch.running():
            insert_many(connection, rows)

    return Contender(PLAIN.name, turn, units=callers)


class _Thread:
    """Plain sqlite3 behind one thread: the least that a store costs which does not block its event loop."""

    name = "plain sqlite3 in a thread"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(1)
        self._numbers = count(1)
        self._body = bodies(deltas(2))[1]

    def __enter__(self) -> Self:
        self._connection = self._pool.submit(connect, self._path).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.submit(self._connection.close).result()
        self._pool.shutdown()

    def _append(self) -> None:
        insert_many(self._connection, [row(1, next(self._numbers), self._body)])

    def contender(self, appends: int) -> Contender:
        async def turn(watch: Stopwatch) -> None:
            loop = asyncio.get_running_loop()
            with watch.running():
                for _ in range(appends):
                    await loop.run_in_executor(self._pool, self._append)

        return Contender(self.name, turn, units=appends)


_WAITING = "asyncio alone"


def _only_waiting(callers: int) -> Contender:
    """Turns of tasks that await a future each, all of which are done at once."""

    async def turn(watch: Stopwatch) -> None:
        loop = asyncio.get_running_loop()
        with watch.running():
            futures = [loop.create_future() for _ in range(callers)]
            together = asyncio.gather(*(_wait(future) for future in futures))
            await asyncio.sleep(0)
            for future in futures:
                future.set_result(None)
            await together

    return Contender(_WAITING, turn, units=callers)


async def _wait(future: asyncio.Future[None]) -> None:
    await future


def _line(
    work: str, reach: str, share: float, times: dict[str, Timing], failures: Mapping[str, str] | None = None
) -> Line:
    ours, plain = times[TALKFOLD.name], times[PLAIN.name]
    peers = {name: timing for name, timing in times.items() if name not in (TALKFOLD.name, PLAIN.name)}
    met = plain.median / ours.median >= share
    failed = [f"{name}: {reason}" for name, reason in (failures or {}).items()]
    return Line(work, reach, speed(ours, plain, "plain"), met, (*peer_ratios(ours, peers), *failed))
