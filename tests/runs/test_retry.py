"""Retry: the agent goes on after the last finished call, and what has been done is not done again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest
from run_world import Agent, at_rest, calls, says, whole_log

from talkfold import (
    AgentStreamPart,
    Finish,
    LoggedAction,
    MessageStart,
    NothingToRetry,
    Part,
    Retry,
    TextDelta,
    ToolCall,
    ToolPart,
    ToolResult,
)
from talkfold.model import AgentMessage
from talkfold.runs import AgentRunRequest, RunSettings, SubAgent, Toolbox, retry_run, start_run, tool_outcome
from talkfold.store import SessionStore

pytestmark = pytest.mark.anyio

STEPS = ("one", "two", "three", "four")


class Steps:
    """An agent that calls ``step`` for each of its steps, and goes on after those that the conversation shows."""

    id = "steps"
    label = "Steps"

    def __init__(self) -> None:
        self.seen: list[tuple[AgentMessage, ...]] = []

    async def run(self, request: AgentRunRequest) -> AsyncGenerator[AgentStreamPart]:
        self.seen.append(request.messages)
        finished = [
            part.input["name"]
            for message in request.messages
            for part in message.parts
            if isinstance(part, ToolPart) and part.state in ("done", "error")
        ]
        message = f"m{len(self.seen)}"
        yield MessageStart(message)
        for number, name in enumerate(STEPS):
            if name in finished:
                continue
            call = ToolCall(message, f"c{number}", "step", {"name": name})
            yield call
            yield tool_outcome(call.id, await request.call_tool(call))
        yield TextDelta(message, "All done.")
        yield Finish("stop")


class SideEffects:
    """A tool that leaves a line for each time it was run, and breaks when it is told to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()
        self.breaks: BaseException | None = None
        self.at = "three"
        self.reached = anyio.Event()

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().split()

    async def step(self, name: str) -> str:
        if name == self.at and self.breaks is not None:
            self.reached.set()
            broken, self.breaks = self.breaks, None
            if isinstance(broken, anyio.EndOfStream):
                await anyio.sleep(60)
            raise broken
        with self.path.open("a") as file:
            file.write(name + "\n")
        return f"did {name}"


@pytest.fixture
def effects(tmp_path: Path) -> SideEffects:
    return SideEffects(tmp_path / "effects")


async def finished_once(store: SessionStore, session_id: str, agent: Steps, effects: SideEffects) -> None:
    async with retry_run(store, session_id, agent, tools=Toolbox(effects.step)) as run:
        ending = await run.wait()
    assert ending.part == Finish("stop")
    state = await at_rest(store, session_id)
    assert state.messages[-1].parts[-1].text == "All done."  # type: ignore[union-attr]
    assert sorted(effects.lines) == sorted(STEPS)


async def test_after_stop_in_the_middle_of_a_tool(store: SessionStore, effects: SideEffects) -> None:
    session, agent = await store.create(), Steps()
    effects.breaks = anyio.EndOfStream()  # it hangs
    async with start_run(store, session.id, agent, text="go", tools=Toolbox(effects.step)) as run:
        await effects.reached.wait()
        await run.stop()
        await run.wait()
    assert effects.lines == ["one", "two"]
    await finished_once(store, session.id, agent, effects)
    last = agent.seen[-1][-1].parts[-1]
    assert isinstance(last, ToolPart)
    assert (last.input, last.state) == ({"name": "two"}, "done")


async def test_after_a_cancelled_caller(store: SessionStore, effects: SideEffects) -> None:
    session, agent = await store.create(), Steps()
    effects.breaks = anyio.EndOfStream()

    async def caller() -> None:
        async with start_run(store, session.id, agent, text="go", tools=Toolbox(effects.step)) as run:
            await run.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(caller)
        await effects.reached.wait()
        group.cancel_scope.cancel()
    await finished_once(store, session.id, agent, effects)


async def test_after_a_lost_connection_to_the_model(store: SessionStore, effects: SideEffects) -> None:
    session, agent = await store.create(), Steps()

    class Cut(Steps):
        async def run(self, request: AgentRunRequest) -> AsyncGenerator[AgentStreamPart]:
            calls = 0
            async with aclosing(super().run(request)) as parts:
                async for part in parts:
                    calls += isinstance(part, ToolCall)
                    if calls == 3:
                        raise ConnectionResetError("the line is dead")
                    yield part

    async with start_run(store, session.id, Cut(), text="go", tools=Toolbox(effects.step)) as run:
        ending = await run.wait()
    assert ending.part is not None
    assert getattr(ending.part, "code", None) == "network"
    assert (await at_rest(store, session.id)).status == "error"
    await finished_once(store, session.id, agent, effects)
    assert (await at_rest(store, session.id)).error is None


async def test_after_a_failed_tool_its_failure_is_kept(store: SessionStore, effects: SideEffects) -> None:
    session, agent = await store.create(), Steps()
    effects.breaks = ValueError("broken")
    async with start_run(store, session.id, agent, text="go", tools=Toolbox(effects.step)) as run:
        await run.wait()
    assert effects.lines == ["one", "two", "four"]
    async with retry_run(store, session.id, agent, tools=Toolbox(effects.step)) as run:
        await run.wait()
    assert effects.lines == ["one", "two", "four"]  # a failed call is finished: the agent knows that it failed


async def test_a_retry_is_logged_and_nothing_is_retried_before_somebody_spoke(store: SessionStore) -> None:
    session = await store.create()
    agent = Agent(says)
    with pytest.raises(NothingToRetry):
        async with retry_run(store, session.id, agent):
            pass
    assert (await store.get(session.id)).number == 0
    async with start_run(store, session.id, agent, text="go", settings=RunSettings()) as run:
        await run.wait()
    async with retry_run(store, session.id, agent, actor="somebody", meta={"page": 1}) as run:
        await run.wait()
    row = (await whole_log(store, session.id))[run.started.number - 1]
    assert (row.action, row.run, row.actor, row.meta) == (Retry(), run.id, "somebody", {"page": 1})
    assert [message.role for message in agent.requests[-1].messages] == ["user"]
    await at_rest(store, session.id)


async def test_what_a_sub_agent_had_finished_is_not_done_again(store: SessionStore, effects: SideEffects) -> None:
    """Its whole run is dropped by Retry, but the same call of the same agent gets the outcome that it had."""
    session = await store.create()

    def agents() -> tuple[Agent, SubAgent]:
        inner = Agent(calls(*[(f"c{number}", "step", {"name": name}) for number, name in enumerate(STEPS)]))
        outer = Agent(calls(("d", "delegate_to_doer", {"task": "All four."})))
        return outer, SubAgent("doer", inner, "Does.", tools=Toolbox(effects.step))

    effects.breaks = anyio.EndOfStream()
    outer, doer = agents()
    async with start_run(store, session.id, outer, text="go", agents=[doer]) as run:
        await effects.reached.wait()
        await run.stop()
        await run.wait()
    assert effects.lines == ["one", "two"]
    outer, doer = agents()
    async with retry_run(store, session.id, outer, agents=[doer]) as run:
        ending = await run.wait()
    assert ending.part == Finish("stop")
    assert effects.lines == ["one", "two", "three", "four"]
    await at_rest(store, session.id)
    rows = (await whole_log(store, session.id))[run.started.number :]
    reused = [row.action for row in rows if row.meta == {"reused": True}]
    assert [action.part.id for action in reused if isinstance(action, Part)] == ["c0", "c1"]  # type: ignore[union-attr]
    answers = [part.output["content"][0]["text"] for part in doer_calls(rows)]
    assert answers == ["did one", "did two", "did three", "did four"]
    # Finished now, so a second retry knows nothing of it any more.
    async with start_run(store, session.id, outer, text="again", agents=[doer]) as run:
        await run.wait()
    assert effects.lines == [*STEPS, *STEPS]


def doer_calls(rows: list[LoggedAction]) -> list[ToolResult]:
    return [
        row.action.part
        for row in rows
        if isinstance(row.action, Part) and row.action.within and isinstance(row.action.part, ToolResult)
    ]
