"""Stop: logged by anybody, heard by the run, and final whatever the agent does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from run_world import Agent, actions, at_rest, parts, says, whole_log

from talkfold import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Stop,
    TextDelta,
    ToolCall,
    ToolResult,
)
from talkfold.runs import AgentRunRequest, RunSettings, Toolbox, ToolContext, start_run, stop_run, tool_outcome
from talkfold.store import SessionStore

pytestmark = pytest.mark.anyio

QUICK = RunSettings(grace_seconds=0.1)


async def a_call(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
    """An agent that makes one call of ``work``."""
    yield MessageStart("m")
    call = ToolCall("m", "c", "work", {})
    yield call
    yield tool_outcome("c", await request.call_tool(call))
    yield TextDelta("m", "and on")
    yield Finish("stop")


async def test_any_stop_in_the_log_stops_the_run(store: SessionStore) -> None:
    session = await store.create()
    begun = anyio.Event()
    reasons: list[str | None] = []

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        begun.set()
        await request.signal.wait()
        reasons.append(request.signal.reason)
        yield Finish("aborted")

    async with start_run(store, session.id, Agent(play), text="go") as run:
        await begun.wait()
        lease = await stop_run(store, session.id, actor="somebody", reason="enough")
        ending = await run.wait()
    assert lease is not None
    assert lease.run == run.id
    assert reasons == ["stop"]
    assert (ending.cause, ending.part, ending.faults) == ("stop", Finish("aborted"), ())
    rows = await whole_log(store, session.id)
    (stop,) = [row for row in rows if row.action == Stop()]
    assert (stop.actor, stop.meta) == ("somebody", {"reason": "enough"})
    assert (rows[-1].action, rows[-1].meta) == (Part(Finish("aborted")), {"cause": "stop"})
    await at_rest(store, session.id)


async def test_stop_cancels_the_tool_that_runs(store: SessionStore) -> None:
    session = await store.create()
    heard: list[str | None] = []
    running = anyio.Event()

    async def work(context: ToolContext) -> str:
        running.set()
        try:
            await anyio.sleep(60)
        finally:
            heard.append(context.signal.reason)
        return "done"

    async with start_run(store, session.id, Agent(a_call), text="go", tools=Toolbox(work)) as run:
        await running.wait()
        await run.stop()
        with anyio.fail_after(2):
            ending = await run.wait()
    assert heard == ["stop"]
    assert ending.cause == "stop"
    state = await at_rest(store, session.id)
    (call,) = state.messages[1].parts
    assert call.state == "cancelled"  # type: ignore[union-attr]


async def test_what_a_tool_had_done_when_stop_came_is_the_truth(store: SessionStore) -> None:
    """A result that comes after Stop is logged: the tool did run."""
    session = await store.create()

    async def work() -> str:
        await stop_run(store, session.id)
        return "paid"

    async with start_run(store, session.id, Agent(a_call), text="go", tools=Toolbox(work), settings=QUICK) as run:
        await run.wait()
    state = await at_rest(store, session.id)
    (call,) = [part for part in state.messages[1].parts if part.__struct_config__.tag == "tool"]
    assert call.state == "done"  # type: ignore[union-attr]
    logged = parts(await whole_log(store, session.id))
    assert ToolResult("c", {"content": [{"type": "text", "text": "paid"}]}) in logged
    assert logged[-1] == Finish("aborted")


async def test_an_agent_that_ignores_stop_is_cancelled_after_the_grace_time(store: SessionStore) -> None:
    session = await store.create()
    begun = anyio.Event()
    cancelled: list[float] = []

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        begun.set()
        try:
            while True:
                await anyio.sleep(0.01)
                yield TextDelta("m", "x")
        finally:
            cancelled.append(anyio.current_time())

    async with start_run(store, session.id, Agent(play), text="go", settings=RunSettings(grace_seconds=0.3)) as run:
        await begun.wait()
        stopped = anyio.current_time()
        await run.stop()
        ending = await run.wait()
    assert 0.25 < cancelled[0] - stopped < 2
    assert ending.part == Finish("aborted")
    rows = await whole_log(store, session.id)
    after = actions(rows)[actions(rows).index(Stop()) + 1 :]
    assert after[-1] == Part(Finish("aborted"))
    assert len(after) <= 10  # what was on its way into the log when Stop came, and nothing that it said later
    assert rows[-1].meta is not None
    assert rows[-1].meta["dropped"] > 0
    await at_rest(store, session.id)


async def test_an_agent_that_catches_its_cancellation_does_not_keep_the_session(store: SessionStore) -> None:
    session = await store.create()
    begun, let_go = anyio.Event(), anyio.Event()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        begun.set()
        with anyio.CancelScope(shield=True):
            await let_go.wait()
        yield TextDelta("m", "still here")
        yield Finish("stop")

    async with start_run(store, session.id, Agent(play), text="one", settings=QUICK) as run:
        await begun.wait()
        await run.stop()
        with anyio.fail_after(5):
            while (await store.get(session.id)).lease is not None:  # noqa: ASYNC110 - what is waited for is a row
                await anyio.sleep(0.01)
        async with start_run(store, session.id, Agent(says), text="two") as second:
            await second.wait()
        let_go.set()
    rows = await whole_log(store, session.id)
    assert Part(TextDelta("m", "still here")) not in actions(rows)
    await at_rest(store, session.id)


async def test_stop_without_anything_to_stop_logs_nothing(store: SessionStore) -> None:
    session = await store.create()
    assert await stop_run(store, session.id) is None
    assert (await store.get(session.id)).number == 0


async def test_a_new_message_right_after_stop_waits_for_the_old_run_to_tidy_up(store: SessionStore) -> None:
    session = await store.create()
    begun = anyio.Event()

    async def slow_to_end(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        begun.set()
        await request.signal.wait()
        await anyio.sleep(0.2)
        yield Finish("aborted")

    async with start_run(store, session.id, Agent(slow_to_end), text="one") as first:
        await begun.wait()
        await first.stop()
        async with start_run(store, session.id, Agent(says), text="two") as second:
            ending = await second.wait()
    assert ending.part == Finish("stop")
    rows = await whole_log(store, session.id)
    assert rows[-1].run == second.id
    await at_rest(store, session.id)


async def test_stop_comes_through_a_flood(store: SessionStore) -> None:
    session = await store.create()

    async def flood(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        while True:
            yield TextDelta("m", "x")

    async with start_run(store, session.id, Agent(flood), text="go", settings=QUICK) as run:
        count = 0
        async for _ in run:
            count += 1
            if count == 2_000:
                await run.stop()
    assert run.ending is not None
    assert run.ending.cause == "stop"
    await at_rest(store, session.id)
