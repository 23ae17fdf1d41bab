"""A run from its first action to its last: what is logged, in what order, and what is durable when."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest
from run_world import Agent, actions, at_rest, calls, parts, says, whole_log

from talkfold import (
    AgentStreamPart,
    Finish,
    InvalidArgument,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    RunInProgress,
    Send,
    SessionErased,
    SessionNotFound,
    StepFinish,
    TextDelta,
    ToolCall,
    ToolError,
    ToolResult,
)
from talkfold.runs import AgentRunRequest, RunSettings, SubAgent, Toolbox, start_run, tool_outcome
from talkfold.store import SessionStore

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    return a + b


async def test_a_run_logs_the_message_and_every_part_in_order_and_yields_the_parts(store: SessionStore) -> None:
    session = await store.create()
    agent = Agent(calls(("c1", "add", {"a": 1, "b": 2})))
    async with start_run(store, session.id, agent, text="What is 1 + 2?", message_id="u1", tools=Toolbox(add)) as run:
        yielded = [part async for part in run]
    output = {"content": [{"type": "text", "text": "3"}], "structuredContent": 3}
    assert yielded == [
        MessageStart("m"),
        ToolCall("m", "c1", "add", {"a": 1, "b": 2}),
        ToolResult("c1", output),
        TextDelta("m", "[3]"),
        Finish("stop"),
    ]
    rows = await whole_log(store, session.id)
    assert actions(rows) == [Send("u1", "What is 1 + 2?"), *map(Part, yielded)]
    assert {row.run for row in rows} == {run.id}
    assert (run.started.number, run.ending and run.ending.number) == (1, 6)
    assert (await at_rest(store, session.id)).status == "idle"


async def test_the_adapter_gets_the_healed_conversation_that_ends_with_the_new_message(store: SessionStore) -> None:
    session = await store.create()
    # A call that never got its result: the log keeps it, the provider must not see it open.
    before = [Send("u0", "Hi"), Part(MessageStart("m0")), Part(ToolCall("m0", "c0", "add", {})), Part(Finish("stop"))]
    await store.append(session.id, before)
    agent = Agent(says)
    async with start_run(store, session.id, agent, text="Again") as run:
        await run.wait()
    (request,) = agent.requests
    assert [message.role for message in request.messages] == ["user", "assistant", "user"]
    assert request.messages[-1].parts[0].text == "Again"  # type: ignore[union-attr]
    assert request.messages[1].parts[0].state == "cancelled"  # type: ignore[union-attr]


async def test_tools_are_read_fresh(store: SessionStore) -> None:
    box = Toolbox()
    seen: list[list[str]] = []

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        seen.append([tool.name for tool in request.tools])
        box.add(add)
        seen.append([tool.name for tool in request.tools])
        yield Finish("stop")

    helper = SubAgent("helper", Agent(says), "Helps.")
    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go", tools=box, agents=[helper]) as run:
        await run.wait()
    assert seen == [["delegate_to_helper"], ["delegate_to_helper", "add"]]


async def test_a_call_is_durable_before_its_tool_runs_and_its_result_before_the_agent_goes_on(
    store: SessionStore,
) -> None:
    session = await store.create()
    seen: list[AgentStreamPart] = []

    async def look() -> str:
        seen.append(parts(await whole_log(store, session.id))[-1])
        return "looked"

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        yield TextDelta("m", "I look.")
        call = ToolCall("m", "c", "look", {})
        yield call
        output = await request.call_tool(call)
        seen.append(parts(await whole_log(store, session.id))[-1])
        yield tool_outcome("c", output)
        yield Finish("stop")

    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(look)) as run:
        await run.wait()
    assert seen == [ToolCall("m", "c", "look", {}), ToolResult("c", {"content": [{"type": "text", "text": "looked"}]})]
    # The run logged the result; the agent's own report of it is not logged again.
    assert [type(part) for part in parts(await whole_log(store, session.id))].count(ToolResult) == 1


async def test_text_is_handed_out_without_waiting_for_the_disk(store: SessionStore) -> None:
    session = await store.create()
    numbers: list[int] = []

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        for word in "one two three four".split():
            yield TextDelta("m", word)
            numbers.append((await store.get(session.id)).number)
        yield Finish("stop")

    async with start_run(store, session.id, Agent(play), text="go") as run:
        first = [part async for part in run][:2]
    assert first == [MessageStart("m"), TextDelta("m", "one")]
    assert parts(await whole_log(store, session.id))[-1] == Finish("stop")


async def test_an_agent_with_tools_of_its_own_has_their_outcomes_logged_as_it_says(store: SessionStore) -> None:
    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        yield Reasoning("m", "I search.", {"signature": "x"})
        yield ToolCall("m", "s1", "web_search", {"q": "mugs"})
        yield ToolResult("s1", {"content": []})
        yield ToolCall("m", "s2", "web_search", {"q": "cups"})
        yield ToolError("s2", "Error [failed] too many requests")
        yield StepFinish(1)
        yield Finish("max-steps")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go") as run:
        yielded = [part async for part in run]
    assert parts(await whole_log(store, session.id)) == yielded
    assert len(yielded) == 8
    assert run.ending is not None
    assert run.ending.faults == ()
    state = await at_rest(store, session.id)
    assert [part.state for part in state.messages[1].parts if hasattr(part, "state")] == ["done", "error"]


async def test_an_outcome_that_the_agent_changes_is_logged_as_well_and_wins(store: SessionStore) -> None:
    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        call = ToolCall("m", "c", "add", {"a": 1, "b": 2})
        yield call
        await request.call_tool(call)
        yield ToolResult("c", "shortened")
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(add)) as run:
        await run.wait()
    state = await at_rest(store, session.id)
    assert state.messages[1].parts[0].output == "shortened"  # type: ignore[union-attr]


# ---- one run a session ------------------------------------------------------------------------------------------


async def test_a_second_run_is_refused_and_told_who_owns_the_session(store: SessionStore) -> None:
    session = await store.create()
    go_on = anyio.Event()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        await go_on.wait()
        yield Finish("stop")

    async with start_run(store, session.id, Agent(play), text="one") as run:
        with pytest.raises(RunInProgress) as refused:
            async with start_run(store, session.id, Agent(says), text="two"):
                raise AssertionError("two runs in one session")
        assert refused.value.lease.run == run.id
        assert refused.value.code == "run_in_progress"
        held = (await store.get(session.id)).lease
        assert held is not None
        assert held.run == run.id
        go_on.set()
    assert [row.action for row in await whole_log(store, session.id) if isinstance(row.action, Send)] == [
        Send(f"user-{run.id}", "one")
    ]
    await at_rest(store, session.id)
    async with start_run(store, session.id, Agent(says), text="two") as run:
        await run.wait()
    await at_rest(store, session.id)


async def test_a_run_may_interrupt_the_one_before_it(store: SessionStore) -> None:
    session = await store.create()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        await anyio.sleep(60)

    async with start_run(store, session.id, Agent(play), text="one", settings=RunSettings(grace_seconds=0)) as first:
        async with start_run(store, session.id, Agent(says), text="two", interrupt=True) as second:
            await second.wait()
        await first.wait()
    assert first.ending is not None
    assert (first.ending.cause, first.ending.part) == ("stop", Finish("aborted"))
    rows = await whole_log(store, session.id)
    runs = [row.run for row in rows]
    assert runs == sorted(runs, key=lambda run: run == second.id)  # nothing of the first comes after the second began
    await at_rest(store, session.id)


async def test_a_run_of_an_unknown_session_or_with_two_agents_of_one_name_starts_nothing(store: SessionStore) -> None:
    agent = Agent(says)
    with pytest.raises(SessionNotFound):
        async with start_run(store, "nowhere", agent, text="go"):
            pass
    session = await store.create()
    twice = [SubAgent("same", agent, "One."), SubAgent("same", agent, "Two.")]
    with pytest.raises(InvalidArgument):
        async with start_run(store, session.id, agent, text="go", agents=twice):
            pass
    assert (await store.get(session.id)).number == 0
    assert agent.requests == []


# ---- the caller ---------------------------------------------------------------------------------------------------


async def test_a_caller_that_stops_reading_does_not_stop_the_run(store: SessionStore) -> None:
    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        for _ in range(5_000):
            yield TextDelta("m", "x")
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go") as run:
        async for part in run:
            if isinstance(part, TextDelta):
                break
    assert run.ending is not None
    assert run.ending.part == Finish("stop")
    assert (await store.get(session.id)).number == 5_003


async def test_what_the_caller_raises_ends_the_run_and_comes_out_as_it_is(store: SessionStore) -> None:
    session = await store.create()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        call = ToolCall("m", "c", "sleep", {})
        yield call
        yield tool_outcome("c", await request.call_tool(call))
        yield Finish("stop")

    async def sleep() -> None:
        await anyio.sleep(60)

    async def caller() -> None:
        async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(sleep)) as run:
            async for part in run:
                if isinstance(part, ToolCall):
                    raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await caller()
    rows = await whole_log(store, session.id)
    assert rows[-1].action == Part(Finish("aborted"))
    assert rows[-1].meta == {"cause": "raised"}
    state = await at_rest(store, session.id)
    assert state.messages[1].parts[0].state == "cancelled"  # type: ignore[union-attr]


async def test_a_cancelled_caller_leaves_a_session_at_rest(store: SessionStore) -> None:
    session = await store.create()
    started = anyio.Event()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        yield TextDelta("m", "I begin")
        started.set()
        await anyio.sleep(60)

    async with anyio.create_task_group() as group:

        async def caller() -> None:
            async with start_run(store, session.id, Agent(play), text="go") as run:
                await run.wait()

        group.start_soon(caller)
        await started.wait()
        group.cancel_scope.cancel()
    rows = await whole_log(store, session.id)
    assert [row.action for row in rows[-2:]] == [Part(TextDelta("m", "I begin")), Part(Finish("aborted"))]
    assert rows[-1].meta == {"cause": "cancelled"}
    await at_rest(store, session.id)


async def test_a_caller_may_be_cancelled_at_any_moment(store: SessionStore) -> None:
    """Also while the session is being taken: then the lease is given back."""
    agent = Agent(calls(("c1", "add", {"a": 1, "b": 2})))
    for number in range(60):
        session = await store.create()

        async def caller(session_id: str) -> None:
            async with start_run(store, session_id, agent, text="go", tools=Toolbox(add)) as run:
                await run.wait()

        async with anyio.create_task_group() as group:
            group.start_soon(caller, session.id)
            for _ in range(number % 20):
                await anyio.lowlevel.checkpoint()
            if number >= 40:
                await anyio.sleep(0.0005 * (number - 39))
            group.cancel_scope.cancel()
        await at_rest(store, session.id)


async def test_a_slow_reader_holds_the_agent_back(store: SessionStore) -> None:
    made = 0

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        nonlocal made
        yield MessageStart("m")
        for _ in range(20_000):
            made += 1
            yield TextDelta("m", "x")
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go") as run:
        async for _ in run:
            break
        for _ in range(200):
            await anyio.sleep(0.001)
        assert made < 3_000
    assert made == 20_000


# ---- what others do to the session ---------------------------------------------------------------------------------


async def test_a_session_that_is_erased_under_a_run_ends_it_with_the_stores_word(store: SessionStore) -> None:
    session = await store.create()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        await anyio.sleep(60)

    async def caller() -> None:
        async with start_run(store, session.id, Agent(play), text="go") as run:
            await store.erase(session.id)
            await run.wait()

    with pytest.raises(SessionErased):
        await caller()


async def test_another_turn_cannot_begin_beside_a_run(store: SessionStore) -> None:
    session = await store.create()
    begun = anyio.Event()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        begun.set()
        await request.signal.wait()
        yield Finish("aborted")

    async with start_run(store, session.id, Agent(play), text="go") as run:
        await begun.wait()
        for action in (Send("u2", "and"), Retry(), Reset()):
            with pytest.raises(RunInProgress):
                await store.append(session.id, [action])
        await run.stop()
        await run.wait()
    await store.append(session.id, [Reset()])
    assert (await at_rest(store, session.id)).messages == ()


async def test_an_adapters_error_part_is_the_sessions_error(store: SessionStore) -> None:
    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        yield RunError("Slow down.", "rate_limited")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go") as run:
        ending = await run.wait()
    assert ending.part == RunError("Slow down.", "rate_limited")
    state = await at_rest(store, session.id)
    assert state.error is not None
    assert (state.error.message, state.error.code) == ("Slow down.", "rate_limited")


async def test_a_lease_is_renewed_while_the_run_is_silent(store: SessionStore) -> None:
    session = await store.create()
    settings = RunSettings(lease_seconds=0.3)
    expiries: set[int] = set()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        for _ in range(20):
            await anyio.sleep(0.05)
            lease = (await store.get(session.id)).lease
            assert lease is not None
            expiries.add(lease.expires)
        yield Finish("stop")

    async with start_run(store, session.id, Agent(play), text="go", settings=settings) as run:
        ending = await run.wait()
    assert ending.part == Finish("stop")
    assert len(expiries) >= 3


async def test_many_runs_at_once(store: SessionStore) -> None:
    sessions = [await store.create() for _ in range(40)]
    agent = Agent(calls(*[(f"c{n}", "add", {"a": n, "b": n}) for n in range(5)]))

    async def one(session_id: str) -> None:
        async with start_run(store, session_id, agent, text="go", tools=Toolbox(add)) as run:
            await run.wait()

    async with anyio.create_task_group() as group:
        for session in sessions:
            group.start_soon(one, session.id)
    for session in sessions:
        state = await at_rest(store, session.id)
        assert len(state.messages[1].parts) == 10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease_seconds", 0.05),
        ("lease_seconds", float("inf")),
        ("grace_seconds", -1),
        ("grace_seconds", float("nan")),
        ("approval_seconds", -0.1),
        ("patience_seconds", -1),
        ("max_depth", -1),
    ],
)
async def test_settings_that_make_no_sense_are_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidArgument, match=name):
        RunSettings(**{name: value})  # type: ignore[arg-type]
