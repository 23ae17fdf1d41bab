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
from .talkfold_store import TALKFOLD

__all__ = ("load_ten_thousand", "long_session")

Ask = Callable[[SessionStore], Awaitable[object]]


async def load_ten_thousand(bench: Bench) -> list[Line]:
    """Every action of a session read, decoded and folded; the peers give back their own items, not folded."""
    count = bench.size(10_000, 2_000)
    rows = bodies(conversation(count))
    contenders: list[Contender] = []
    async with bench.scratch() as folder:
        for number, store in enumerate((TALKFOLD, *bench.peers)):
            place = folder / str(number)
            place.mkdir()
            # Those that write one item at a time get a fifth, and the time is scaled: they are slow to fill.
            part = count if store.batches else count // 5
            await fill(store, place, store.prepare(rows[:part]))
            contenders.append(_loading(store, place, units=part))
        times = await in_turns(contenders, bench.size(15, 4))
    whole = {name: _times(timing, count) for name, timing in times.items()}
    ours = whole.pop(TALKFOLD.name)
    work = f"load and fold {count:,} actions, cold"
    return [Line(work, "30 ms", duration(ours.median), ours.median <= 0.03, peer_ratios(ours, whole))]


def _loading(store: Store, place: Path, units: int) -> Contender:
    async def turn(watch: Stopwatch) -> None:
        async with store.opened(place) as opened:
            log = await opened.log("s-1")
            with watch.running():
                loaded = await log.load()
        assert loaded == units

    return Contender(store.name, turn, units)


async def long_session(bench: Bench) -> list[Line]:
    """A session of 100,000 actions: its state, what Retry would send, and that as JSON."""
    count = bench.size(100_000, 10_000)
    asks: dict[str, Ask] = {"state": _state, "Retry plan": _retry, "Retry payload as JSON": _payload}
    lines: list[Line] = []
    async with bench.scratch() as folder:
        await fill(TALKFOLD, folder, conversation(count))
        path = str(folder / "talkfold.db")
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


def _cold(name: str, path: str, ask: Ask) -> Contender:
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
