"""Sub-agents: an agent behind a call, its parts logged with ``within``, its end the call's outcome."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from run_world import Agent, all_calls, at_rest, calls, says, whole_log

from talkfold import (
    AgentStreamPart,
    Finish,
    InvalidArgument,
    MessageStart,
    Part,
    RunError,
    TextDelta,
    TextPart,
    ToolCall,
    ToolPart,
)
from talkfold.runs import (
    AgentRunRequest,
    RunSettings,
    SubAgent,
    Toolbox,
    WebAgent,
    start_run,
    tool_outcome,
)
from talkfold.store import SessionStore

pytestmark = pytest.mark.anyio


def look_up(word: str) -> str:
    return f"{word}: found"


def delegate(to: str, task: str = "Do it.", call_id: str = "d") -> Agent:
    return Agent(calls((call_id, f"delegate_to_{to}", {"task": task})))


def the_call(state: object, name: str) -> ToolPart:
    (call,) = [call for call in all_calls(state.messages) if call.name == name]  # type: ignore[attr-defined]
    return call


async def test_a_sub_agent_has_instructions_tools_and_a_task_of_its_own(store: SessionStore) -> None:
    inner = Agent(calls(("c", "look_up", {"word": "mug"})))
    finder = SubAgent("finder", inner, "Finds.", tools=Toolbox(look_up), instructions="Find.", max_steps=3)
    outer = delegate("finder", "Find the mug.")
    session = await store.create()
    async with start_run(store, session.id, outer, text="go", agents=[finder]) as run:
        yielded = [part async for part in run]
    (request,) = inner.requests
    assert request.agent == WebAgent("finder", "Find.", 3)
    assert [tool.name for tool in request.tools] == ["look_up"]
    (message,) = request.messages
    assert (message.role, message.parts) == ("user", (TextPart("Find the mug."),))
    (descriptor,) = outer.requests[0].tools
    assert (descriptor.name, descriptor.description) == ("delegate_to_finder", "Finds.")
    assert descriptor.input_schema["required"] == ["task"]

    rows = await whole_log(store, session.id)
    nested = [row.action for row in rows if isinstance(row.action, Part) and row.action.within == "d"]
    assert [type(action.part).__name__ for action in nested] == [
        "MessageStart",
        "ToolCall",
        "ToolResult",
        "TextDelta",
        "Finish",
    ]
    assert all(not isinstance(part, ToolCall) or part.id == "d" for part in yielded)  # the top level only
    state = await at_rest(store, session.id)
    call = the_call(state, "delegate_to_finder")
    assert call.state == "done"
    assert call.output == {"content": [{"type": "text", "text": "[mug: found]"}]}
    assert call.agent is not None
    assert call.agent.id == "finder"
    assert the_call(state, "look_up").state == "done"


async def test_its_answer_is_what_it_says_last(store: SessionStore) -> None:
    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("a")
        yield TextDelta("a", "Let me look.")
        call = ToolCall("a", "c", "look_up", {"word": "x"})
        yield call
        yield tool_outcome("c", await request.call_tool(call))
        yield MessageStart("b")
        yield TextDelta("b", "It is ")
        yield TextDelta("b", "there.")
        yield Finish("stop")

    session = await store.create()
    finder = SubAgent("finder", Agent(play), "Finds.", tools=Toolbox(look_up))
    async with start_run(store, session.id, delegate("finder"), text="go", agents=[finder]) as run:
        await run.wait()
    call = the_call(await at_rest(store, session.id), "delegate_to_finder")
    assert call.output["content"][0]["text"] == "It is there."


@pytest.mark.parametrize(
    ("ending", "state", "text"),
    [
        (RunError("No credit.", "rate_limited"), "error", "Error [failed] delegate_to_x: No credit."),
        (Finish("aborted"), "cancelled", "Error [cancelled] delegate_to_x: the agent was stopped"),
        (None, "error", "Error [failed] delegate_to_x: The agent stopped in the middle of its reply"),
        (OSError("no route"), "error", "Error [failed] delegate_to_x: OSError: no route"),
    ],
    ids=["error", "aborted", "no end", "raises"],
)
async def test_its_failure_is_the_calls_error_and_the_parent_goes_on(
    store: SessionStore, ending: AgentStreamPart | Exception | None, state: str, text: str
) -> None:
    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("a")
        yield ToolCall("a", "c", "look_up", {"word": "x"})
        if isinstance(ending, Exception):
            raise ending
        if ending is not None:
            yield ending

    session = await store.create()
    outer = delegate("x")
    async with start_run(store, session.id, outer, text="go", agents=[SubAgent("x", Agent(play), "X.")]) as run:
        end = await run.wait()
    assert end.part == Finish("stop")
    final = await at_rest(store, session.id)
    call = the_call(final, "delegate_to_x")
    assert call.state == state
    assert (call.error or "").startswith(text)
    assert final.error is None
    assert the_call(final, "look_up").state == "cancelled"


async def test_a_task_that_is_none_is_refused_before_anything_runs(store: SessionStore) -> None:
    inner = Agent(says)
    session = await store.create()
    outer = Agent(calls(("d", "delegate_to_x", {"job": "?"}), ("e", "delegate_to_nobody", {"task": "Go."})))
    async with start_run(store, session.id, outer, text="go", agents=[SubAgent("x", inner, "X.")]) as run:
        await run.wait()
    state = await at_rest(store, session.id)
    errors = [str(call.error) for call in reversed(all_calls(state.messages))]
    assert errors[0].startswith("Error [invalid_input] delegate_to_x: $.task")
    assert errors[1].startswith("Error [not_found]")
    assert inner.requests == []


async def test_nesting_goes_as_deep_as_allowed_and_no_deeper(store: SessionStore) -> None:
    """Every agent may call the same one again: with one id for all the calls, which each level must keep apart."""
    team: list[SubAgent] = []
    agent = delegate("self")
    team.append(SubAgent("self", agent, "Itself.", agents=team))
    session = await store.create()
    settings = RunSettings(max_depth=4)
    async with start_run(store, session.id, agent, text="go", agents=team, settings=settings) as run:
        ending = await run.wait()
    assert ending.part == Finish("stop")
    assert ending.faults == ()
    assert len(agent.requests) == 5  # the run's own at depth 0, and four below
    assert [len(request.tools) for request in agent.requests] == [1, 1, 1, 1, 0]
    state = await at_rest(store, session.id)
    depth = 0
    messages = state.messages
    while True:
        found = [part for message in messages for part in message.parts if isinstance(part, ToolPart)]
        assert len(found) == 1
        (call,) = found
        if call.agent is None:
            break
        assert call.state == "done"
        messages, depth = call.agent.messages, depth + 1
    assert depth == 4
    assert "4 deep" in str(call.error)


async def test_stop_reaches_every_depth(store: SessionStore) -> None:
    running = anyio.Event()
    ended: list[str] = []

    async def work() -> None:
        running.set()
        try:
            await anyio.sleep(60)
        finally:
            ended.append("tool")

    inner = Agent(calls(("c", "work", {})))
    deepest = SubAgent("b", inner, "B.", tools=Toolbox(work))
    middle = SubAgent("a", delegate("b"), "A.", agents=[deepest])
    session = await store.create()
    settings = RunSettings(grace_seconds=0.5)
    async with start_run(store, session.id, delegate("a"), text="go", agents=[middle], settings=settings) as run:
        await running.wait()
        await run.stop()
        with anyio.fail_after(3):
            ending = await run.wait()
    assert ending.cause == "stop"
    assert ended == ["tool"]
    state = await at_rest(store, session.id)
    assert [call.state for call in all_calls(state.messages)] == ["cancelled"] * 3


async def test_two_levels_may_use_the_same_ids(store: SessionStore) -> None:
    inner = Agent(calls(("d", "look_up", {"word": "in"}), message="m"))
    finder = SubAgent("finder", inner, "Finds.", tools=Toolbox(look_up))
    session = await store.create()
    async with start_run(store, session.id, delegate("finder"), text="go", agents=[finder]) as run:
        await run.wait()
    state = await at_rest(store, session.id)
    assert {call.name: call.state for call in all_calls(state.messages)} == {
        "delegate_to_finder": "done",
        "look_up": "done",
    }


def test_an_id_that_makes_no_tool_name_is_refused() -> None:
    for bad in ("", "two words", "x" * 53):
        with pytest.raises(InvalidArgument):
            SubAgent(bad, Agent(says), "X.")
