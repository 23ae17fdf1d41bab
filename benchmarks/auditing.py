"""Auditing a very long log: what is wrong in it, its proof, any moment of it, and what else is read out of it.

All with the realistic conversation. The floor is decoding: the JSON of the actions alone, in memory, and the log read
from the store, which is how anybody gets it decoded.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import Random

from talkfold import audit
from talkfold.actions import SessionAction
from talkfold.cli.wording import state_lines
from talkfold.codec import decode_actions, decode_state, encode_state
from talkfold.fold import fold
from talkfold.log import LoggedAction
from talkfold.model import SessionState
from talkfold.store import SessionStore, open_store

from .bench import Bench, fill
from .logs import bodies, conversation
from .measure import Contender, Stopwatch, in_turns, ratio
from .table import Line, duration
from .talkfold_store import FILE, TALKFOLD

__all__ = ("audit_functions", "audit_store", "state_diff")

_PAGE = 1_000


async def audit_store(bench: Bench) -> list[Line]:
    """Findings and check over the log in a store, and the state at any number of it."""
    count = bench.size(1_000_000, 50_000)
    async with bench.scratch() as folder:
        actions = conversation(count)
        await fill(TALKFOLD, folder, actions, batch=500)
        rows = bodies(actions)
        del actions
        path = folder / FILE
        async with open_store(path) as store:
            work = {"read": _read, "findings": _findings, "check": _check}
            contenders = [_asking(name, store, each) for name, each in work.items()]
            times = await in_turns([_timed("decode", lambda: _decode(rows)), *contenders], bench.size(3, 2))
        lines = [
            Line(
                f"{name} over {count:,} actions",
                "3 × reading them decoded",
                f"{ratio(times[name], times['read']):.2f} × ({duration(times[name].median)}; reading"
                f" {duration(times['read'].median)}; only their JSON decoded {duration(times['decode'].median)})",
                ratio(times[name], times["read"]) <= 3,
            )
            for name in ("findings", "check")
        ]
        return [*lines, *await _moments(path, count, bench.size(40, 10))]


async def _moments(path: Path, count: int, rounds: int) -> list[Line]:
    """The state at random numbers, each in a store that was just opened, and its lines as ``show --at`` prints them."""
    times = await in_turns([_moment("state", path, count, False), _moment("show", path, count, True)], rounds)
    found, whole = times["state"], times["show"]
    spread = f"a quarter below {duration(found.low)}, a quarter above {duration(found.high)}"
    work = f"of {count:,} actions, at a random number, cold"
    return [
        Line(f"state {work}", "50 ms", f"{duration(found.median)} ({spread})", found.median <= 0.05),
        Line("the same, with the lines that `show --at` prints", "50 ms", duration(whole.median), whole.median <= 0.05),
    ]


def _moment(name: str, path: Path, count: int, lines: bool) -> Contender:
    numbers = Random(3)

    async def turn(watch: Stopwatch) -> None:
        async with open_store(path) as store:
            at = numbers.randint(1, count)
            with watch.running():
                found = await store.state("s-1", at=at)
                if lines:
                    _drain(state_lines(found.state, 100))

    return Contender(name, turn)


async def audit_functions(bench: Bench) -> list[Line]:
    """What the pure functions take for a log that is decoded, in relation to decoding its JSON."""
    count = bench.size(1_000_000, 50_000)
    rows = _rows(bodies(conversation(count)))
    work: dict[str, Callable[[], object]] = {
        "findings": lambda: _drain(audit.findings(rows)),
        "blame": lambda: audit.Blame(rows),
        "lanes": lambda: audit.lanes(rows),
        "timings": lambda: audit.timings(rows),
        "what_if": lambda: audit.what_if(rows, [audit.Skip(count // 2)]),
        "replay": lambda: audit.Replay(rows),
    }
    floor = _timed("decode", lambda: _decode([row.body for row in rows]))
    times = await in_turns([floor, *(_timed(name, each) for name, each in work.items())], bench.size(2, 2), warm_up=0)
    decode = times.pop("decode")
    told = ", ".join(f"{name} {ratio(each, decode):.1f} ×" for name, each in times.items())
    return [Line(f"audit {count:,} decoded actions", "–", f"{told} (decoding {duration(decode.median)})", None)]


def _rows(stored: list[bytes]) -> list[LoggedAction]:
    actions = decode_actions(stored)
    return [
        LoggedAction(number, 1_700_000_000_000 + 20 * number, action, body, None)
        for number, (action, body) in enumerate(zip(actions, stored, strict=True), 1)
    ]


async def state_diff(bench: Bench) -> list[Line]:
    """Two states of a thousand messages that share nothing in memory, as those of two sessions do."""
    rounds = bench.size(25, 5)
    log = conversation(60_000)
    before = _unshared(_messages(log, 1_000))
    after = _unshared(_messages([action for number, action in enumerate(log) if number % 400], 1_000))
    del log
    gc.collect()
    gc.freeze()  # the log must not be what a collection in the middle looks through
    times = await in_turns([_timed("diff", lambda: audit.diff(before, after))], rounds)
    found = times["diff"].median
    operations = sum(len(level.messages) for level in audit.diff(before, after).levels)
    return [
        Line(
            "diff of two states of 1,000 messages",
            "20 ms",
            f"{duration(found)} ({operations} messages differ)",
            found <= 0.02,
        )
    ]


def _messages(log: list[SessionAction], count: int) -> SessionState:
    state = fold(log)
    return SessionState(state.messages[:count], state.status, state.error)


def _unshared(state: SessionState) -> SessionState:
    return decode_state(encode_state(state))


# ---- what is timed ----------------------------------------------------------------------------------------


def _decode(rows: list[bytes]) -> None:
    for start in range(0, len(rows), _PAGE):
        decode_actions(rows[start : start + _PAGE])


async def _read(store: SessionStore) -> None:
    after = 0
    while page := await store.read("s-1", after=after, limit=_PAGE):
        after = page[-1].number


async def _findings(store: SessionStore) -> None:
    auditor = audit.Auditor()
    after = 0
    while page := await store.read("s-1", after=after, limit=_PAGE):
        auditor.feed(page)
        after = page[-1].number
    auditor.pending()


async def _check(store: SessionStore) -> None:
    assert (await store.check("s-1")).problems == ()


def _drain(each: Iterable[object]) -> None:
    deque(each, maxlen=0)


def _asking(name: str, store: SessionStore, work: Callable[[SessionStore], Awaitable[None]]) -> Contender:
    async def turn(watch: Stopwatch) -> None:
        with watch.running():
            await work(store)

    return Contender(name, turn)


def _timed(name: str, work: Callable[[], object]) -> Contender:
    async def turn(watch: Stopwatch) -> None:
        with watch.running():
            result = work()
        del result  # freeing it is not part of the work

    return Contender(name, turn)
