"""Conversations that are far too deep or far too long: nothing crashes, and the fold's work grows with the log only."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from types import FrameType
from typing import Any

import pytest
from wire import same

from talkfold import (
    EMPTY_SESSION,
    AgentMessage,
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    SessionState,
    Stop,
    TextDelta,
    TextPart,
    TooDeep,
    ToolCall,
    ToolPart,
    ToolPhase,
    ToolResult,
    encode_messages,
    encode_state,
    fold,
    resumable,
    retry_plan,
    session_reducer,
)

# ---- 5,000 sub-agents, each behind a call of the one before ---------------------------------------------------

LEVELS = 5_000


def start(message: str = "m", within: str | None = None) -> SessionAction:
    return Part(MessageStart(message), within)


def call(id_: str, name: str = "f", message: str = "m", within: str | None = None) -> SessionAction:
    return Part(ToolCall(message, id_, name, {}), within)


def delta(text: str = "some text ", message: str = "m", within: str | None = None) -> SessionAction:
    return Part(TextDelta(message, text), within)


def result(id_: str, within: str | None = None) -> SessionAction:
    return Part(ToolResult(id_, 1), within)


def chain(levels: int) -> Iterator[SessionAction]:
    """A call to a sub-agent, in whose run is a call to a sub-agent, and so on."""
    yield Send("u", "go")
    yield start()
    yield call("d0", "delegate_to_x")
    for level in range(levels):
        yield start(within=f"d{level}")
        yield call(f"d{level + 1}", "delegate_to_x", within=f"d{level}")


def down(state: SessionState) -> Iterator[ToolPart]:
    """The chain's calls from the outside in; without recursion, unlike ``==`` and ``repr``."""
    messages = state.messages
    while messages:
        part = messages[-1].parts[-1] if messages[-1].parts else None
        if not isinstance(part, ToolPart):
            return
        yield part
        messages = part.agent.messages if part.agent else ()


@pytest.fixture(scope="module")
def deep() -> SessionState:
    return fold(chain(LEVELS))


def test_the_deep_state_is_there(deep: SessionState) -> None:
    assert [part.id for part in down(deep)] == [f"d{level}" for level in range(LEVELS + 1)]


@pytest.mark.parametrize(
    ("action", "states"),
    [
        pytest.param(Stop(), {"cancelled"}, id="stop"),
        pytest.param(Part(RunError("lost")), {"cancelled"}, id="error"),
        pytest.param(Part(Finish("aborted")), {"cancelled"}, id="aborted"),
        pytest.param(Part(Finish("aborted"), "d0"), {"running", "cancelled"}, id="nested aborted"),
        pytest.param(
            ToolPhase("delegate_to_x", "awaiting-confirmation"), {"running", "awaiting-confirmation"}, id="toolPhase"
        ),
        pytest.param(result(f"d{LEVELS}", f"d{LEVELS - 1}"), {"running", "done"}, id="the innermost call ends"),
        pytest.param(call("e", within=f"d{LEVELS}"), {"running"}, id="no message there yet"),
        pytest.param(start(within=f"d{LEVELS}"), {"running"}, id="one level more"),
        pytest.param(Part(Reasoning("m", "hm"), f"d{LEVELS - 1}"), {"running"}, id="innermost reasoning"),
    ],
)
def test_one_action_on_it(deep: SessionState, action: SessionAction, states: set[str]) -> None:
    """By reducer and fold, which agree at every level."""
    stepped, folded = session_reducer(deep, action), fold([action], deep)
    one, other = list(down(stepped)), list(down(folded))
    assert [(part.id, part.state, part.prompt) for part in one] == [
        (part.id, part.state, part.prompt) for part in other
    ]
    assert {part.state for part in one} == states
    assert (stepped is deep) == (folded is deep)
    stopped = fold([action, Stop()], deep)
    assert {part.state for part in down(stopped)} <= {"cancelled", "done"}
    assert session_reducer(stopped, Stop()) is stopped


def test_retry_of_it(deep: SessionState) -> None:
    for state in (session_reducer(deep, Retry()), fold([Retry()], deep)):
        assert [message.id for message in state.messages] == ["u"]
    plan = retry_plan(fold([result(f"d{LEVELS}", f"d{LEVELS - 1}")], deep).messages)
    assert plan.messages == resumable(deep.messages) == deep.messages[:1]
    assert [len(risk.path) for risk in plan.at_risk] == [LEVELS]


def test_writing_it_is_refused_and_never_crashes(deep: SessionState) -> None:
    for limit in (600, sys.maxsize):
        with pytest.raises(TooDeep):
            encode_state(deep, max_depth=limit)
        with pytest.raises(TooDeep):
            encode_messages(deep.messages, max_depth=limit)


def test_it_can_be_thrown_away() -> None:
    state = fold(chain(LEVELS))
    del state
    gc.collect()


# ---- logs that make a careless fold quadratic --------------------------------------------------------------------


def delegates(count: int, *, ended: bool = False) -> Iterator[SessionAction]:
    yield Send("u", "go")
    yield start()
    for number in range(count):
        yield call(f"d{number}", "delegate_to_x")
        yield start(within=f"d{number}")
        yield call("c", within=f"d{number}")
        if ended:
            yield result(f"d{number}")


def one_message(n: int) -> Iterator[SessionAction]:
    yield start()
    yield from (delta() for _ in range(n))


def many_messages(n: int) -> Iterator[SessionAction]:
    for number in range(n):
        yield from (Send("u", "go"), start(str(number)), delta(message=str(number)))


def deltas_to_old_messages(n: int) -> Iterator[SessionAction]:
    yield from (start(str(number)) for number in range(n))
    yield from (delta(message=str(number * 7 % n)) for number in range(n))


def one_message_id(n: int) -> Iterator[SessionAction]:
    for _ in range(n):
        yield from (start(), delta())


def one_call_id(n: int) -> Iterator[SessionAction]:
    yield start()
    yield from (call("c") for _ in range(n))
    yield from (result("c") for _ in range(2 * n))


def open_calls(n: int) -> Iterator[SessionAction]:
    for number in range(n):
        yield from (start(str(number)), call(f"c{number}", message=str(number)), delta(message=str(number)))


def ended_oldest_first(n: int) -> Iterator[SessionAction]:
    yield start()
    yield from (call(f"c{number}") for number in range(n))
    yield from (result(f"c{number}") for number in range(n))


def unknown_everything(n: int) -> Iterator[SessionAction]:
    yield from open_calls(n)
    for _ in range(n):
        yield from (result("?"), delta(message="?"), delta(within="?"), ToolPhase("?", "running"))


def phases_while_calls_end(n: int) -> Iterator[SessionAction]:
    yield start()
    yield from (call(f"c{number}") for number in range(n))
    for number in reversed(range(n)):
        yield from (ToolPhase("f", "awaiting-confirmation"), result(f"c{number}"))


def phases_of_an_old_call(n: int) -> Iterator[SessionAction]:
    yield from (start(), call("old", "slow"))
    yield from (call(f"c{number}") for number in range(n))
    for number in range(n):
        yield ToolPhase("slow", ("running", "awaiting-confirmation")[number % 2])  # type: ignore[arg-type]


def stops(n: int) -> Iterator[SessionAction]:
    yield from open_calls(n)
    for number in range(n):
        yield from (Stop(), call(f"e{number}", message="0"), Part(RunError("lost")), Part(Finish("aborted")))


def retries(n: int) -> Iterator[SessionAction]:
    yield from many_messages(n)
    for number in range(n):
        yield from (Retry(), start("r"), call(f"c{number}", message="r"), delta(message="r"))


def retries_after_calls(n: int) -> Iterator[SessionAction]:
    yield Send("u", "go")
    for number in range(n):
        yield from (start("r"), call("c", message="r"), result("c"), delta(message="r"), Retry())
        yield from (call(f"d{number}", "delegate_to_x", "r"), start(within=f"d{number}"), Retry())


def retries_without_user(n: int) -> Iterator[SessionAction]:
    yield from open_calls(n)
    yield from (Retry() for _ in range(n))


def resets(n: int) -> Iterator[SessionAction]:
    for _ in range(n):
        yield from (Send("u", "go"), start(), call("c"), Stop(), Retry(), Reset())


def many_runs(n: int) -> Iterator[SessionAction]:
    for number in range(n):
        yield from (start(), call(f"d{number}", "delegate_to_x"), start(within=f"d{number}"))
        yield from (delta(within=f"d{number}"), Part(Finish("stop"), f"d{number}"), result(f"d{number}"))


def interleaved_runs(n: int) -> Iterator[SessionAction]:
    yield from delegates(n)
    for turn in range(2):
        for number in range(n):
            yield from (delta(within=f"d{number}"), call(f"c{turn}", within=f"d{number}"))


def phases_inside_runs(n: int) -> Iterator[SessionAction]:
    yield from delegates(n)
    for number in reversed(range(n)):
        yield from (ToolPhase("f", "awaiting-confirmation"), result("c", f"d{number}"))


def nested_ends(n: int) -> Iterator[SessionAction]:
    yield from delegates(n)
    for number in range(n):
        yield from (Part(RunError("lost"), f"d{number}"), call("e", within=f"d{number}"))
        yield Part(Finish("aborted"), f"d{n - 1 - number}")


def one_run_that_fails_often(n: int) -> Iterator[SessionAction]:
    yield from open_calls(n)
    yield from (call("d", "delegate_to_x", "0"), start(within="d"))
    for _ in range(n):
        yield from (call("c", within="d"), Part(RunError("lost"), "d"))


def one_delegate_id(n: int) -> Iterator[SessionAction]:
    yield start()
    for _ in range(n):
        yield from (call("d", "delegate_to_x"), start(within="d"), delta(within="d"), result("d"))


def deep_runs(n: int) -> Iterator[SessionAction]:
    yield from chain(n)
    for level in range(n):
        yield from (call("c", within=f"d{level * 7 % n}"), ToolPhase("f", "awaiting-confirmation"))
    yield Stop()


def inner_delegates_after_outer(n: int) -> Iterator[SessionAction]:
    """New calls stand before known ones in the order: a sub-agent goes on while its parent has added calls."""
    yield from (start(), call("d", "delegate_to_x"), start(within="d"))
    yield from (call(f"e{number}", "delegate_to_x") for number in range(n))
    for number in range(n):
        yield from (call(f"i{number}", "delegate_to_y", within="d"), start(within=f"i{number}"))
        yield from (call("c", within=f"i{number}"), ToolPhase("f", "awaiting-confirmation"))


LOGS: list[Callable[[int], Iterator[SessionAction]]] = [
    one_message,
    many_messages,
    deltas_to_old_messages,
    one_message_id,
    one_call_id,
    open_calls,
    ended_oldest_first,
    unknown_everything,
    phases_while_calls_end,
    phases_of_an_old_call,
    stops,
    retries,
    retries_after_calls,
    retries_without_user,
    resets,
    many_runs,
    interleaved_runs,
    phases_inside_runs,
    nested_ends,
    one_run_that_fails_often,
    one_delegate_id,
    deep_runs,
    inner_delegates_after_outer,
]
each_log = pytest.mark.parametrize("log", LOGS, ids=lambda log: log.__name__)


@each_log
def test_equal_to_the_reducer(log: Callable[[int], Iterator[SessionAction]]) -> None:
    """Long enough that indexes are built: at the end, and from the middle on."""
    actions = list(log(40))
    states = [EMPTY_SESSION]
    for action in actions:
        states.append(session_reducer(states[-1], action))
    assert same(fold(actions), states[-1])
    for cut in range(0, len(actions), 11):
        assert same(fold(actions[:cut]), states[cut])
        assert same(fold(actions[cut:], states[cut]), states[-1])


@each_log
def test_work_grows_with_the_log(log: Callable[[int], Iterator[SessionAction]]) -> None:
    """Four times the log: about four times the lines of Python that run. Counted, so it is the same every time; what
    keeps calls in order adds a logarithm. The time is looked at only to see work that no line shows, as copying is:
    a quadratic fold would need sixteen times as long."""
    small, large = list(log(150)), list(log(600))
    assert lines_run(large) < 1.5 * len(large) / len(small) * lines_run(small)
    small, large = list(log(750)), list(log(3_000))
    assert min(seconds(large) for _ in range(2)) < 12 * min(seconds(small) for _ in range(4))


def lines_run(actions: list[SessionAction], state: SessionState = EMPTY_SESSION) -> int:
    """How many lines of Python a fold runs: the same number every time."""
    lines = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        fold(actions, state)
    finally:
        sys.settrace(before)
    return lines


def seconds(actions: list[SessionAction]) -> float:
    gc.disable()  # its pauses depend on what else is in memory
    try:
        began = perf_counter()
        fold(actions)
        return perf_counter() - began
    finally:
        gc.enable()


def test_a_short_tail_looks_at_little_of_a_long_conversation() -> None:
    """What a running session does next, after 500 messages or after 4,000: hardly more lines of Python."""

    def tail_after(messages: int) -> int:
        state = fold(many_messages(messages))
        tail = [
            start("new"),
            delta(message="new"),
            call("c", message="new"),
            ToolPhase("f", "awaiting-confirmation"),
            result("c"),
            call("d", "delegate_to_x", message="new"),
            start(within="d"),
            delta(within="d"),
            result("d"),
            Part(Finish("stop")),
            Send("u", "and then?"),
        ]
        began = fold(tail, state)
        assert began.messages[: len(state.messages)] == state.messages
        return lines_run(tail, state)

    assert tail_after(4_000) < 1.2 * tail_after(500)


def test_a_message_of_a_million_characters() -> None:
    state = fold([start(), *(delta("x" * 100) for _ in range(10_000))])
    assert state.messages == (AgentMessage("m", "assistant", (TextPart("x" * 1_000_000),)),)
