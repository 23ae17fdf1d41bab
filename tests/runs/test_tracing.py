"""Traces of runs: one tree of spans a run, after the GenAI conventions, with nothing left open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from opentelemetry import trace
from opentelemetry.trace import SpanKind
from run_world import Agent, at_rest, calls, says, whole_log
from traces import ADDS, FINE, Traces, about, add, everything, failed, status

from talkfold import AgentStreamPart, Finish, LeaseLost, MessageStart, RunError, RunInProgress, ToolCall
from talkfold.runs import (
    AgentRunRequest,
    RunSettings,
    SubAgent,
    Toolbox,
    WebAgent,
    start_run,
    tool,
    tool_outcome,
)
from talkfold.runs.tracing import OpenTelemetry
from talkfold.store import SessionStore, open_store

pytestmark = pytest.mark.anyio


@pytest.fixture
def traces() -> Traces:
    return Traces()


# ---- spans and attributes -----------------------------------------------------------------------------------------


async def test_a_run_and_its_call(store: SessionStore, traces: Traces) -> None:
    session = await store.create()
    async with start_run(
        store, session.id, Agent(ADDS), text="go", tools=Toolbox(add), settings=traces.settings()
    ) as run:
        pass
    assert traces.tree() == ["invoke_agent agent", ". execute_tool add"]
    own, call = traces.ended()
    assert about(own) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "agent",
        "gen_ai.agent.name": "agent",
        "gen_ai.agent.id": "agent",
        "gen_ai.conversation.id": session.id,
        "talkfold.run.id": run.id,
        "talkfold.run.action": "send",
        "talkfold.run.cause": "agent",
        "talkfold.run.reason": "stop",
        "talkfold.run.parts": 5,
    }
    assert about(call) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": session.id,
        "talkfold.run.id": run.id,
        "talkfold.call.number": 3,
        "talkfold.call.state": "done",
    }
    assert (own.kind, call.kind) == (SpanKind.INTERNAL, SpanKind.INTERNAL)
    assert (status(own), status(call)) == (FINE, FINE)
    assert (own.events, call.events) == ((), ())
    times = [own.start_time, call.start_time, call.end_time, own.end_time]
    assert times == sorted(times, key=lambda time: time or 0)
    assert own.instrumentation_scope is not None
    assert own.instrumentation_scope.name == "talkfold"


async def test_the_log_names_the_trace_and_the_span_of_the_run(store: SessionStore, traces: Traces) -> None:
    session = await store.create()
    async with start_run(
        store, session.id, Agent(ADDS), text="go", tools=Toolbox(add), meta={"page": 1}, settings=traces.settings()
    ) as run:
        pass
    ids = traces.named("invoke_agent agent").context
    first, *others = await whole_log(store, session.id)
    assert first.meta == {"page": 1, "trace": f"{ids.trace_id:032x}", "span": f"{ids.span_id:016x}"}
    assert first.run == run.id
    assert not any(row.meta for row in others)


async def test_the_callers_span_is_the_parent(store: SessionStore, traces: Traces) -> None:
    session = await store.create()
    with traces.tracer().start_as_current_span("POST /chat") as request:
        async with start_run(store, session.id, Agent(ADDS), text="go", tools=Toolbox(add), settings=traces.settings()):
            assert trace.get_current_span() is request
        assert trace.get_current_span() is request
    assert traces.tree() == ["POST /chat", ". invoke_agent agent", ". . execute_tool add"]


async def test_agents_two_deep(store: SessionStore, traces: Traces) -> None:
    inner = SubAgent("inner", Agent(ADDS, "deepest"), "Adds.", tools=Toolbox(add))
    outer = SubAgent("outer", Agent(calls(("d2", "delegate_to_inner", {"task": "Add."}))), "Asks.", agents=[inner])
    agent = Agent(calls(("d1", "delegate_to_outer", {"task": "Ask."})), "first")
    session = await store.create()
    settings = traces.settings()
    async with start_run(store, session.id, agent, text="go", agents=[outer], settings=settings) as run:
        pass
    assert traces.tree() == [
        "invoke_agent first",
        ". execute_tool delegate_to_outer",
        ". . invoke_agent outer",
        ". . . execute_tool delegate_to_inner",
        ". . . . invoke_agent inner",
        ". . . . . execute_tool add",
    ]
    assert about(traces.named("invoke_agent inner")) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "deepest",
        "gen_ai.agent.name": "inner",
        "gen_ai.agent.id": "inner",
        "gen_ai.conversation.id": session.id,
        "talkfold.run.id": run.id,
        "talkfold.agent.depth": 2,
        "talkfold.agent.reason": "stop",
    }
    assert "gen_ai.tool.type" not in about(traces.named("execute_tool delegate_to_inner"))


async def test_the_runs_span_has_the_name_of_its_agent(store: SessionStore, traces: Traces) -> None:
    session = await store.create()
    settings = traces.settings()
    async with start_run(store, session.id, Agent(says), text="go", agent=WebAgent("planner"), settings=settings):
        pass
    own = about(traces.named("invoke_agent planner"))
    assert (own["gen_ai.agent.name"], own["gen_ai.provider.name"]) == ("planner", "agent")


# ---- where a span is current --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "task"])
async def test_what_a_tool_and_an_adapter_start_is_nested(store: SessionStore, traces: Traces, is_async: bool) -> None:
    tracer = traces.tracer()

    def look() -> None:
        with tracer.start_as_current_span("in the tool"):
            pass

    async def look_async() -> None:
        with tracer.start_as_current_span("in the tool"):
            await checkpoint()

    async def asks(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        with tracer.start_as_current_span("POST /v1/messages"):
            await checkpoint()
        yield MessageStart("m")
        call = ToolCall("m", "c1", "look", {})
        yield call
        yield tool_outcome("c1", await request.call_tool(call))
        with tracer.start_as_current_span("POST /v1/messages"):
            await checkpoint()
        yield Finish("stop")

    box = Toolbox(tool(name="look")(look_async) if is_async else tool(name="look")(look))
    inner = SubAgent("inner", Agent(asks), "Looks.", tools=box)
    session = await store.create()
    agent = Agent(calls(("d1", "delegate_to_inner", {"task": "Look."})))
    async with start_run(store, session.id, agent, text="go", agents=[inner], settings=traces.settings()):
        pass
    assert traces.tree() == [
        "invoke_agent agent",
        ". execute_tool delegate_to_inner",
        ". . invoke_agent inner",
        ". . . POST /v1/messages",
        ". . . execute_tool look",
        ". . . . in the tool",
        ". . . POST /v1/messages",
    ]
    assert not trace.get_current_span().get_span_context().is_valid


async def test_calls_that_are_asked_for_at_once_do_not_mix(store: SessionStore, traces: Traces) -> None:
    tracer = traces.tracer()

    async def look() -> None:
        with tracer.start_as_current_span("in the tool"):
            await anyio.sleep(0.01)

    async def together(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        made = [ToolCall("m", "same", "look", {}) for _ in range(3)]
        for call in made:
            yield call
        outputs: list[Any] = []

        async def make(call: ToolCall) -> None:
            outputs.append(await request.call_tool(call))

        async with anyio.create_task_group() as group:
            for call in made:
                group.start_soon(make, call)
        for output in outputs:
            yield tool_outcome("same", output)
        yield Finish("stop")

    session = await store.create()
    settings = traces.settings()
    async with start_run(store, session.id, Agent(together), text="go", tools=Toolbox(look), settings=settings):
        pass
    assert traces.tree() == ["invoke_agent agent", *[". execute_tool look", ". . in the tool"] * 3]
    made = [span for span in traces.ended() if span.name == "execute_tool look"]
    assert sorted(about(span)["talkfold.call.number"] for span in made) == [3, 4, 5]


async def test_a_call_from_a_task_that_was_there_before_the_run_is_under_its_agent(
    store: SessionStore, traces: Traces
) -> None:
    ask, asked = anyio.create_memory_object_stream[Any](1)
    give, given = anyio.create_memory_object_stream[Any](1)

    async def worker() -> None:
        request, call = await asked.receive()
        await give.send(await request.call_tool(call))

    async def hands_over(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        call = ToolCall("m", "c1", "add", {"a": 1, "b": 2})
        yield call
        await ask.send((request, call))
        yield tool_outcome("c1", await given.receive())
        yield Finish("stop")

    session = await store.create()
    with ask, asked, give, given, traces.tracer().start_as_current_span("POST /chat"):
        async with anyio.create_task_group() as group:
            group.start_soon(worker)
            async with start_run(
                store, session.id, Agent(hands_over), text="go", tools=Toolbox(add), settings=traces.settings()
            ):
                pass
    assert traces.tree() == ["POST /chat", ". invoke_agent agent", ". . execute_tool add"]


# ---- how it ends --------------------------------------------------------------------------------------------------


async def test_a_tool_that_fails(store: SessionStore, traces: Traces) -> None:
    def broken() -> None:
        raise ValueError("card 4242")

    @tool(timeout=0.05)
    async def slow() -> None:
        await anyio.sleep(60)

    def says_so() -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "card 4242 is no good"}], "isError": True}

    session = await store.create()
    agent = Agent(calls(("c1", "broken", {}), ("c2", "slow", {}), ("c3", "says_so", {}), ("c4", "nothing", {})))
    async with start_run(
        store, session.id, agent, text="go", tools=Toolbox(broken, slow, says_so), settings=traces.settings()
    ):
        pass
    assert status(traces.named("execute_tool broken")) == failed("failed")
    assert status(traces.named("execute_tool slow")) == failed("timeout")
    assert status(traces.named("execute_tool says_so")) == failed("tool_error")
    assert status(traces.named("execute_tool nothing")) == failed("not_found")
    assert about(traces.named("execute_tool broken"))["talkfold.call.state"] == "error"
    assert status(traces.named("invoke_agent agent")) == FINE
    assert "4242" not in everything(traces.ended())


async def test_an_agent_that_raises_is_a_fault_and_an_error(store: SessionStore, traces: Traces) -> None:
    async def raises(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        raise ConnectionError("card 4242")

    session = await store.create()
    async with start_run(store, session.id, Agent(raises), text="go", settings=traces.settings()):
        pass
    own = traces.named("invoke_agent agent")
    assert status(own) == failed("network")
    assert [(event.name, dict(event.attributes or {})) for event in own.events] == [
        ("talkfold.fault", {"talkfold.fault.code": "agent-raised", "talkfold.fault.count": 1})
    ]
    assert (about(own)["talkfold.run.cause"], about(own)["talkfold.run.reason"]) == ("agent", "error")
    assert "4242" not in everything(traces.ended())


async def test_an_agent_and_a_sub_agent_that_say_an_error(store: SessionStore, traces: Traces) -> None:
    async def fails(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        if request.agent and request.agent.id == "inner":
            yield RunError("card 4242")
            return
        call = ToolCall("m", "d1", "delegate_to_inner", {"task": "Fail."})
        yield call
        yield tool_outcome("d1", await request.call_tool(call))
        yield RunError("card 4242", "rate_limited")

    session = await store.create()
    inner = SubAgent("inner", Agent(fails), "Fails.")
    async with start_run(store, session.id, Agent(fails), text="go", agents=[inner], settings=traces.settings()):
        pass
    assert status(traces.named("invoke_agent inner")) == failed("agent_error")
    assert status(traces.named("execute_tool delegate_to_inner")) == failed("failed")
    assert status(traces.named("invoke_agent agent")) == failed("rate_limited")
    assert "4242" not in everything(traces.ended())


async def hangs(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
    yield MessageStart("m")
    call = ToolCall("m", "c1", "wait", {})
    yield call
    yield tool_outcome("c1", await request.call_tool(call))
    yield Finish("stop")


async def test_a_stop_is_no_error(store: SessionStore, traces: Traces) -> None:
    inside = anyio.Event()

    async def wait() -> None:
        inside.set()
        await anyio.sleep(60)

    session = await store.create()
    async with start_run(
        store, session.id, Agent(hangs), text="go", tools=Toolbox(wait), settings=traces.settings()
    ) as run:
        await inside.wait()
        await run.stop()
        await run.wait()
    assert traces.tree() == ["invoke_agent agent", ". execute_tool wait"]
    own, call = traces.ended()
    assert (status(own), status(call)) == (FINE, FINE)
    assert (about(own)["talkfold.run.cause"], about(own)["talkfold.run.reason"]) == ("stop", "aborted")
    assert about(call)["talkfold.call.state"] == "cancelled"


@pytest.mark.parametrize("deep", [False, True], ids=["the run's own", "nested"])
async def test_a_caller_that_is_cancelled(store: SessionStore, traces: Traces, deep: bool) -> None:
    inside = anyio.Event()

    async def wait() -> None:
        inside.set()
        await anyio.sleep(60)

    inner = SubAgent("inner", Agent(hangs), "Waits.", tools=Toolbox(wait))
    agent = Agent(calls(("d1", "delegate_to_inner", {"task": "Wait."}))) if deep else Agent(hangs)
    session = await store.create()
    with anyio.CancelScope() as scope:
        async with start_run(
            store,
            session.id,
            agent,
            text="go",
            tools=Toolbox(wait),
            agents=[inner],
            settings=traces.settings(),
        ):
            await inside.wait()
            scope.cancel()
            await anyio.sleep(60)
    assert status(traces.named("invoke_agent agent")) == failed("cancelled")
    assert about(traces.named("execute_tool wait"))["talkfold.call.state"] == "cancelled"
    assert len(traces.tree()) == (4 if deep else 2)
    await at_rest(store, session.id)


async def test_a_start_that_is_refused(store: SessionStore, traces: Traces) -> None:
    inside = anyio.Event()

    async def wait() -> None:
        inside.set()
        await anyio.sleep(60)

    session = await store.create()
    async with start_run(
        store, session.id, Agent(hangs), text="go", tools=Toolbox(wait), settings=RunSettings(grace_seconds=0.2)
    ) as run:
        await inside.wait()
        with pytest.raises(RunInProgress):
            async with start_run(store, session.id, Agent(says), text="go", settings=traces.settings()):
                raise AssertionError
        await run.stop()
    assert status(traces.named("invoke_agent agent")) == failed("refused")


async def test_a_run_that_loses_its_lease(traces: Traces) -> None:
    now = 1_000_000_000
    async with open_store("memory:", clock=lambda: now) as store:
        session = await store.create()
        inside, go_on = anyio.Event(), anyio.Event()

        async def wait() -> None:
            inside.set()
            await go_on.wait()

        async def loses() -> None:
            nonlocal now
            async with start_run(
                store, session.id, Agent(hangs), text="go", tools=Toolbox(wait), settings=traces.settings()
            ):
                await inside.wait()
                now += 1_000_000
                async with start_run(store, session.id, Agent(says, "next"), text="me", settings=traces.settings()):
                    pass
                go_on.set()

        with pytest.raises(LeaseLost):
            await loses()
        assert status(traces.named("invoke_agent agent")) == failed("lease-lost")
        assert status(traces.named("invoke_agent next")) == FINE
        assert traces.named("execute_tool wait").end_time


async def test_two_runs_with_one_id_leave_no_span_open(traces: Traces) -> None:
    observe = OpenTelemetry(traces.provider)
    settings = RunSettings(observe=observe, new_run_id=lambda: "same", grace_seconds=0.2)
    inside = anyio.Event()

    async def wait() -> None:
        inside.set()
        await anyio.sleep(60)

    async with open_store("memory:") as store:
        one, two = await store.create(), await store.create()
        async with start_run(store, one.id, Agent(hangs), text="go", tools=Toolbox(wait), settings=settings) as run:
            await inside.wait()
            async with start_run(store, two.id, Agent(says, "other"), text="go", settings=settings):
                pass
            await run.stop()
    assert status(traces.named("invoke_agent other")) == FINE
    assert status(traces.named("invoke_agent agent")) == failed("_OTHER")
