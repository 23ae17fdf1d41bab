"""What a run tells its observer: each start has its end, nested, whatever happens in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from observer import Observer, assert_nested
from run_world import Agent, at_rest, calls, says, until, whole_log

from talkfold import (
    AgentStreamPart,
    Finish,
    LeaseLost,
    MessageStart,
    NothingToRetry,
    RunError,
    RunInProgress,
    SessionNotFound,
    ToolCall,
)
from talkfold.runs import (
    AgentEnded,
    AgentRunRequest,
    AgentStarted,
    CallEnded,
    CallParked,
    CallProgress,
    CallStarted,
    ClientTools,
    RunEnded,
    RunStarted,
    SubAgent,
    Toolbox,
    ToolContext,
    ToolDescriptor,
    parked_call,
    retry_run,
    start_run,
    tool,
    tool_outcome,
)
from talkfold.store import SessionStore, open_store

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    return a + b


async def play(
    store: SessionStore, agent: Agent, observer: Observer, *tools: Any, agents: tuple[SubAgent, ...] = ()
) -> str:
    """Run the agent to its end; the session's id."""
    session = await store.create()
    settings = observer.settings
    async with start_run(
        store, session.id, agent, text="go", tools=Toolbox(*tools), agents=agents, owner=None, settings=settings
    ):
        pass
    await at_rest(store, session.id)
    assert_nested(observer.events)
    return session.id


# ---- each start has its end ---------------------------------------------------------------------------------------


async def test_a_run_with_a_call_tells_its_six_events_in_order(store: SessionStore) -> None:
    observer = Observer()
    session_id = await play(store, Agent(calls(("c1", "add", {"a": 1, "b": 2}))), observer, add)
    assert observer.story() == "R(A(C()))"
    run = observer.only(RunStarted).run
    number = next(row.number for row in await whole_log(store, session_id) if b"tool-call" in row.body)
    assert observer.only(RunStarted) == RunStarted(session_id, run, "agent", "send")
    assert observer.only(AgentStarted) == AgentStarted(run, "agent", "agent", 0)
    assert observer.only(CallStarted) == CallStarted(run, "c1", "add", number)
    ended = observer.only(CallEnded)
    assert ended == CallEnded(run, "c1", "add", "done", ended.seconds)
    assert observer.only(AgentEnded) == AgentEnded(run, "agent", "stop", 0)
    over = observer.only(RunEnded)
    assert over == RunEnded(session_id, run, "agent", "stop", over.seconds, 5)
    assert 0 <= ended.seconds <= over.seconds < 60


async def test_a_retry_says_so(store: SessionStore) -> None:
    session = await store.create()
    async with start_run(store, session.id, Agent(says), text="go"):
        pass
    observer = Observer()
    async with retry_run(store, session.id, Agent(says), settings=observer.settings):
        pass
    assert observer.only(RunStarted).action == "retry"
    assert_nested(observer.events)


async def test_seconds_are_those_that_the_tool_took(store: SessionStore) -> None:
    async def slow() -> None:
        await anyio.sleep(0.1)

    observer = Observer()
    await play(store, Agent(calls(("c1", "slow", {}))), observer, slow)
    assert 0.1 <= observer.only(CallEnded).seconds < 10
    assert observer.only(RunEnded).seconds >= observer.only(CallEnded).seconds


async def test_a_tool_that_raises(store: SessionStore) -> None:
    def broken() -> None:
        raise ValueError("no paper")

    observer = Observer()
    await play(store, Agent(calls(("c1", "broken", {}))), observer, broken)
    ended = observer.only(CallEnded)
    assert (ended.state, ended.error) == ("error", "Error [failed] broken: ValueError: no paper")
    assert (observer.only(RunEnded).reason, observer.only(RunEnded).error) == ("stop", None)


async def test_a_tool_that_takes_too_long(store: SessionStore) -> None:
    @tool(timeout=0.05)
    async def slow() -> None:
        await anyio.sleep(60)

    observer = Observer()
    await play(store, Agent(calls(("c1", "slow", {}))), observer, slow)
    ended = observer.only(CallEnded)
    assert (ended.state, ended.error) == ("error", "Error [timeout] slow: no result within 0.05 s")
    assert 0.05 <= ended.seconds < 10


async def test_a_tool_that_does_not_exist(store: SessionStore) -> None:
    observer = Observer()
    await play(store, Agent(calls(("c1", "nothing", {}))), observer)
    assert observer.only(CallEnded).error.startswith("Error [not_found]")


async def test_agents_two_deep(store: SessionStore) -> None:
    inner = SubAgent("inner", Agent(calls(("c1", "add", {"a": 1, "b": 2})), "deepest"), "Adds.", tools=Toolbox(add))
    outer = SubAgent("outer", Agent(calls(("d2", "delegate_to_inner", {"task": "Add."}))), "Asks.", agents=[inner])
    observer = Observer()
    agent = Agent(calls(("d1", "delegate_to_outer", {"task": "Ask."})), "first")
    session_id = await play(store, agent, observer, agents=(outer,))
    assert observer.story() == "R(A(C(A(C(A(C()))))))"
    run = observer.only(RunStarted).run
    assert [event for event in observer.events if type(event) is AgentStarted] == [
        AgentStarted(run, "first", "first", 0),
        AgentStarted(run, "outer", "agent", 1, "d1"),
        AgentStarted(run, "inner", "deepest", 2, "d2"),
    ]
    made = [event for event in observer.events if type(event) is CallStarted]
    assert [(event.call_id, event.within) for event in made] == [("d1", None), ("d2", "d1"), ("c1", "d2")]
    rows = {row.number: row.body for row in await whole_log(store, session_id)}
    assert all(event.call_id.encode() in rows[event.number] and b"tool-call" in rows[event.number] for event in made)


async def test_a_sub_agent_that_raises(store: SessionStore) -> None:
    async def raises(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        raise ValueError("lost the thread")

    observer = Observer()
    agent = Agent(calls(("d1", "delegate_to_inner", {"task": "Fail."})))
    await play(store, agent, observer, agents=(SubAgent("inner", Agent(raises), "Fails."),))
    nested = next(event for event in observer.events if type(event) is AgentEnded)
    assert (nested.reason, nested.error, nested.depth, nested.within) == (
        "error",
        "ValueError: lost the thread",
        1,
        "d1",
    )
    assert observer.only(CallEnded).state == "error"
    assert (observer.only(RunEnded).cause, observer.only(RunEnded).reason) == ("agent", "stop")
    assert [(fault.code, fault.count) for fault in observer.only(RunEnded).faults] == [("agent-raised", 1)]


async def test_stop_in_a_tool(store: SessionStore) -> None:
    inside = anyio.Event()

    async def hangs() -> None:
        inside.set()
        await anyio.sleep(60)

    observer = Observer()
    session = await store.create()
    agent = Agent(calls(("c1", "hangs", {})))
    async with start_run(store, session.id, agent, text="go", tools=Toolbox(hangs), settings=observer.settings) as run:
        await inside.wait()
        await run.stop()
        await run.wait()
    assert observer.story() == "R(A(C()))"
    assert_nested(observer.events)
    assert (observer.only(CallEnded).state, observer.only(CallEnded).error) == (
        "cancelled",
        "Error [cancelled] hangs: stopped (stop)",
    )
    assert (observer.only(RunEnded).cause, observer.only(RunEnded).reason) == ("stop", "aborted")
    await at_rest(store, session.id)


async def test_the_caller_is_cancelled_in_a_tool(store: SessionStore) -> None:
    inside = anyio.Event()

    async def hangs() -> None:
        inside.set()
        await anyio.sleep(60)

    observer = Observer()
    session = await store.create()
    with anyio.CancelScope() as scope:
        agent = Agent(calls(("c1", "hangs", {})))
        async with start_run(store, session.id, agent, text="go", tools=Toolbox(hangs), settings=observer.settings):
            await inside.wait()
            scope.cancel()
            await anyio.sleep(60)
    assert observer.story() == "R(A(C()))"
    assert_nested(observer.events)
    assert observer.only(CallEnded).state == "cancelled"
    assert (observer.only(RunEnded).cause, observer.only(RunEnded).reason) == ("cancelled", "aborted")
    await at_rest(store, session.id)


async def test_the_caller_raises(store: SessionStore) -> None:
    async def hangs(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        await anyio.sleep(60)

    observer = Observer()
    session = await store.create()
    with pytest.raises(KeyError, match="caller"):
        async with start_run(store, session.id, Agent(hangs), text="go", settings=observer.settings):
            raise KeyError("caller")
    assert observer.story() == "R(A())"
    assert_nested(observer.events)
    assert (observer.only(RunEnded).cause, observer.only(AgentEnded).reason) == ("raised", "aborted")


async def test_an_adapter_that_raises(store: SessionStore) -> None:
    async def raises(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        raise ConnectionError("gone")

    observer = Observer()
    await play(store, Agent(raises), observer)
    assert observer.story() == "R(A())"
    assert (observer.only(AgentEnded).reason, observer.only(AgentEnded).error) == ("error", "ConnectionError: gone")
    over = observer.only(RunEnded)
    assert (over.cause, over.reason, over.error, over.error_code) == (
        "agent",
        "error",
        "ConnectionError: gone",
        "network",
    )
    assert [(fault.code, fault.text) for fault in over.faults] == [
        ("agent-raised", "the agent raised ConnectionError: gone")
    ]


async def test_an_agent_that_says_an_error(store: SessionStore) -> None:
    async def fails(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield RunError("Too many requests.", "rate_limited")

    observer = Observer()
    await play(store, Agent(fails), observer)
    over = observer.only(RunEnded)
    assert (over.reason, over.error, over.error_code, over.faults) == (
        "error",
        "Too many requests.",
        "rate_limited",
        (),
    )


async def test_refused_starts_have_an_end_and_no_agent(store: SessionStore) -> None:
    async def hangs(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        await anyio.sleep(60)

    session = await store.create()
    first, second, absent, empty = Observer(), Observer(), Observer(), Observer()
    async with start_run(store, session.id, Agent(hangs), text="go", settings=first.settings) as run:
        with pytest.raises(RunInProgress):
            async with start_run(store, session.id, Agent(says), text="me too", settings=second.settings):
                raise AssertionError
        await run.stop()
    with pytest.raises(SessionNotFound):
        async with start_run(store, "none", Agent(says), text="go", settings=absent.settings):
            raise AssertionError
    with pytest.raises(NothingToRetry):
        async with retry_run(store, (await store.create()).id, Agent(says), settings=empty.settings):
            raise AssertionError
    assert first.story() == "R(A())"
    for refused in (second, absent, empty):
        assert refused.story() == "R()"
        assert_nested(refused.events)
        over = refused.only(RunEnded)
        assert (over.cause, over.reason, over.parts, over.faults) == ("refused", None, 0, ())


async def test_a_run_that_loses_its_lease() -> None:
    """The store takes the lease of a run that has not renewed it for too long and gives it to the next one."""
    now = 1_000_000_000
    async with open_store("memory:", clock=lambda: now) as store:
        session = await store.create()
        first, second = Observer(), Observer()
        inside, go_on = anyio.Event(), anyio.Event()

        async def waits(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            yield MessageStart("m")
            inside.set()
            await go_on.wait()
            call = ToolCall("m", "c1", "add", {"a": 1, "b": 2})
            yield call
            yield tool_outcome("c1", await request.call_tool(call))
            yield Finish("stop")

        async def loses() -> None:
            nonlocal now
            async with start_run(store, session.id, Agent(waits), text="go", settings=first.settings):
                await inside.wait()
                now += 1_000_000
                async with start_run(store, session.id, Agent(says), text="now me", settings=second.settings):
                    pass
                go_on.set()

        with pytest.raises(LeaseLost):
            await loses()
        assert first.story() == "R(A())"
        assert_nested(first.events)
        assert (first.only(RunEnded).cause, first.only(RunEnded).reason) == ("lease-lost", None)
        assert second.only(RunEnded).cause == "agent"


async def test_calls_side_by_side_each_have_their_end(store: SessionStore) -> None:
    async def both(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        made = [ToolCall("m", f"c{n}", "add", {"a": n, "b": 1}) for n in range(5)]
        for call in made:
            yield call
        outputs: dict[str, Any] = {}

        async def make(call: ToolCall) -> None:
            outputs[call.id] = await request.call_tool(call)

        async with anyio.create_task_group() as group:
            for call in made:
                group.start_soon(make, call)
        for call in made:
            yield tool_outcome(call.id, outputs[call.id])
        yield Finish("stop")

    session = await store.create()
    observer = Observer()
    async with start_run(store, session.id, Agent(both), text="go", tools=Toolbox(add), settings=observer.settings):
        pass
    kinds = [type(event) for event in observer.events]
    assert (kinds[:2], kinds[-2:]) == ([RunStarted, AgentStarted], [AgentEnded, RunEnded])
    for number in range(5):
        own = [type(event) for event in observer.events if getattr(event, "call_id", None) == f"c{number}"]
        assert own == [CallStarted, CallEnded]
    numbers = [event.number for event in observer.events if type(event) is CallStarted]
    assert sorted(numbers) == sorted(set(numbers))


async def test_a_call_that_waits_says_for_what(store: SessionStore) -> None:
    session = await store.create()
    observer = Observer()
    page = ClientTools([ToolDescriptor("fill_in", "Fills in.", {"type": "object"})])
    agent = Agent(calls(("c1", "fill_in", {})))
    async with start_run(store, session.id, agent, text="go", tools=Toolbox(page), settings=observer.settings) as run:
        await until(lambda: any(type(event) is CallParked for event in observer.events))
        found = await parked_call(store, session.id)
        await run.stop()
        await run.wait()
    assert [type(event) for event in observer.events][2:5] == [CallStarted, CallParked, CallEnded]
    assert found
    assert observer.only(CallParked) == CallParked(run.id, found.waiting)
    assert observer.only(CallEnded).state == "cancelled"
    assert_nested(observer.events)


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "task"])
async def test_progress_comes_in_the_thread_that_reports(store: SessionStore, is_async: bool) -> None:
    def reports(context: ToolContext) -> None:
        context.report(1, 2, "half")

    async def reports_async(context: ToolContext) -> None:
        context.report(1, 2, "half")

    observer = Observer()
    made = tool(name="it")(reports_async) if is_async else tool(name="it")(reports)
    await play(store, Agent(calls(("c1", "it", {}))), observer, made)
    progress = observer.only(CallProgress)
    assert (progress.progress.call_id, progress.progress.message) == ("c1", "half")
    assert observer.elsewhere == ([] if is_async else [progress])
