"""A replay over a store gives, at every number, the state that folding the log up to there gives, and reads little."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from talkfold.actions import Finish, MessageStart, Part, Send, SessionAction, TextDelta, ToolCall, ToolResult
from talkfold.audit import Replay
from talkfold.errors import InvalidArgument, SessionErased
from talkfold.fold import fold
from talkfold.log import LoggedAction
from talkfold.model import EMPTY_SESSION
from talkfold.store import SessionStore, StateAt, open_store
from talkfold.store.replay import StoreReplay
from talkfold.testing.strategies import logs

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


class Reads:
    """What is asked of a store: how many rows, and how many states."""

    def __init__(self) -> None:
        self.rows = self.states = 0


@contextmanager
def counted(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    """Counts the reads of a store inside the block."""
    reads = Reads()
    read, state = store.read, store.state

    async def reading(
        session_id: str, *, after: int = 0, limit: int = 1000, owner: str | None = None
    ) -> tuple[LoggedAction, ...]:
        rows = await read(session_id, after=after, limit=limit, owner=owner)
        reads.rows += len(rows)
        return rows

    async def stating(session_id: str, *, at: int | None = None, owner: str | None = None) -> StateAt:
        reads.states += 1
        return await state(session_id, at=at, owner=owner)

    with monkeypatch.context() as patch:
        patch.setattr(store, "read", reading)
        patch.setattr(store, "state", stating)
        yield reads


_MOVES = st.lists(st.tuples(st.sampled_from(("seek", "step", "at")), st.integers(-40, 60)), max_size=40)


@given(logs(), _MOVES, st.integers(1, 20))
def test_in_any_order(log: list[SessionAction], moves: list[tuple[str, int]], reach: int) -> None:
    """Leaps, steps of any length and looks elsewhere; windows of any size."""

    async def walk() -> None:
        log_ = log * 4 or [Send("u", "Hello")]
        async with open_store("memory:") as store:
            replay = StoreReplay(store, await store.create(actions=log_), reach=reach)
            here = 0
            for move, value in moves:
                place = value % (replay.last + 1)
                if move == "seek":
                    here = place
                    assert await replay.seek(here) == fold(log_[:here])
                elif move == "step":
                    here = min(max(here + value, 0), replay.last)
                    assert await replay.step(value) == fold(log_[:here])
                else:
                    assert await replay.state_at(place) == fold(log_[:place])
                assert replay.number == here
                assert replay.state == fold(log_[:here])

    anyio.run(walk)


@given(logs(), st.integers(1, 9))
def test_forward_and_back_by_single_steps(log: list[SessionAction], reach: int) -> None:
    async def walk() -> None:
        log_ = log * 3 or [Send("u", "Hello")]
        async with open_store("memory:") as store:
            replay = StoreReplay(store, await store.create(actions=log_), reach=reach)
            for number in range(1, len(log_) + 1):
                assert await replay.step() == fold(log_[:number])
            for number in range(len(log_) - 1, -1, -1):
                assert await replay.step(-1) == fold(log_[:number])

    anyio.run(walk)


def conversation(count: int) -> Iterator[SessionAction]:
    """A long one: turns of about twenty actions, with a call in each."""
    number = turn = 0
    while True:
        message, call = f"a{turn}", f"c{turn}"
        parts = [
            MessageStart(message),
            *(TextDelta(message, f"word {piece} of turn {turn}, ") for piece in range(15)),
            ToolCall(message, call, "find", {"turn": turn}),
            ToolResult(call, {"found": turn}),
            Finish("stop"),
        ]
        for action in (Send(f"u{turn}", f"Turn {turn}"), *map(Part, parts)):
            if number == count:
                return
            yield action
            number += 1
        turn += 1


async def _long_log(path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = list(conversation(count))
    async with open_store(path) as store:
        await store.create("long")
        for begin in range(0, count, 5_000):
            await store.append("long", log[begin : begin + 5_000])
        for number in range(0, count, count // 20):  # so that snapshots are taken on the way, as when they are needed
            await store.state("long", at=number)
    del store
    dice = random.Random(count)
    async with open_store(path) as store:
        session = await store.get("long")
        replay = StoreReplay(store, session)
        # Anywhere: one state and no row.
        with counted(store, monkeypatch) as reads:
            for _ in range(3):
                number = dice.randrange(count)
                assert await replay.state_at(number) == fold(log[:number])
        assert (reads.states, reads.rows) == (3, 0)
        # Ten thousand steps back: about two rows a step, and a state now and then.
        begin = count - 500
        await replay.seek(begin)
        with counted(store, monkeypatch) as reads:
            for _ in range(10_000):
                await replay.step(-1)
        assert replay.state == fold(log[: begin - 10_000])
        assert reads.states <= 6
        assert reads.rows <= 25_000
        # And forward again, where nothing but rows is needed.
        with counted(store, monkeypatch) as reads:
            for _ in range(10_000):
                await replay.step()
        assert replay.state == fold(log[:begin])
        assert reads.states == 0
        assert reads.rows <= 12_500
        # To and fro over the end of a window reads it once.
        with counted(store, monkeypatch) as reads:
            for _ in range(200):
                await replay.step(20)
                await replay.step(-20)
        assert reads.rows <= 10_000
        # Marks: each row once, and then none.
        with counted(store, monkeypatch) as reads:
            marks = await replay.marks()
            assert await replay.marks() is marks
        assert (reads.rows, reads.states) == (count, 0)
        assert len(marks.find("send")) == sum(isinstance(action, Send) for action in log)
        (call, outcome) = marks.of_call(18)
        assert (call.id, outcome.number) == ("c0", 19)


async def test_a_long_log_is_read_little(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await _long_log(path, 100_000, monkeypatch)


@pytest.mark.long
async def test_a_very_long_log_is_read_no_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await _long_log(path, 1_000_000, monkeypatch)


async def test_large_actions_make_small_windows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = [Part(MessageStart("a")), *(Part(TextDelta("a", "x" * 200_000)) for _ in range(200))]
    async with open_store(path) as store:
        replay = StoreReplay(store, await store.create(actions=log))
        with counted(store, monkeypatch) as reads:
            assert await replay.step() == fold(log[:1])
        assert reads.rows < 100


async def test_marks_are_those_of_a_log_in_memory(path: Path) -> None:
    log = list(conversation(2_500))
    async with open_store(path) as store:
        session = await store.create(actions=log)
        replay = StoreReplay(store, session)
        marks = await replay.marks()
        whole = Replay(await store.read(session.id, limit=10_000))
        assert marks.all == whole.marks
        await replay.seek(1_000)
        whole.seek(1_000)
        for kinds in ((), ("call",), ("send", "finish")):
            assert marks.after(replay.number, *kinds) == whole.next_mark(*kinds)
            assert marks.before(replay.number, *kinds) == whole.previous_mark(*kinds)


async def test_the_ends_of_the_log(path: Path) -> None:
    async with open_store(path) as store:
        empty = StoreReplay(store, await store.create("empty"))
        assert await empty.step() is EMPTY_SESSION
        assert await empty.step(-1) is EMPTY_SESSION
        assert await empty.state_at(0) is EMPTY_SESSION
        assert (await empty.marks()).all == ()
        replay = StoreReplay(store, await store.create("one", actions=[Send("u", "Hello")]))
        assert await replay.step(5) == fold([Send("u", "Hello")])
        for number in (-1, 2):
            with pytest.raises(InvalidArgument):
                await replay.seek(number)
            with pytest.raises(InvalidArgument):
                await replay.state_at(number)
        assert replay.number == 1
        with pytest.raises(InvalidArgument):
            StoreReplay(store, await store.get("one"), reach=0)


async def test_what_is_logged_later_is_not_part_of_it(path: Path) -> None:
    async with open_store(path) as store:
        replay = StoreReplay(store, await store.create("one", actions=[Send("u", "Hello")]))
        await store.append("one", [Send("v", "Hello again")])
        assert await replay.step(9) == fold([Send("u", "Hello")])
        assert len((await replay.marks()).all) == 1


async def test_an_erased_session_is_told(path: Path) -> None:
    async with open_store(path) as store:
        replay = StoreReplay(store, await store.create("one", actions=[Send("u", "Hello")]))
        await store.erase("one")
        with pytest.raises(SessionErased):
            await replay.step()
