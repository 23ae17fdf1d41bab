"""Live runs: parts a second through a run, the way to a follower in another process, many runs at once."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from talkfold.runs import start_run
from talkfold.store import open_store

from .agents import clocked
from .bench import Bench
from .logs import bodies, deltas
from .sqlite_plain import connect, insert_many, row
from .table import Line, duration
from .talkfold_store import FILE

__all__ = ("in_process", "live_runs")

_CHUNK = 1_000
_CHARACTERS = 34
_MB = 1 << 20


async def live_runs(bench: Bench) -> list[Line]:
    """One run of text deltas, read by its caller while it is logged (``synchronous=FULL``), in a process of its own;
    the same number of rows in plain sqlite3, a thousand a transaction. The delay from the agent's ``yield`` to a
    follower in another process, at a hundred parts a second. Hundreds of runs at once, each with tool calls."""
    return [*await _throughput(bench), await _delay(bench), await _at_once(bench)]


async def in_process(*arguments: object) -> Any:
    """What ``benchmarks.run_process`` says to these arguments."""
    command = [sys.executable, "-m", "benchmarks.run_process", *map(str, arguments)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return json.loads(said)


async def _throughput(bench: Bench) -> list[Line]:
    count, rounds, long = bench.size(200_000, 20_000), bench.size(5, 1), bench.size(1_000_000, 100_000)
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(rounds):
        async with bench.scratch() as folder:
            found = await in_process("parts", folder / FILE, count)
            ours.append(found["parts"] / found["seconds"])
        async with bench.scratch() as folder:
            floor.append(count / await asyncio.to_thread(_plain, folder / "plain.db", count))
    grown: list[float] = []
    for size in (long // 4, long):
        async with bench.scratch() as folder:
            grown.append((await in_process("parts", folder / FILE, size))["grown"] / _MB)
    text = long * _CHARACTERS / _MB
    rate, plain = median(ours), median(floor)
    return [
        Line(
            "parts a second through a run, durable",
            "50,000",
            f"{rate:,.0f} (plain sqlite3 {plain:,.0f} rows, a thousand a transaction)",
            rate >= 50_000,
        ),
        Line(
            f"memory that a run adds, {long // 4:,} and {long:,} parts (a conversation of {text:.0f} MB)",
            "flat beside the conversation",
            f"{grown[0]:.0f} MB and {grown[1]:.0f} MB",
            grown[1] - grown[0] < 1.5 * text + 16,
        ),
    ]


def _plain(path: Path, count: int) -> float:
    rows = [row(1, number, body) for number, body in enumerate(bodies(deltas(count)), start=1)]
    connection = connect(path)
    start = perf_counter()
    for first in range(0, count, _CHUNK):
        insert_many(connection, rows[first : first + _CHUNK])
    seconds = perf_counter() - start
    connection.close()
    return seconds


async def _delay(bench: Bench) -> Line:
    count = bench.size(2_000, 200)
    async with bench.scratch() as folder, open_store(folder / FILE) as store:
        session = await store.create()
        command = [sys.executable, "-m", "benchmarks.run_process", "follow", str(folder / FILE), session.id]
        async with start_run(store, session.id, clocked(count, 0.01), text="go") as run:
            follower = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            await run.wait()
        said, _ = await follower.communicate()
    delays = [nanoseconds / 1e9 for nanoseconds in json.loads(said.split(b"\n")[1])["delays"]]
    delays = delays[len(delays) // 10 :]  # while the follower starts up, parts wait for it
    middle, late = median(delays), quantiles(delays, n=100)[98]
    reached = f"median {duration(middle)}, 99th percentile {duration(late)}"
    return Line("from yield to a follower in another process", "10 ms, 50 ms", reached, middle < 0.01 and late < 0.05)


async def _at_once(bench: Bench) -> Line:
    runs, count, pause = bench.size(500, 50), bench.size(1_000, 200), 0.05
    async with bench.scratch() as folder:
        found = await in_process("many", folder / FILE, runs, count, pause)
    rate, grown = found["parts"] / found["seconds"], found["grown"]
    reached = f"{rate:,.0f} parts a second in all, {grown / _MB:.0f} MB more"
    return Line(f"{runs} runs at once, {count:,} parts each, with tools", "flat memory", reached, grown < 64 * _MB)
