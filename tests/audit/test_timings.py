"""Timings: durations that add up and are never negative, and sums of what was used."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logged_rows import logged, rows, stepped

from talkfold import (
    Finish,
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
    ToolPart,
    ToolPhase,
    ToolResult,
)
from talkfold.audit.lanes import lanes, lanes_by_row
from talkfold.audit.timings import (
    CallTiming,
    ClockBack,
    ModelUsage,
    RunTiming,
    StepTiming,
    Timings,
    Usage,
    timings,
)

pytestmark = pytest.mark.timeout(900)  # the long profile tries twenty times as often


def clock(log: list[LoggedAction]) -> list[int]:
    """For each row: how many milliseconds went forward since the first one."""
    passed = [0] if log else []
    for before, after in pairwise(log):
        passed.append(passed[-1] + max(0, after.time - before.time))
    return passed


# ---- for every log ------------------------------------------------------------------------------------------


@given(logged())
def test_every_run_agent_and_call_is_timed(log: list[LoggedAction]) -> None:
    found, told = lanes(log), timings(iter(log))
    for timing in (*told.runs, *told.agents):
        lane = found[timing.lane]
        assert (timing.kind, timing.id, timing.name) == (lane.kind, lane.id, lane.name)
        assert (timing.first, timing.last, timing.ended) == (lane.first, lane.last, lane.ended)
        assert timing.ms == clock(log)[lane.last - 1] - clock(log)[lane.first - 1]
        assert 0 <= timing.waiting_ms <= timing.ms
        assert timing.first_text_ms is None or 0 <= timing.first_text_ms <= timing.ms
        assert timing.calls == sum(1 for other in found if other.parent == timing.lane)
        assert timing.steps == sum(1 for step in told.steps if step.lane == timing.lane)
    assert [timing.lane for timing in told.runs] == [i for i, lane in enumerate(found) if lane.parent is None]
    assert [timing.lane for timing in told.agents] == [i for i, lane in enumerate(found) if lane.kind == "agent"]
    assert [timing.lane for timing in told.calls] == [i for i, lane in enumerate(found) if lane.parent is not None]


@given(logged())
def test_a_call_ran_or_waited(log: list[LoggedAction]) -> None:
    """Every call of the session's own level that is there at the end, told from the states it had."""
    told = timings(log)
    for timing in told.calls:
        assert timing.running_ms >= 0
        assert timing.waiting_ms >= 0
        assert timing.total_ms == timing.running_ms + timing.waiting_ms
    states, passed = stepped(row.action for row in log), clock(log)
    by_number = {timing.number: timing for timing in told.calls}
    for m, message in enumerate(states[-1].messages):
        for p, part in enumerate(message.parts):
            if isinstance(part, ToolPart):
                life = lived(states, m, p)
                spent = {"running": 0, "awaiting-confirmation": 0}
                for (number, before), (after, _) in pairwise([*life, (len(log), part)]):
                    if before.state in spent:
                        spent[before.state] += passed[after - 1] - passed[number - 1]
                timing = by_number[life[0][0]]
                assert (timing.id, timing.name) == (part.id, part.name)
                assert (timing.running_ms, timing.waiting_ms) == tuple(spent.values())


def lived(states: list[SessionState], m: int, p: int) -> list[tuple[int, ToolPart]]:
    """The call at a place of the last state, after each action since it was made."""
    found: list[tuple[int, ToolPart]] = []
    for number in range(len(states) - 1, -1, -1):
        messages = states[number].messages
        if len(messages) <= m or len(messages[m].parts) <= p:
            break
        part = messages[m].parts[p]
        assert isinstance(part, ToolPart)
        found.append((number, part))
    return found[::-1]


@given(logged())
def test_steps_follow_one_another(log: list[LoggedAction]) -> None:
    found, told = lanes(log), timings(log)
    passed = clock(log)
    for index, lane in enumerate(found):
        steps = [step for step in told.steps if step.lane == index]
        for step in steps:
            assert lane.first <= step.first <= step.last <= lane.last
            assert step.ms >= passed[step.last - 1] - passed[step.first - 1]
            assert step.first_text_ms is None or 0 <= step.first_text_ms <= step.ms
        for before, after in pairwise(steps):
            assert before.last < after.first
        assert sum(step.ms for step in steps) <= passed[lane.last - 1] - passed[lane.first - 1]
    ends = [
        row.number
        for row in log
        if isinstance(row.action, Part) and isinstance(row.action.part, StepFinish) and row.action.within is None
    ]
    own = sorted(step.last for step in told.steps if found[step.lane].parent is None and step.step is not None)
    assert own == ends, "every end of a step on the session's own level is told"


@given(logged())
def test_a_clock_that_went_back_is_told(log: list[LoggedAction]) -> None:
    back = [
        ClockBack(after.number, before.time - after.time) for before, after in pairwise(log) if after.time < before.time
    ]
    assert timings(log).clock_back == tuple(back)


_AMOUNTS = st.none() | st.integers(0, 99)
_METAS = st.none() | st.builds(
    lambda model, **usage: {"cause": "x", **({"model": model} if model else {}), "usage": usage},
    st.sampled_from((None, "gpt", "claude")),
    inputTokens=_AMOUNTS,
    outputTokens=_AMOUNTS,
    cost=st.none() | st.sampled_from((0.1, 0.25, 1)),
    others=st.just({"any": "thing"}),
)


@given(logged(), st.data())
def test_what_was_used_adds_up(log: list[LoggedAction], data: st.DataObject) -> None:
    metas: list[dict[str, Any] | None] = [data.draw(_METAS) for _ in log]
    log = [msgspec.structs.replace(row, meta=meta) for row, meta in zip(log, metas, strict=True)]
    told, found, belongs = timings(log), lanes(log), list(lanes_by_row(log))

    def total(key: str, of: list[int]) -> float | None:
        amounts = [amount for place in of if (meta := metas[place]) and (amount := meta["usage"][key]) is not None]
        return round(sum(amounts), 9) if amounts else None

    def agrees(usage: Usage | None, of: list[int]) -> None:
        assert (usage.input_tokens if usage else None) == total("inputTokens", of)
        assert (usage.output_tokens if usage else None) == total("outputTokens", of)
        assert (usage.cost if usage else None) == total("cost", of)
        if usage is not None and usage.total_tokens is not None:
            assert usage.total_tokens == (usage.input_tokens or 0) + (usage.output_tokens or 0)

    agrees(told.usage, [*range(len(log))])
    for timing in (*told.runs, *told.agents):
        inside = [place for place, index in enumerate(belongs) if timing.lane in around(found, index)]
        agrees(timing.usage, inside)
    for sums in told.models:
        agrees(sums.usage, [p for p, meta in enumerate(metas) if meta and meta.get("model") == sums.model])
    assert told.unread_usage == ()


def around(found: tuple[Any, ...], index: int | None) -> list[int]:
    """A lane and those around it."""
    row: list[int] = []
    while index is not None:
        row.append(index)
        index = found[index].parent
    return row


@given(logged())
def test_timings_have_a_json_form(log: list[LoggedAction]) -> None:
    told = timings(log)
    assert msgspec.json.decode(msgspec.json.encode(told), type=Timings) == told


# ---- by hand -------------------------------------------------------------------------------------------------


def test_a_run_with_a_person_and_a_sub_agent() -> None:
    used = {"model": "gpt", "usage": {"inputTokens": 10, "outputTokens": 5, "cost": 0.1}}
    more = {"model": "claude", "usage": {"totalTokens": 7.0, "cost": 0.2, "unit": "USD"}}
    table: list[tuple[int, SessionAction, dict[str, Any] | None]] = [
        (0, Send("u", "go"), None),
        (100, Part(MessageStart("m")), None),
        (300, Part(TextDelta("m", "")), None),
        (350, Part(TextDelta("m", "Let me")), None),
        (400, Part(ToolCall("m", "b", "book", {})), None),  # 5
        (500, ToolPhase("book", "awaiting-confirmation"), None),
        (500, Part(ToolCall("m", "d", "delegate_to_clerk", {})), None),
        (600, Part(MessageStart("n"), "d"), None),
        (650, Part(TextDelta("n", "ok"), "d"), None),
        (700, Part(StepFinish(0), "d"), more),  # 10
        (710, Part(Finish("stop"), "d"), None),
        (720, Part(ToolResult("d", "ok")), None),
        (2500, ToolPhase("book", "running"), None),
        (2600, Part(ToolResult("b", "ok")), None),
        (2610, Part(StepFinish(0)), used),  # 15
        (2700, Part(MessageStart("m")), None),
        (2600, Part(TextDelta("m", "Booked.")), None),
        (2650, Part(StepFinish(1)), used),
        (2660, Part(Finish("stop")), None),
    ]
    log = rows(
        [a for _, a, _ in table], times=[t for t, _, _ in table], runs=["r"] * 19, metas=[m for _, _, m in table]
    )
    told = timings(log)
    used_in_all = Usage(20, 10, 37, cost=0.4)
    assert told.runs == (RunTiming(0, "run", 1, 19, "stop", 2760, 2000, 2, 2, "r", None, 350, used_in_all),)
    clerk = Usage(total_tokens=7, cost=0.2)
    assert told.agents == (RunTiming(2, "agent", 7, 12, "stop", 220, 0, 1, 0, "d", "clerk", 150, clerk),)
    assert told.calls == (
        CallTiming(1, 5, "b", "book", "done", 200, 2000, 2200),
        CallTiming(2, 7, "d", "delegate_to_clerk", "stop", 220, 0, 220),
    )
    once = Usage(10, 5, 15, cost=0.1)
    assert told.steps == (
        StepTiming(0, 2, 15, 2610, 0, 350, "gpt", once),
        StepTiming(2, 8, 10, 200, 0, 150, "claude", clerk),
        StepTiming(0, 16, 18, 140, 1, 90, "gpt", once),
    )
    assert told.models == (
        ModelUsage(1, clerk, "claude"),
        ModelUsage(2, Usage(20, 10, 30, cost=0.2), "gpt"),
    )
    assert told.usage == used_in_all
    assert told.clock_back == (ClockBack(17, 100),)


@pytest.mark.parametrize("end", [Stop(), Part(Finish("aborted")), Part(RunError("lost"))])
def test_a_step_that_was_cut_short_ends_with_its_run(end: SessionAction) -> None:
    log: list[SessionAction] = [Send("u", "go"), Part(MessageStart("m")), Part(TextDelta("m", "so")), end]
    (step,) = timings(rows(log)).steps
    assert (step.first, step.last, step.ms, step.step) == (2, 4, 3000, None)


def test_nobody_counts_the_time_between_a_broken_run_and_the_next_one() -> None:
    log = [Send("u", "go"), Part(MessageStart("m")), Part(TextDelta("m", "so")), Retry(), Part(MessageStart("m"))]
    steps = timings(rows(log, times=[0, 10, 20, 90_000, 90_010])).steps
    assert [(step.first, step.last, step.ms) for step in steps] == [(2, 3, 20), (5, 5, 10)]


@pytest.mark.parametrize(
    ("usage", "read", "is_told"),
    [
        (None, None, False),
        ({}, None, False),
        ({"unknown": 1}, None, False),
        ({"inputTokens": None, "outputTokens": 3}, Usage(output_tokens=3, total_tokens=3), False),
        ({"inputTokens": "12", "cost": 0.5}, Usage(cost=0.5), True),
        ({"inputTokens": 12.5}, None, True),
        ({"inputTokens": True}, None, True),
        ({"inputTokens": -1}, None, True),
        ({"inputTokens": 10**12}, None, True),
        ({"inputTokens": 1e300}, None, True),
        ({"cost": 0}, Usage(cost=0.0), False),
        ({"reasoningTokens": 4, "cachedInputTokens": 2.0}, Usage(reasoning_tokens=4, cached_input_tokens=2), False),
        (7, None, True),
        ([], None, True),
    ],
)
def test_what_cannot_be_read_is_told_and_stops_nothing(usage: object, read: Usage | None, is_told: bool) -> None:
    log: list[SessionAction] = [Send("u", "go"), Part(Finish("stop"))]
    told = timings(rows(log, metas=[None, {"model": 5, "usage": usage}]))
    assert told.usage == read
    assert told.unread_usage == ((2,) if is_told else ())
    assert [sums.model for sums in told.models] == ([None] if read else [])


def test_nothing_is_timed_in_an_empty_log() -> None:
    assert timings([]) == Timings((), (), (), (), (), None, (), ())


@pytest.mark.timeout(60)
def test_a_long_log_is_read_in_one_pass() -> None:
    """What is quadratic would take minutes: many calls that all wait, many steps, many runs."""
    log: list[SessionAction] = [Part(MessageStart("m"))]
    for n in range(20_000):
        log += [Part(ToolCall("m", f"c{n}", f"t{n}", {})), ToolPhase(f"t{n}", "awaiting-confirmation")]
        log += [Part(StepFinish(n)), Part(TextDelta("m", "x"))]
    log += [Stop()]
    told = timings(rows(log, runs=[f"r{place // 20}" for place in range(len(log))]))
    assert len(told.calls) == 20_000
    assert told.calls[0].waiting_ms == 79_999 * 1000
    assert len([step for step in told.steps if step.step is not None]) == 20_000
