"""Search: what its index costs those who write, on the disk and in time, and how long a search takes.

The two stores of a comparison differ only in that search is switched off in one. A turn is long enough that the index
is written in it, too, behind the writer's back; what is left to index after a turn is done before the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from statistics import mean, median
from time import perf_counter

from talkfold.actions import SessionAction
from talkfold.store import SessionStore, open_store

from .bench import Bench, disk_bytes
from .logs import bodies, conversation, deltas
from .running import in_process
from .table import Line, duration
from .talkfold_store import FILE

__all__ = ("searches",)

_QUERIES = ("mug", "refund cheaper", '"blue mug"', "ship*", "nowhere", "total xyzzy")


async def searches(bench: Bench) -> list[Line]:
    """Appends with the index and without, streamed runs as well; bytes on disk; a search over many sessions."""
    return [
        await _appends(bench, "one durable append", 1, bench.size(2_000, 500), 1.03),
        await _appends(bench, "one append of 100 actions", 100, bench.size(400, 50), None),
        await _streams(bench),
        await _bytes(bench),
        *await _searches(bench),
    ]


# ---- what writers pay -----------------------------------------------------------------------------------


async def _appends(bench: Bench, work: str, size: int, appends: int, most: float | None) -> Line:
    """The median of an append's time, and the mean, in which all is that was indexed meanwhile."""
    rounds = bench.size(5, 1)
    times: dict[bool, list[float]] = {True: [], False: []}
    async with AsyncExitStack() as stack:
        turns: dict[bool, tuple[SessionStore, Iterator[SessionAction]]] = {}
        for on in times:
            folder = await stack.enter_async_context(bench.scratch())
            store = await stack.enter_async_context(open_store(folder / FILE))
            await store.set_search(on)
            await store.create("s")
            turns[on] = store, iter(conversation(size * appends * rounds))
        for _ in range(rounds):
            for on, (store, log) in turns.items():
                for _ in range(appends):
                    batch = list(islice(log, size))
                    start = perf_counter()
                    await store.append("s", batch)
                    times[on].append(perf_counter() - start)
                if on:
                    await store.search("nowhere")
    one, other = median(times[True]), median(times[False])
    means = mean(times[True]) / mean(times[False])
    return Line(
        f"{work}, with the search index",
        "–" if most is None else f"{most:.2f} × that without",
        f"{one / other:.2f} × ({duration(one)}; without {duration(other)}; the means {means:.2f} ×)",
        None if most is None else one / other <= most,
    )


async def _streams(bench: Bench) -> Line:
    count, rounds = bench.size(200_000, 20_000), bench.size(5, 1)
    rates: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(rounds):
        for on in rates:
            async with bench.scratch() as folder:
                async with open_store(folder / FILE) as store:
                    await store.set_search(on)
                found = await in_process("parts", folder / FILE, count)
                rates[on].append(found["parts"] / found["seconds"])
    with_it, without = median(rates[True]), median(rates[False])
    return Line(
        "parts a second through a run, with the search index",
        "0.85 × those without",
        f"{with_it / without:.2f} × ({with_it:,.0f}; without {without:,.0f})",
        with_it >= 0.85 * without,
    )


# ---- what it takes, and gives ---------------------------------------------------------------------------


async def _bytes(bench: Bench) -> Line:
    count = bench.size(100_000, 10_000)
    shares: list[str] = []
    for kind, log in (("a realistic conversation", conversation), ("text deltas of 204 bytes", deltas)):
        rows = bodies(log(count))
        whole = sum(map(len, rows))
        async with bench.scratch() as folder:
            path = folder / FILE
            async with open_store(path) as store:
                await store.set_search(False)
                await _fill(store, "s", rows)
            bare = disk_bytes(folder)
            async with open_store(path) as store:
                await store.set_search(True)
            shares.append(f"{(disk_bytes(folder) - bare) / whole:.2f} × ({kind})")
    return Line(f"bytes of the index, {count:,} actions", "the log's JSON", "; ".join(shares), None)


async def _searches(bench: Bench) -> list[Line]:
    sessions, each = bench.size(1_000, 50), 1_000
    async with bench.scratch() as folder:
        path = folder / FILE
        rows = bodies(conversation(each))
        async with open_store(path, synchronous="NORMAL") as store:
            await store.set_search(False)
            for number in range(sessions):
                await _fill(store, f"s-{number}", rows, owner=f"o-{number % 100}")
        start = perf_counter()
        async with open_store(path) as store:
            await store.set_search(True)
            built = perf_counter() - start
            everybody = await _timed(store)
            one = await _timed(store, owner="o-7")
    total = sessions * each
    return [
        Line(
            f"making the index of {total:,} actions in {sessions:,} sessions",
            "–",
            f"{duration(built)} ({duration(built / total)} an action)",
            None,
        ),
        Line(
            f"a search over them: {', '.join(_QUERIES)}",
            "–",
            f"{', '.join(map(duration, everybody))} (of one owner in a hundred: {', '.join(map(duration, one))})",
            None,
        ),
    ]


async def _timed(store: SessionStore, owner: str | None = None) -> list[float]:
    found: list[float] = []
    for query in _QUERIES:
        times: list[float] = []
        for _ in range(5):
            start = perf_counter()
            await store.search(query, owner=owner)
            times.append(perf_counter() - start)
        found.append(median(times))
    return found


async def _fill(store: SessionStore, name: str, rows: Sequence[bytes], owner: str | None = None) -> None:
    await store.create(name, owner=owner)
    for start in range(0, len(rows), 1_000):
        await store.append(name, rows[start : start + 1_000], owner=owner)
