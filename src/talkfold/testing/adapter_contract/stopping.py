"""The contract of Stop: an adapter hears it, ends soon and says so; and its cancellation passes through it."""

from __future__ import annotations

from typing import Any

import anyio

from ...actions import AgentStreamPart, Finish, RunError
from ...model import AgentMessage, TextPart
from ...runs import AbortController, AgentRunRequest, ToolCallRequest, ToolOutput, error_output
from .record import Record
from .uses import Scenario, UsesAdapter, given, probe_tool, works

__all__ = ("Stopping",)

_MOST_PLACES = 30


class Stopping(UsesAdapter):
    async def test_stopped_before_it_begins(self) -> None:
        controller = AbortController()
        controller.abort("stop")
        record = await self.played(self.calling() or self.answering(), controller=controller)
        self._ended_soon(record)
        assert record.calls == ()

    async def test_stopped_in_its_answer(self) -> None:
        controller = AbortController()
        record = await self.played(
            self.answering(), with_tool=False, controller=controller, on_part=lambda part: controller.abort("stop")
        )
        self._ended_soon(record)

    async def test_stopped_after_any_part(self) -> None:
        """Wherever Stop comes, the run ends well; one that was through already may say so."""
        scenario = self.calling() or self.answering()
        whole = await self.played(scenario)
        for place in range(1, min(len(whole.parts), _MOST_PLACES)):
            record = await self._stopped_at(scenario, place)
            assert isinstance(record.end, Finish | RunError)

    async def _stopped_at(self, scenario: Scenario, place: int) -> Record:
        controller, seen = AbortController(), list[AgentStreamPart]()

        def count(part: AgentStreamPart) -> None:
            seen.append(part)
            if len(seen) == place:
                controller.abort("stop")

        async def stopped(call: ToolCallRequest) -> ToolOutput:
            if controller.signal.aborted:
                return error_output("cancelled", f"{call.name}: stopped (stop)")
            return await works(call)

        return await self.played(scenario, run_tool=stopped, controller=controller, on_part=count)

    async def test_stopped_while_its_tool_runs(self) -> None:
        controller, at = AbortController(), list[float]()

        async def stops(call: ToolCallRequest) -> ToolOutput:
            controller.abort("stop")
            at.append(anyio.current_time())
            return error_output("cancelled", f"{call.name}: stopped (stop)")

        record = await self.played(given(self.calling(), "calling"), run_tool=stops, controller=controller)
        assert anyio.current_time() - at[0] < self.soon
        assert record.end == Finish("aborted")
        assert len(record.calls) == 1, "after Stop no call is made"

    async def test_cancelled_while_its_tool_runs(self) -> None:
        """What happens to one that does not end: the cancellation comes out, and nothing after it."""
        scenario = given(self.calling(), "calling")
        began, parts = anyio.Event(), list[AgentStreamPart]()
        before, at = 0, 0.0

        async def hangs(call: ToolCallRequest) -> ToolOutput:
            began.set()
            await anyio.sleep_forever()
            raise AssertionError

        async def run() -> None:
            request = _request(scenario.text, hangs)
            async for part in (scenario.adapter or self.adapter()).run(request):
                parts.append(part)

        with anyio.fail_after(self.seconds):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await began.wait()
                before, at = len(parts), anyio.current_time()
                tasks.cancel_scope.cancel()
        assert anyio.current_time() - at < self.soon
        assert len(parts) == before

    async def test_closed_in_its_answer(self) -> None:
        """Whoever reads may stop reading: its iterator can be closed at any part."""
        scenario = self.answering()
        stream: Any = (scenario.adapter or self.adapter()).run(_request(scenario.text, works))
        if not hasattr(stream, "aclose"):
            return  # an iterator need not have it
        with anyio.fail_after(self.seconds):
            await anext(stream)
        with anyio.fail_after(self.soon):
            await stream.aclose()

    def _ended_soon(self, record: Record) -> None:
        assert record.end == Finish("aborted")
        assert record.seconds < self.soon


def _request(text: str, run_tool: Any) -> AgentRunRequest:
    said = AgentMessage("user-1", "user", (TextPart(text),))
    return AgentRunRequest((said,), AbortController().signal, lambda: [probe_tool().descriptor], run_tool)
