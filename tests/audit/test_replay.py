"""A replay gives, at every number, the state that folding the log up to there gives; its marks say what is where."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talkfold import (
    EMPTY_SESSION,
    Finish,
    InvalidArgument,
    LoggedAction,
    MessageStart,
    Part,
    Retry,
    RunError,
    Send,
    SessionAction,
    SessionState,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPart,
    ToolPhase,
    ToolResult,
    encode_action,
    fold,
)
from talkfold.audit.marks import Mark
from talkfold.audit.replay import Replay
from talkfold.codec.text import encoded
from talkfold.testing.strategies import logs

pytestmark = pytest.mark.timeout(900)


def logged(log: Sequence[SessionAction], run: str | None = None) -> list[LoggedAction]:
    """The actions as rows of a log."""
    return [
        LoggedAction(number, number, action, encode_action(action), None, run) for number, action in enumerate(log, 1)
    ]


def written(state: SessionState) -> bytes:
    return encoded(state, "state", sys.maxsize)


# ---- states ---------------------------------------------------------------------------------------------------


@given(logs(), st.integers(1, 5))
def test_every_state_is_that_of_the_prefix(log: list[SessionAction], page_rows: int) -> None:
    replay = Replay(logged(log), page_rows=page_rows)
    assert replay.last == len(log)
    for number in range(len(log) + 1):
        state = fold(log[:number])
        assert written(replay.state_at(number)) == written(state)
        assert written(replay.state) == written(state)
        replay.step()
    assert replay.number == len(log)
    for number in range(len(log), -1, -1):
        assert written(replay.state) == written(fold(log[:number]))
        assert replay.number == number
        replay.step(-1)


@given(logs(), st.lists(st.tuples(st.sampled_from(("seek", "step", "at")), st.integers(-40, 60)), max_size=30))
def test_in_any_order(log: list[SessionAction], moves: list[tuple[str, int]]) -> None:
    """Leaps, steps of any length and looks elsewhere."""
    replay = Replay(logged(log * 4), page_rows=7, page_bytes=400)
    here = 0
    for move, value in moves:
        place = value % (replay.last + 1)
        if move == "seek":
            here = place
            assert written(replay.seek(here)) == written(fold((log * 4)[:here]))
        elif move == "step":
            here = min(max(here + value, 0), replay.last)
            assert written(replay.step(value)) == written(fold((log * 4)[:here]))
        else:
            assert written(replay.state_at(place)) == written(fold((log * 4)[:place]))
        assert replay.number == here
        assert written(replay.state) == written(fold((log * 4)[:here]))


@given(logs(), st.integers(1, 9), st.integers(1, 9))
def test_rows_may_come_in_pages(log: list[SessionAction], page_rows: int, most: int) -> None:
    """Also in shorter ones than were asked for."""
    rows = logged(log)

    def pages(after: int, limit: int) -> list[LoggedAction]:
        assert 0 <= after <= len(rows)
        assert limit >= 1
        return rows[after : after + min(limit, most)]

    replay = Replay(pages, page_rows=page_rows)
    assert replay.marks == Replay(rows).marks
    for number in range(len(log) + 1):
        assert written(replay.seek(number)) == written(fold(log[:number]))


def test_the_ends_of_the_log() -> None:
    replay = Replay(logged([Send("u", "Hello")]))
    assert replay.number == 0
    assert replay.state is EMPTY_SESSION
    assert replay.step(-3) is EMPTY_SESSION
    assert replay.step(5) == fold([Send("u", "Hello")])
    assert replay.number == 1
    for number in (-1, 2):
        with pytest.raises(InvalidArgument):
            replay.seek(number)
        with pytest.raises(InvalidArgument):
            replay.state_at(number)
    assert replay.number == 1
    assert Replay([]).step() is EMPTY_SESSION


def test_only_a_whole_log_is_played() -> None:
    rows = logged([Send("u", "Hello"), Stop(), Retry()])
    with pytest.raises(InvalidArgument, match="2 stands where 1"):
        Replay(rows[1:])
    with pytest.raises(InvalidArgument, match="3 stands where 2"):
        Replay([rows[0], rows[2]])
    with pytest.raises(InvalidArgument):
        Replay(rows, page_rows=0)


# ---- marks ----------------------------------------------------------------------------------------------------


def test_marks_of_turns_runs_messages_and_calls() -> None:
    log: list[SessionAction] = [
        Send("u1", "Book it"),  # 1
        Part(MessageStart("m")),
        Part(ToolCall("m", "c", "book", {})),  # 3
        Part(ToolCall("m", "c", "book", {})),  # 4: an id used again
        ToolPhase("book", "awaiting-confirmation", "Sure?"),
        ToolPhase("book", "running"),
        Part(ToolResult("c", "booked")),  # 7: the newer one
        Part(ToolError("c", "Error: no")),  # 8: the older one, which is the newest open call
        Part(ToolResult("unknown", 1)),
        Part(Finish("stop")),  # 10
        Retry(),
        Part(MessageStart("m2")),
        Part(ToolCall("m2", "d", "delegate_to_clerk", {})),  # 13
        Part(MessageStart("m"), "d"),
        Part(ToolCall("m", "e", "search", {}), "d"),
        Part(Finish("stop"), "d"),
        Stop(),  # 17: ends both
    ]
    rows = [*logged(log[:10], "run 1"), *logged(log, "run 2")[10:]]
    replay = Replay(rows)
    assert replay.marks == (
        Mark(1, "run", 1, "run 1"),
        Mark(1, "send", 1, "u1"),
        Mark(2, "message", 1, "m"),
        Mark(3, "call", 1, "c", "book", "running", 3),
        Mark(4, "call", 1, "c", "book", "running", 4),
        Mark(5, "phase", 1, "c", "book", "awaiting-confirmation", 4),
        Mark(6, "phase", 1, "c", "book", "running", 4),
        Mark(7, "outcome", 1, "c", "book", "done", 4),
        Mark(8, "outcome", 1, "c", "book", "error", 3),
        Mark(10, "finish", 1, state="stop"),
        Mark(11, "run", 2, "run 2"),
        Mark(11, "retry", 2),
        Mark(12, "message", 2, "m2"),
        Mark(13, "call", 2, "d", "delegate_to_clerk", "running", 13),
        Mark(14, "message", 2, "m", within="d"),
        Mark(15, "call", 2, "e", "search", "running", 15, "d"),
        Mark(17, "stop", 2),
        Mark(17, "outcome", 2, "d", "delegate_to_clerk", "cancelled", 13),
        Mark(17, "outcome", 2, "e", "search", "cancelled", 15, "d"),
    )
    assert [mark.number for mark in replay.find("send", "retry")] == [1, 11]
    assert [mark.number for mark in replay.find("message", id="m")] == [2, 14]
    assert [(mark.number, mark.kind) for mark in replay.of_call(4)] == [
        (4, "call"),
        (5, "phase"),
        (6, "phase"),
        (7, "outcome"),
    ]
    assert replay.of_call(1) == ()
    replay.seek(10)
    assert replay.next_mark("call") == Mark(13, "call", 2, "d", "delegate_to_clerk", "running", 13)
    assert replay.previous_mark("call") == Mark(4, "call", 1, "c", "book", "running", 4)
    assert replay.next_mark() == Mark(11, "run", 2, "run 2")
    assert replay.next_mark("error") is None
    assert replay.previous_mark("retry") is None


@given(logs())
def test_marks_tell_every_change_of_every_call(log: list[SessionAction]) -> None:
    """Calls made, and calls whose state changed: as many as the states themselves show, at the same numbers."""
    replay = Replay(logged(log))
    numbers = [mark.number for mark in replay.marks]
    assert numbers == sorted(numbers)
    before = call_states(EMPTY_SESSION)
    for number in range(1, len(log) + 1):
        after = call_states(fold(log[:number]))
        marks = [mark for mark in replay.marks if mark.number == number]
        changed = [place for place, state in after.items() if place in before and before[place] != state]
        if not isinstance(log[number - 1], Retry):
            assert len(after.keys() - before.keys()) == len([mark for mark in marks if mark.kind == "call"])
            told = Counter(mark.state for mark in marks if mark.kind in ("phase", "outcome"))
            assert Counter[str | None](after[place] for place in changed) <= told
        before = after


def call_states(state: SessionState) -> dict[tuple[int, ...], str]:
    """The state of every call at every depth, by its place."""
    found: dict[tuple[int, ...], str] = {}
    levels = [((), state.messages)]
    for around, messages in levels:
        for m, message in enumerate(messages):
            for p, part in enumerate(message.parts):
                if isinstance(part, ToolPart):
                    found[(*around, m, p)] = part.state
                    if part.agent is not None:
                        levels.append(((*around, m, p), part.agent.messages))
    return found


def test_the_errors_end_a_turn() -> None:
    replay = Replay(logged([Send("u", "x"), Part(RunError("lost")), Send("u", "y"), Part(Finish("max-steps"))]))
    assert [(mark.number, mark.kind, mark.turn, mark.state) for mark in replay.marks] == [
        (1, "send", 1, None),
        (2, "error", 1, None),
        (3, "send", 2, None),
        (4, "finish", 2, "max-steps"),
    ]


# ---- long logs ------------------------------------------------------------------------------------------------


def test_a_long_log_is_played_in_little_time() -> None:
    log: list[SessionAction] = []
    for turn in range(4_000):
        message, call = f"m{turn}", f"c{turn}"
        log += [Send(f"u{turn}", "And now?"), Part(MessageStart(message))]
        log += [Part(TextDelta(message, "some text "))] * 20
        log += [Part(ToolCall(message, call, "search", {"query": turn})), Part(ToolResult(call, {"found": [turn]}))]
        log += [Part(StepFinish(1)), Part(Finish("stop"))]
    replay = Replay(logged(log))
    assert len(replay.marks) == 5 * 4_000
    chance = random.Random(1)
    best = min(_timed(replay, chance.randint(0, replay.last)) for _ in range(20))
    assert best < 0.1
    replay.seek(replay.last)
    start = perf_counter()
    for _ in range(2_000):
        replay.step(-1)
    assert perf_counter() - start < 10, "a step back does not fold from the start"
    assert replay.state == fold(log[: replay.last - 2_000])


def _timed(replay: Replay, number: int) -> float:
    start = perf_counter()
    replay.state_at(number)
    return perf_counter() - start
