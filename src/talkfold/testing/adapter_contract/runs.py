"""The contract inside a run: what a session's log is like when an adapter has been through it."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from ...actions import Finish, Part, RunError
from ...errors import AdapterBusy
from ...fold import fold
from ...healing import heal
from ...model import SessionState, ToolPart
from ...runs import (
    AgentAdapter,
    Run,
    RunSettings,
    SubAgent,
    Toolbox,
    ToolCallRequest,
    ToolContext,
    ToolDescriptor,
    ToolOutput,
    error_output,
    is_running,
    models_of,
    retry_run,
    select_model,
    start_run,
    tool,
)
from ...store import SessionStore, open_store
from ..scripted import ScriptedAdapter, call, say, script
from .uses import OUTPUT, PROBE, UsesAdapter, given, probe_tool

__all__ = ("Runs",)


class _Gone:
    """A source whose tool went away between the look and the call."""

    def descriptors(self) -> Sequence[ToolDescriptor]:
        return [probe_tool().descriptor]

    async def call(self, call: ToolCallRequest, context: ToolContext) -> ToolOutput:
        return error_output("not_found", f"there is no tool {call.name} any more")


class Runs(UsesAdapter):
    async def test_a_run_of_an_answer(self) -> None:
        async with open_store("memory:") as store:
            await store.create("s")
            scenario = self.answering()
            run = await self._run(store, scenario.adapter or self.adapter(), scenario.text, Toolbox())
            assert run.ending is not None
            assert run.ending.part == Finish("stop")
            state = await _well(store, run)
            assert state.status == "idle"
            assert state.messages[-1].role == "assistant"

    async def test_two_turns_of_one_session(self) -> None:
        async with open_store("memory:") as store:
            await store.create("s")
            scenario = self.answering()
            adapter = scenario.adapter or self.adapter()
            first = await self._run(store, adapter, scenario.text, Toolbox())
            await _well(store, first)
            second = await self._run(store, adapter, scenario.text, Toolbox())
            state = await _well(store, second)
            assert [run.ending.part for run in (first, second) if run.ending] == [Finish("stop")] * 2
            assert [message.role for message in state.messages].count("user") == 2
            assert len({message.id for message in state.messages}) == len(state.messages)

    async def test_a_run_with_calls(self) -> None:
        scenario = given(self.calling(), "calling")
        ran = list[int]()
        async with open_store("memory:") as store:
            await store.create("s")
            box = Toolbox(probe_tool(lambda: ran.append(1)))
            run = await self._run(store, scenario.adapter or self.adapter(), scenario.text, box)
            assert run.ending is not None
            assert run.ending.part == Finish("stop")
            calls = _calls(await _well(store, run))
            assert len(calls) == len(ran) > 0
            assert {(call.name, call.state) for call in calls} == {(PROBE, "done")}

    async def test_a_run_whose_tool_is_gone(self) -> None:
        scenario = given(self.calling(), "calling")
        async with open_store("memory:") as store:
            await store.create("s")
            run = await self._run(store, scenario.adapter or self.adapter(), scenario.text, Toolbox(_Gone()))
            assert {call.state for call in _calls(await _well(store, run))} == {"error"}

    async def test_a_run_that_fails(self) -> None:
        scenario = given(self.failing(), "failing")
        async with open_store("memory:") as store:
            await store.create("s")
            adapter = scenario.adapter or self.adapter()
            run = await self._run(store, adapter, scenario.text, Toolbox(probe_tool()))
            assert run.ending is not None
            assert isinstance(run.ending.part, RunError)
            state = await _well(store, run)
            assert state.status == "error"
            assert not is_running(adapter)

    async def test_a_run_that_is_stopped_while_a_tool_runs(self) -> None:
        scenario = given(self.calling(), "calling")
        began = anyio.Event()

        @tool(name=PROBE)
        async def probe() -> str:
            """Look at the probe."""
            began.set()
            await anyio.sleep_forever()
            return OUTPUT

        async with open_store("memory:") as store:
            await store.create("s")
            adapter = scenario.adapter or self.adapter()
            settings = RunSettings(grace_seconds=self.soon)
            with anyio.fail_after(self.seconds):
                async with start_run(
                    store, "s", adapter, text=scenario.text, tools=Toolbox(probe), settings=settings
                ) as run:
                    await began.wait()
                    await run.stop()
            assert run.ending is not None
            assert (run.ending.cause, run.ending.part, run.ending.faults) == ("stop", Finish("aborted"), ())
            session, state = await store.get("s"), (await store.state("s")).state
            assert (session.lease, state.status) == (None, "idle")
            assert {call.state for call in _calls(state)} <= {"cancelled", "error"}

    async def test_retry_does_not_make_finished_calls_again(self) -> None:
        if not self.resumes:
            pytest.skip("resumes is False: it cannot look back")
        scenario = given(self.calling(), "calling")
        ran = list[int]()
        box = Toolbox(probe_tool(lambda: ran.append(1)))
        async with open_store("memory:") as store:
            await store.create("s")
            adapter = scenario.adapter or self.adapter()
            await self._run(store, adapter, scenario.text, box)
            before = len(ran)
            with anyio.fail_after(self.seconds):
                async with retry_run(store, "s", adapter, tools=box) as run:
                    await run.wait()
            state = await _well(store, run)
            assert len(ran) == before
            assert len(_calls(state)) == before
            assert run.ending is not None
            assert run.ending.part == Finish("stop")

    async def test_it_works_as_a_sub_agent(self) -> None:
        """Behind a delegate call: with tools of its own, and its last words as the call's output."""
        scenario = self.calling() or self.answering()
        agent = SubAgent("it", scenario.adapter or self.adapter(), "Knows it.", tools=Toolbox(probe_tool()))
        caller = ScriptedAdapter(script(call(agent.call_name, task=scenario.text), say("So it is.")))
        async with open_store("memory:") as store:
            await store.create("s")
            with anyio.fail_after(self.seconds):
                async with start_run(store, "s", caller, text="Ask it.", agents=[agent]) as run:
                    await run.wait()
            (delegate,) = _calls(await _well(store, run))
            assert (delegate.state, delegate.agent is None) == ("done", False)
            assert delegate.agent is not None
            nested = [part for message in delegate.agent.messages for part in message.parts]
            assert nested
            assert {part.state for part in nested if isinstance(part, ToolPart)} <= {"done"}

    async def test_no_model_is_selected_while_it_runs(self) -> None:
        scenario = given(self.calling(), "calling")
        adapter = scenario.adapter or self.adapter()
        models = models_of(adapter)
        if not models:
            pytest.skip("it has no models()")
        errors = list[Exception]()

        @tool(name=PROBE)
        async def probe() -> str:
            """Look at the probe."""
            try:
                await select_model(adapter, models[-1].id)
            except AdapterBusy as error:
                errors.append(error)
            return OUTPUT

        async with open_store("memory:") as store:
            await store.create("s")
            await self._run(store, adapter, scenario.text, Toolbox(probe))
        assert errors

    async def _run(self, store: SessionStore, adapter: AgentAdapter, text: str, box: Toolbox) -> Run:
        with anyio.fail_after(self.seconds):
            async with start_run(store, "s", adapter, text=text, tools=box) as run:
                await run.wait()
        return run


async def _well(store: SessionStore, run: Run) -> SessionState:
    """The session's state, in which everything is as it should be after a run that ended by itself."""
    assert run.ending is not None
    assert (run.ending.cause, run.ending.faults) == ("agent", ())
    session, state = await store.get("s"), (await store.state("s")).state
    assert session.lease is None
    log = [row.action for row in await store.read("s", limit=1_000)]
    if session.number == len(log):  # the whole of it
        assert fold(log) == state
        assert run.ending.part is not None
        assert log[-1] == Part(run.ending.part)
    assert state.status != "streaming"
    assert [call for call in _calls(state) if call.state in ("running", "awaiting-confirmation")] == []
    healed = heal(state.messages).healed
    allowed = {"cancelled-call"} if isinstance(run.ending.part, RunError) else set[str]()
    assert [each for each in healed if each.code not in allowed] == [], "a provider would refuse this conversation"
    return state


def _calls(state: SessionState) -> list[ToolPart]:
    return [part for message in state.messages for part in message.parts if isinstance(part, ToolPart)]
