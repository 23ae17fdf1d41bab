"""Reading: load and fold a conversation, and the state or Retry payload of a very long one.

All with the realistic conversation. *Cold* means a new store object, as in a new process; the file may be in the
operating system's page cache, for talkfold and the peers alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from talkfold.actions import Part, SessionAction, TextDelta
from talkfold.codec import encode_messages
from talkfold.resumable import retry_plan
from talkfold.store import SessionStore, open_store

from .bench import Bench, fill
from .logs import bodies, conversation
from .measure import Contender, Stopwatch, Timing, in_turns
from .stores import Store
from .table import Line, duration, peer_ratios
from .talkfold_store import FILE, TALKFOLD, drop_snapshots

__all__ = ("load_ten_thousand", "long_session")

Ask = Callable[[SessionStore], Awaitable[object]]


async def load_ten_thousand(bench: Bench) -> list[Line]:
    """The state of a session, from its first action and from its snapshot; the peers give back their own items, with
    nothing folded."""
    count = bench.size(10_000, 2_000)
    rows = bodies(conversation(count))
    whole, cached = f"load and fold {count:,} actions, cold", "the same, from its snapshot"
    async with bench.scratch() as folder:
        contenders: list[Contender] = []
        for number, store in enumerate((TALKFOLD, *bench.peers)):
            place = folder / str(number)
            place.mkdir()
            # Those that write one item at a time get a tenth, and the time is scaled: they are slow to fill.
            part = count if store.batches else count // 10
            await fill(store, place, store.prepare(rows[:part]))
            contenders.append(_loading(store.name, store, place, part))
        ours = folder / "0"
        contenders += [
            _loading(cached, TALKFOLD, ours, count),
            _loading(whole, TALKFOLD, ours, count, before=lambda: drop_snapshots(ours)),
        ]
        times = await in_turns(contenders[1:], bench.size(15, 4))
    scaled = {name: _times(timing, count) for name, timing in times.items()}
    lines: list[Line] = []
    for work in (whole, cached):
        found = scaled[work]
        peers = {peer.name: scaled[peer.name] for peer in bench.peers}
        lines.append(Line(work, "30 ms", duration(found.median), found.median <= 0.03, peer_ratios(found, peers)))
    return lines


def _loading(name: str, store: Store, place: Path, units: int, before: Callable[[], None] | None = None) -> Contender:
    async def turn(watch: Stopwatch) -> None:
        if before is not None:
            before()
        async with store.opened(place) as opened:
            log = await opened.log("s-1")
            with watch.running():
                loaded = await log.load()
        assert loaded == units

    return Contender(name, turn, units)


async def long_session(bench: Bench) -> list[Line]:
    """A session of 100,000 actions: its state, what Retry would send, and that as JSON."""
    count = bench.size(100_000, 10_000)
    asks: dict[str, Ask] = {"state": _state, "Retry plan": _retry, "Retry payload as JSON": _payload}
    lines: list[Line] = []
    async with bench.scratch() as folder:
        await fill(TALKFOLD, folder, conversation(count))
        path = folder / FILE
        cold = await in_turns([_cold(name, path, ask) for name, ask in asks.items()], bench.size(25, 5))
        async with open_store(path) as store:
            warm = await in_turns([_warm(name, store, ask) for name, ask in asks.items()], bench.size(25, 5))
    for name in asks:
        lines += [
            _line(f"{name} of {count:,} actions, from a snapshot", 10, cold[name]),
            _line(f"{name} of {count:,} actions, warm, one action later", 1, warm[name]),
        ]
    return lines


async def _state(store: SessionStore) -> object:
    return await store.state("s-1")


async def _retry(store: SessionStore) -> object:
    return retry_plan((await store.state("s-1")).state.messages)


async def _payload(store: SessionStore) -> object:
    return encode_messages(retry_plan((await store.state("s-1")).state.messages).messages)


def _cold(name: str, path: Path, ask: Ask) -> Contender:
    async def turn(watch: Stopwatch) -> None:
        async with open_store(path) as store:
            with watch.running():
                await ask(store)

    return Contender(name, turn)


def _warm(name: str, store: SessionStore, ask: Ask) -> Contender:
    """Each time one more action has come since the last time it was asked."""

    async def turn(watch: Stopwatch) -> None:
        found = await store.state("s-1")
        await store.append("s-1", [_next(found.state.messages[-1].id)])
        with watch.running():
            await ask(store)

    return Contender(name, turn)


def _next(message: str) -> SessionAction:
    return Part(TextDelta(message, "and a few more words"))


def _line(work: str, milliseconds: float, timing: Timing) -> Line:
    return Line(work, f"{milliseconds:g} ms", duration(timing.median), timing.median <= milliseconds / 1000)


def _times(timing: Timing, count: int) -> Timing:
    return Timing(timing.median * count, timing.low * count, timing.high * count, timing.turns)
