"""Lanes: well nested, and every action belongs to exactly one of them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from logged_rows import logged, rows, stepped

from talkfold import (
    Finish,
    LoggedAction,
    MessageStart,
    Part,
    Reset,
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
)
from talkfold.audit.lanes import Lane, lanes, lanes_by_row

pytestmark = pytest.mark.timeout(900)  # the long profile tries twenty times as often


# ---- for every log ------------------------------------------------------------------------------------------


@given(logged())
def test_a_child_lies_in_its_parent(log: list[LoggedAction]) -> None:
    found = lanes(iter(log))
    assert [lane.first for lane in found] == sorted(lane.first for lane in found)
    for index, lane in enumerate(found):
        assert lane.first <= lane.last
        assert lane.start <= lane.end
        if lane.parent is None:
            assert lane.depth == 0
            assert lane.kind in ("run", "turn")
        else:
            around = found[lane.parent]
            assert lane.parent < index
            assert lane.depth == around.depth + 1
            assert lane.kind in ("agent", "call")
            assert around.kind != "call"
            assert around.first <= lane.first
            assert lane.last <= around.last
            assert around.start <= lane.start
            assert lane.end <= around.end


@given(logged())
def test_every_action_belongs_to_one_lane(log: list[LoggedAction]) -> None:
    found, belongs = lanes(log), list(lanes_by_row(log))
    assert len(belongs) == len(log)
    counted = Counter(belongs)
    assert [lane.actions for lane in found] == [counted[index] for index in range(len(found))]
    for row, index in zip(log, belongs, strict=True):
        lane = found[index]
        assert lane.first <= row.number <= lane.last
        assert lane.start <= row.time <= lane.end
        around = [lane, *parents(found, lane)]
        assert row.run is None or (around[-1].kind, around[-1].id) == ("run", row.run)
    for lane in found:
        earliest = found[belongs[lane.first - 1]]
        assert lane in [earliest, *parents(found, earliest)], "it begins with its own action, or one inside"


def parents(found: tuple[Lane, ...], lane: Lane) -> list[Lane]:
    """The lanes around a lane, the innermost first."""
    around: list[Lane] = []
    while lane.parent is not None:
        lane = found[lane.parent]
        around.append(lane)
    return around


@given(logged())
def test_what_has_been_read_stays_so(log: list[LoggedAction]) -> None:
    """The answer for a row needs nothing that comes after it."""
    whole = list(lanes_by_row(log))
    assert [index for _, index in zip(log[:10], lanes_by_row(iter(log)), strict=False)] == whole[:10]
    assert list(lanes_by_row(log[: len(log) // 2])) == whole[: len(log) // 2]


@given(logged())
def test_every_call_that_was_made_has_a_lane(log: list[LoggedAction]) -> None:
    states = stepped(row.action for row in log)
    made = [
        (row.number, row.action.part.id, row.action.part.name)
        for row, (before, after) in zip(log, pairwise(states), strict=True)
        if isinstance(row.action, Part) and isinstance(row.action.part, ToolCall) and before is not after
    ]
    named = [
        (lane.first, lane.id, "delegate_to_" + (lane.name or "") if lane.kind == "agent" else lane.name)
        for lane in lanes(log)
        if lane.parent is not None
    ]
    assert named == made


@given(logged())
def test_a_call_s_end_is_its_state(log: list[LoggedAction]) -> None:
    """For every call of the session's own level that is there at the end."""
    states = stepped(row.action for row in log)
    ends = {lane.first: lane for lane in lanes(log) if lane.kind == "call"}
    for m, message in enumerate(states[-1].messages):
        for p, part in enumerate(message.parts):
            if isinstance(part, ToolPart):
                lane = ends.get(_birth(states, m, p))
                if lane is not None:
                    assert lane.ended in _ENDS.get(part.state, ("cancelled", "aborted", "stopped", "settled"))


_ENDS = {"running": ("open",), "awaiting-confirmation": ("open",), "done": ("done",), "error": ("error",)}


def _birth(states: list[SessionState], m: int, p: int) -> int:
    number = len(states) - 1
    while number and len(states[number - 1].messages) > m and len(states[number - 1].messages[m].parts) > p:
        number -= 1
    return number


@given(logged())
def test_lanes_have_a_json_form(log: list[LoggedAction]) -> None:
    found = lanes(log)
    assert msgspec.json.decode(msgspec.json.encode(found), type=tuple[Lane, ...]) == found


# ---- by hand -------------------------------------------------------------------------------------------------


def call(message: str, call_id: str, name: str, within: str | None = None) -> SessionAction:
    return Part(ToolCall(message, call_id, name, {}), within)


def test_a_run_with_calls_at_once_and_a_sub_agent() -> None:
    log: list[SessionAction] = [
        Send("u", "go"),
        Part(MessageStart("m")),
        call("m", "a", "search"),
        call("m", "b", "book"),
        ToolPhase("book", "awaiting-confirmation"),  # 5
        Part(ToolResult("a", 1)),
        call("m", "d", "delegate_to_clerk"),
        Part(MessageStart("n"), "d"),
        call("n", "a", "search", "d"),
        Part(ToolError("a", "Error: none"), "d"),  # 10
        Part(TextDelta("n", "none"), "d"),
        Part(Finish("max-steps"), "d"),
        Part(ToolResult("d", "none")),
        ToolPhase("book", "running"),
        Part(ToolError("b", "Error [cancelled]")),  # 15
        Part(StepFinish(0)),
        Part(Finish("stop")),
    ]
    assert lanes(rows(log, runs=["r"] * len(log))) == (
        Lane("run", 1, 17, 1_000, 17_000, "stop", 4, "r"),
        Lane("call", 3, 6, 3_000, 6_000, "done", 2, "a", "search", 0, 1),
        Lane("call", 4, 15, 4_000, 15_000, "cancelled", 4, "b", "book", 0, 1),
        Lane("agent", 7, 13, 7_000, 13_000, "max-steps", 5, "d", "clerk", 0, 1),
        Lane("call", 9, 10, 9_000, 10_000, "error", 2, "a", "search", 3, 2),
    )
    assert list(lanes_by_row(rows(log, runs=["r"] * len(log)))) == [0, 0, 1, 2, 2, 1, 3, 3, 4, 4, 3, 3, 3, 2, 2, 0, 0]


@pytest.mark.parametrize(
    ("end", "actor", "run", "of_the_call"),
    [
        (Stop(), "ann", "stopped", "stopped"),
        (Stop(), "talkfold", "settled", "settled"),
        (Part(Finish("aborted")), None, "aborted", "aborted"),
        (Part(Finish("stop")), None, "stop", "open"),
        (Part(Finish("max-steps")), None, "max-steps", "open"),
        (Part(RunError("lost")), None, "error", "cancelled"),
        (Reset(), None, "reset", "dropped"),
        (Part(StepFinish(0)), None, "open", "open"),
    ],
)
def test_how_a_run_and_its_open_call_end(end: SessionAction, actor: str | None, run: str, of_the_call: str) -> None:
    log = [Send("u", "go"), Part(MessageStart("m")), call("m", "a", "search"), end]
    for runs in (["r"] * 4, [None] * 4, ["r"] * 3 + [None]):
        top, inner = lanes(rows(log, runs=runs, actors=[None, None, None, actor]))
        assert (top.ended, top.last, inner.ended) == (run, 4, of_the_call)
        assert inner.last == (3 if of_the_call == "open" else 4), "what ended it is its last"
        assert top.actions == 3, "what ends a whole run belongs to the run"


def test_rows_without_a_run_are_turns() -> None:
    log: list[SessionAction] = [
        Send("u", "go"),
        Part(MessageStart("m")),
        call("m", "a", "search"),
        Send("v", "and?"),
        Part(ToolResult("a", 1)),  # 5
        Part(Finish("stop")),
        Stop(),
        Retry(),
        Part(MessageStart("m")),
    ]
    turns = [lane for lane in lanes(rows(log)) if lane.parent is None]
    assert [(lane.kind, lane.first, lane.last, lane.ended) for lane in turns] == [
        ("turn", 1, 3, "open"),
        ("turn", 4, 6, "stop"),
        ("turn", 7, 7, "stopped"),
        ("turn", 8, 9, "open"),
    ]
    late = lanes(rows(log))[1]
    assert (late.id, late.first, late.last, late.ended) == ("a", 3, 3, "done"), "no lane reaches into another turn"


def test_a_retry_drops_what_was_open() -> None:
    log = [
        Send("u", "go"),
        Part(MessageStart("m")),
        call("m", "d", "delegate_to_clerk"),
        Part(MessageStart("n"), "d"),
        call("n", "a", "search", "d"),
        Retry(),
    ]
    ended = [lane.ended for lane in lanes(rows(log, runs=["r"] * 5 + ["s"]))]
    assert ended == ["open", "dropped", "dropped", "open"]


@pytest.mark.timeout(60)
def test_a_long_and_deep_log_is_read_in_one_pass() -> None:
    """What is quadratic would take minutes: sub-agents in each other, many calls, many runs, all left open."""
    log: list[SessionAction] = [Part(MessageStart("m"))]
    for depth in range(2_000):
        around = f"d{depth - 1}" if depth else None
        log += [call("m", f"d{depth}", "delegate_to_x", around), Part(MessageStart("m"), f"d{depth}")]
    log += [Part(TextDelta("m", "x"), "d1999")] * 30_000
    for n in range(20_000):
        log += [call("m", f"c{n}", "search", "d1000"), Part(ToolResult(f"c{n}", n), "d1000")]
    log += [Stop()]
    found = lanes(rows(log, runs=[f"r{number // 50_000}" for number in range(len(log))]))
    assert sum(lane.actions for lane in found) == len(log)
    assert max(lane.depth for lane in found) == 2_000
