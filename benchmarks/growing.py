"""Growth: does the hundred-thousandth append cost more than the thousandth, and how much disk does a log take."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

from .bench import Bench, disk_bytes, fill
from .logs import bodies, conversation, deltas
from .measure import Contender, Stopwatch, in_turns, ratio
from .sqlite_plain import PLAIN
from .stores import Store, StoredLog
from .table import Line, duration
from .talkfold_store import TALKFOLD

__all__ = ("growth",)


async def growth(bench: Bench) -> list[Line]:
    """Single durable appends in turns to a session of 1,000 actions and to one of 100,000; and all files of a closed
    store (log, hashes, snapshots, tables) beside the JSON of its actions. Each peer takes 500 single appends: the
    last tenth of them beside the first, and its files after that."""
    long, short, few = bench.size(100_000, 10_000), 1_000, bench.size(500, 100)
    peers = {peer.name: await _grown(bench, peer, few) for peer in bench.peers}
    late = tuple(f"{name} {grown.late:.1f} × within {few}" for name, grown in peers.items())
    large = tuple(f"{name} {grown.share:.1f} ×" for name, grown in peers.items())
    share = await _append_growth(bench, long, short)
    lines = [
        Line(f"append at {long:,} actions", f"1.2 × that at {short:,}", share.text, share.value <= 1.2, late),
    ]
    for kind, log in (("a realistic conversation", conversation), ("text deltas of 204 bytes", deltas)):
        rows = bodies(log(long))
        ours, plain = await _share(bench, TALKFOLD, rows), await _share(bench, PLAIN, rows)
        work = f"bytes on disk, {long:,} actions of {kind}"
        reached = f"{ours:.2f} × (plain {plain:.2f} ×)"
        lines.append(Line(work, "1.6 × the log's JSON", reached, ours <= 1.6, large if log is conversation else ()))
    return lines


class _Ratio(NamedTuple):
    value: float
    text: str


async def _append_growth(bench: Bench, long: int, short: int) -> _Ratio:
    async with bench.scratch() as far, bench.scratch() as near:
        await fill(TALKFOLD, far, conversation(long))
        await fill(TALKFOLD, near, conversation(short))
        async with TALKFOLD.opened(far) as one, TALKFOLD.opened(near) as other:
            contenders = [_appending("long", await one.log("s-1")), _appending("short", await other.log("s-1"))]
            times = await in_turns(contenders, bench.size(80, 10))
    share = ratio(times["long"], times["short"])
    return _Ratio(share, f"{share:.2f} × ({duration(times['long'].median)}; {duration(times['short'].median)})")


def _appending(name: str, log: StoredLog) -> Contender:
    items = TALKFOLD.prepare(bodies(conversation(10, seed=7)))

    async def turn(watch: Stopwatch) -> None:
        with watch.running():
            for item in items:
                await log.append([item])

    return Contender(name, turn, units=len(items))


async def _share(bench: Bench, store: Store, rows: Sequence[bytes]) -> float:
    async with bench.scratch() as folder:
        await fill(store, folder, store.prepare(rows))
        return disk_bytes(folder) / sum(map(len, rows))


class _Grown(NamedTuple):
    """``late``: the time of the last tenth of the appends beside the first. ``share``: bytes on disk beside JSON."""

    late: float
    share: float


async def _grown(bench: Bench, store: Store, count: int) -> _Grown:
    rows = bodies(conversation(count))
    seconds: list[float] = []
    async with bench.scratch() as folder:
        async with store.opened(folder) as place:
            log = await place.log("s-1")
            for item in store.prepare(rows):
                start = perf_counter()
                await log.append([item])
                seconds.append(perf_counter() - start)
        share = disk_bytes(folder) / sum(map(len, rows))
    tenth = count // 10
    return _Grown(sorted(seconds[-tenth:])[tenth // 2] / sorted(seconds[:tenth])[tenth // 2], share)
