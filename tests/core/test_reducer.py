"""Single steps of the reducer that a reader of the contract may doubt: one short log, one action, what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from wire import same

from talkfold import (
    EMPTY_SESSION,
    UNSET,
    AgentMessage,
    Finish,
    MessageStart,
    Part,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    SessionError,
    SessionState,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPart,
    ToolPhase,
    ToolResult,
    fold,
    session_reducer,
)

HELLO: list[SessionAction] = [Send("u", "Hello"), Part(MessageStart("a"))]


def called(*calls: tuple[str, str], within: str | None = None, message: str = "a") -> list[SessionAction]:
    """Calls (id, name) of one message."""
    return [Part(ToolCall(message, id_, name, {}), within) for id_, name in calls]


def run(within: str, *, message: str = "n") -> list[SessionAction]:
    """A nested run begins."""
    return [Part(MessageStart(message), within)]


def states_of(state: SessionState) -> dict[str, str]:
    """Every call's state, by the ids of the calls around it and its own."""
    found: dict[str, str] = {}
    levels: list[tuple[str, Sequence[AgentMessage]]] = [("", state.messages)]
    for around, level in levels:
        for message in level:
            for part in message.parts:
                if isinstance(part, ToolPart):
                    found[around + part.id] = part.state
                    levels.append((f"{around}{part.id}/", part.agent.messages if part.agent else ()))
    return found


def call_of(state: SessionState) -> ToolPart:
    """The last part of the last message, a call."""
    part = state.messages[-1].parts[-1]
    assert isinstance(part, ToolPart)
    return part


NESTED: list[SessionAction] = [
    *HELLO,
    *called(("d", "delegate_to_x"), ("c", "search")),
    *run("d"),
    *called(("c", "search"), ("e", "delegate_to_y"), within="d", message="n"),
    *run("e"),
    *called(("c", "search"), within="e", message="n"),
]


@pytest.mark.parametrize(
    ("action", "changed"),
    [
        pytest.param(Part(ToolResult("c", 1)), {"c": "done"}, id="a part concerns the session's own level"),
        pytest.param(Part(ToolResult("c", 1), "d"), {"d/c": "done"}, id="or that of the nested run"),
        pytest.param(Part(ToolResult("c", 1), "e"), {"d/e/c": "done"}, id="at any depth"),
        pytest.param(Part(ToolResult("d", 1), "e"), {}, id="a nested run has ids of its own"),
        pytest.param(Part(ToolResult("c", 1), "c"), {}, id="within a call that is no delegate call: nothing"),
        pytest.param(Part(ToolResult("c", 1), "z"), {}, id="within no call: nothing"),
        pytest.param(
            ToolPhase("search", "awaiting-confirmation"), {"c": "awaiting-confirmation"}, id="the newest by place"
        ),
        pytest.param(
            ToolPhase("delegate_to_x", "awaiting-confirmation"), {"d": "awaiting-confirmation"}, id="a delegate call"
        ),
        pytest.param(
            ToolPhase("delegate_to_y", "awaiting-confirmation"), {"d/e": "awaiting-confirmation"}, id="a nested one"
        ),
        pytest.param(Part(Finish("aborted"), "e"), {"d/e/c": "cancelled"}, id="a nested end stays inside"),
        pytest.param(
            Part(RunError("lost"), "d"),
            {"d/c": "cancelled", "d/e": "cancelled", "d/e/c": "cancelled"},
            id="and reaches what is nested deeper",
        ),
        pytest.param(Part(Finish("stop"), "d"), {}, id="a nested finish ends no call"),
        pytest.param(
            Stop(),
            dict.fromkeys(("d", "c", "d/c", "d/e", "d/e/c"), "cancelled"),
            id="stop reaches every depth",
        ),
    ],
)
def test_which_calls_change(action: SessionAction, changed: dict[str, str]) -> None:
    before = fold(NESTED)
    after = session_reducer(before, action)
    assert states_of(after) == states_of(before) | changed
    assert (after is before) == (not changed)
    assert same(fold([*NESTED, action]), after)
    if not isinstance(action, Stop):
        assert (after.status, after.error) == ("streaming", None)


def test_a_tool_phase_meets_nested_calls_before_the_delegate_call_itself() -> None:
    log = [
        *HELLO,
        *called(("d", "delegate_to_x")),
        *run("d"),
        *called(("c", "delegate_to_x"), within="d", message="n"),
    ]
    phase = ToolPhase("delegate_to_x", "awaiting-confirmation")
    assert states_of(fold([*log, phase])) == {"d": "running", "d/c": "awaiting-confirmation"}
    ended = [*log, Part(ToolResult("d", 1))]
    assert states_of(fold([*ended, phase])) == {"d": "done", "d/c": "awaiting-confirmation"}, "inside an ended one too"


def test_within_means_the_newest_delegate_call_even_when_it_has_ended() -> None:
    log = [*HELLO, *called(("d", "delegate_to_x"), ("d", "delegate_to_x")), *run("d"), Part(ToolResult("d", 1))]
    assert [part.state for part in fold(log).messages[-1].parts] == ["running", "done"]
    late = fold([*log, Part(TextDelta("n", "late"), "d")])
    first, second = late.messages[-1].parts
    assert first.agent is None
    assert [part.text for part in second.agent.messages[0].parts] == ["late"]


def test_the_nested_run_appears_with_its_first_message() -> None:
    log = [*HELLO, *called(("d", "delegate_to_x"))]
    state = fold(log)
    for part in (TextDelta("n", "?"), ToolResult("c", 1), Finish("stop"), RunError("lost")):
        assert session_reducer(state, Part(part, "d")) is state
    run_ = call_of(session_reducer(state, Part(MessageStart("n"), "d"))).agent
    assert run_ is not None
    assert (run_.id, run_.messages) == ("x", (AgentMessage("n", "assistant", ()),))


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ([1], [1.0]), ({"a": 1, "b": 1}, {"b": 1, "a": 1})],
)
def test_values_that_differ_on_the_wire_only_are_a_change(one: Any, other: Any) -> None:
    assert one == other
    log = [*HELLO, *called(("c", "search")), Part(ToolResult("c", one))]
    state = fold(log)
    again = session_reducer(state, Part(ToolResult("c", other)))
    assert again is not state
    assert session_reducer(state, Part(ToolResult("c", one))) is state


@pytest.mark.parametrize(
    ("first", "then", "end"),
    [
        (ToolResult("c", 1), ToolError("c", "no"), ("error", UNSET, "no")),
        (ToolError("c", "no"), ToolResult("c", 1), ("done", 1, None)),
        (ToolError("c", "Error [cancelled] no"), ToolResult("c", 1), ("done", 1, None)),
        (ToolResult("c", 1), ToolError("c", "Error [cancelled]"), ("cancelled", UNSET, "Error [cancelled]")),
        (ToolResult("c", {"isError": True}), ToolResult("c", 2), ("done", 2, None)),
        (ToolError("c", "no"), ToolError("c", "error [cancelled]"), ("error", UNSET, "error [cancelled]")),
        (ToolError("c", "no"), ToolError("c", " Error [cancelled]"), ("error", UNSET, " Error [cancelled]")),
    ],
)
def test_the_later_terminal_part_wins(first: Any, then: Any, end: tuple[object, ...]) -> None:
    log = [*HELLO, *called(("c", "search")), ToolPhase("search", "awaiting-confirmation", "?"), Part(first), Part(then)]
    call = call_of(fold(log))
    assert (call.state, call.output, call.error) == end
    assert call.prompt is None


def test_a_result_goes_to_the_newest_open_call_with_its_id_else_to_the_newest() -> None:
    log = [*HELLO, *called(("c", "search"), ("c", "search"), ("c", "search"))]
    results: list[SessionAction] = [Part(ToolResult("c", n)) for n in range(5)]
    assert [part.output for part in fold(log + results[:2]).messages[-1].parts] == [UNSET, 1, 0]
    assert [part.output for part in fold(log + results).messages[-1].parts] == [2, 1, 4]


def test_errors_and_status() -> None:
    failed = fold([*HELLO, Part(RunError("lost", "network"))])
    assert (failed.status, failed.error) == ("error", SessionError("lost", "network"))
    stopped = session_reducer(failed, Stop())
    assert (stopped.status, stopped.error) == ("idle", SessionError("lost", "network")), "stays readable"
    assert session_reducer(failed, Part(RunError("lost", "network"))) is failed
    assert session_reducer(failed, Part(RunError("lost"))) is not failed
    assert session_reducer(failed, Part(Finish("stop"))).error == failed.error
    assert session_reducer(failed, Send("u", "again")).error is None
    assert session_reducer(failed, Retry()).error is None


def test_nothing_to_do_is_the_same_object() -> None:
    state = fold([*HELLO, Part(TextDelta("a", "Hi")), Part(Finish("stop"))])
    empty = SessionState((), "idle")
    for before, action in [
        (state, Part(TextDelta("a", ""))),
        (state, Part(TextDelta("u", "the person's words stay"))),
        (state, Part(Finish("max-steps"))),
        (state, Part(Finish("aborted"))),
        (state, Stop()),
        (EMPTY_SESSION, Retry()),
        (EMPTY_SESSION, Reset()),
        (empty, Reset()),
        (SessionState((AgentMessage("a", "assistant", ()),), "error"), Retry()),
    ]:
        assert session_reducer(before, action) is before
        assert fold([action, action], before) is before


def test_a_retry_that_cuts_nothing_keeps_the_messages() -> None:
    state = fold([*HELLO, *called(("c", "search")), Part(ToolResult("c", 1)), Part(Finish("stop"))])
    for again in (session_reducer(state, Retry()), fold([Retry()], state)):
        assert again.messages is state.messages
        assert again.status == "streaming"


@pytest.mark.parametrize(
    ("log", "tail"),
    [
        pytest.param(
            [*HELLO, Part(TextDelta("a", "Hi"))],
            [Retry(), Send("u2", "Hm")],
            id="a retry, and then as many messages as before",
        ),
        pytest.param(
            [*HELLO, *called(("d", "delegate_to_x")), *run("d"), Part(ToolResult("d", 1))],
            [
                *called(("d", "delegate_to_x")),
                *run("d", message="gone"),
                Retry(),
                *run("d", message="again"),
                Part(TextDelta("again", "in the call that is left"), "d"),
            ],
            id="a retry takes a delegate call away that `within` had found",
        ),
        pytest.param(
            [*HELLO, *called(("d", "delegate_to_x"))],
            [*run("d"), Reset(), *HELLO, Part(MessageStart("n"), "d"), *called(("d", "delegate_to_y")), *run("d")],
            id="a reset takes all of them",
        ),
        pytest.param(
            [*HELLO, Part(TextDelta("a", "Hi"))],
            [Part(TextDelta("a", " there")), Retry(), Part(MessageStart("a")), Part(TextDelta("a", "anew"))],
            id="text that was open when a retry took it",
        ),
        pytest.param(
            [*HELLO, *called(("c", "search"))],
            [ToolPhase("search", "awaiting-confirmation"), Retry(), ToolPhase("search", "running"), Stop()],
            id="an open call that a retry took",
        ),
    ],
)
def test_the_fold_forgets_what_went(log: list[SessionAction], tail: list[SessionAction]) -> None:
    start = fold(log)
    end = start
    for length, action in enumerate(tail, 1):
        end = session_reducer(end, action)
        assert same(fold(tail[:length], start), end)
        assert same(fold([*log, *tail[:length]]), end)
