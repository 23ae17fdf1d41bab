"""Growth: does the hundred-thousandth append cost more than the thousandth, and how much disk does a log take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from talkfold.actions import SessionAction

from .bench import Bench, disk_bytes, fill
from .logs import bodies, conversation, deltas
from .measure import Contender, Stopwatch, in_turns, ratio
from .sqlite_plain import PLAIN
from .stores import Store, StoredLog
from .table import Line, duration
from .talkfold_store import TALKFOLD

__all__ = ("append_growth", "disk")


async def append_growth(bench: Bench) -> list[Line]:
    """Single durable appends in turns to a session of 1,000 actions and to one of 100,000; for the peers, the last
    tenth of 500 appends beside the first."""
    long, short = bench.size(100_000, 10_000), 1_000
    async with bench.scratch() as far, bench.scratch() as near:
        await fill(TALKFOLD, far, conversation(long))
        await fill(TALKFOLD, near, conversation(short))
        async with TALKFOLD.opened(far) as one, TALKFOLD.opened(near) as other:
            contenders = [_appending("long", await one.log("s-1")), _appending("short", await other.log("s-1"))]
            times = await in_turns(contenders, bench.size(80, 10))
    share = ratio(times["long"], times["short"])
    reached = f"{share:.2f} × ({duration(times['long'].median)}; {duration(times['short'].median)})"
    peers = [f"{peer.name} {await _last_by_first(bench, peer):.1f} × within 500" for peer in bench.peers]
    return [Line(f"append at {long:,} actions", f"1.2 × that at {short:,}", reached, share <= 1.2, tuple(peers))]


def _appending(name: str, log: StoredLog) -> Contender:
    items = TALKFOLD.prepare(bodies(conversation(10, seed=7)))

    async def turn(watch: Stopwatch) -> None:
        with watch.running():
            for item in items:
                await log.append([item])

    return Contender(name, turn, units=len(items))


async def _last_by_first(bench: Bench, store: Store) -> float:
    count = bench.size(500, 100)
    items = store.prepare(bodies(conversation(count)))
    seconds: list[float] = []
    async with bench.opened([store]) as [(_, place)]:
        log = await place.log("s-1")
        for item in items:
            start = perf_counter()
            await log.append([item])
            seconds.append(perf_counter() - start)
    tenth = count // 10
    return sorted(seconds[-tenth:])[tenth // 2] / sorted(seconds[:tenth])[tenth // 2]


async def disk(bench: Bench) -> list[Line]:
    """All files of the closed store (log, hashes, snapshots, tables) beside the JSON of the actions; for the peers
    after 500 appends of one item each."""
    count, few = bench.size(100_000, 10_000), bench.size(500, 100)
    kinds: dict[str, Callable[[int], list[SessionAction]]] = {
        "a realistic conversation": conversation,
        "text deltas of 204 bytes": deltas,
    }
    lines: list[Line] = []
    for kind, log in kinds.items():
        rows = bodies(log(count))
        share, plain = await _share(bench, TALKFOLD, rows, 100), await _share(bench, PLAIN, rows, 100)
        peers = [f"{peer.name} {await _share(bench, peer, rows[:few], 1):.1f} ×" for peer in bench.peers]
        work = f"bytes on disk, {count:,} actions of {kind}"
        reached = f"{share:.2f} × (plain {plain:.2f} ×)"
        lines.append(Line(work, "1.6 × the log's JSON", reached, share <= 1.6, tuple(peers)))
    return lines


async def _share(bench: Bench, store: Store, rows: Sequence[bytes], batch: int) -> float:
    async with bench.scratch() as folder:
        await fill(store, folder, store.prepare(rows), batch)
        return disk_bytes(folder) / sum(map(len, rows))
