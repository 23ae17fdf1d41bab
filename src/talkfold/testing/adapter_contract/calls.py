"""The contract of an adapter's calls: told, made, reported; and whatever becomes of them."""

from __future__ import annotations

from typing import get_args

import anyio
import pytest

from ...actions import Finish, ToolCall, ToolError, ToolResult
from ...model import AgentMessage, TextPart, ToolPart
from ...runs import ToolCallRequest, ToolErrorCode, ToolOutput, error_output
from .record import Record
from .rules import broken
from .uses import PROBE, Scenario, UsesAdapter, given, works

__all__ = ("Calls",)

_ODD_OUTPUTS = (
    ToolOutput({"content": []}),
    ToolOutput({"content": [{"type": "x-unknown", "x": [1, None]}], "_meta": {"k": 1}}),
    ToolOutput({"content": [{"type": "text", "text": ""}], "structuredContent": None, "isError": False}),
)


class Calls(UsesAdapter):
    async def test_it_calls_a_tool_and_reports_the_result(self) -> None:
        record = await self.played(given(self.calling(), "calling"))
        assert PROBE in [call.name for call in record.calls]
        assert len(record.calls) == sum(isinstance(part, ToolCall) for part in record.parts)
        assert any(isinstance(part, ToolResult) for part in record.parts)
        assert record.end == Finish("stop")

    async def test_it_reads_its_tools_anew_after_a_call(self) -> None:
        if not self.rereads:
            pytest.skip("rereads is False: no model call lies between a call and what it says next")
        record = await self.played(given(self.calling(), "calling"))
        assert broken(record) == [], "one that has no model says so with rereads = False"

    @pytest.mark.parametrize("code", get_args(ToolErrorCode))
    async def test_it_survives_a_call_that_fails(self, code: ToolErrorCode) -> None:
        async def fails(call: ToolCallRequest) -> ToolOutput:
            return error_output(code, f"{call.name}: it is only a test")

        record = await self.played(given(self.calling(), "calling"), run_tool=fails)
        errors = [part for part in record.parts if isinstance(part, ToolError)]
        assert errors
        assert all(part.error.startswith(f"Error [{code}] ") for part in errors)
        assert isinstance(record.end, Finish), "a call that fails is an answer for the model, not the end of the run"

    async def test_it_takes_an_output_of_any_form(self) -> None:
        """No text at all, unknown blocks, data beside the text."""
        for output in _ODD_OUTPUTS:

            async def odd(call: ToolCallRequest, output: ToolOutput = output) -> ToolOutput:
                return output

            assert (await self.played(given(self.calling(), "calling"), run_tool=odd)).end is not None

    async def test_it_waits_for_a_tool_that_takes_its_time(self) -> None:
        async def slow(call: ToolCallRequest) -> ToolOutput:
            await anyio.sleep(0.3)
            return await works(call)

        assert (await self.played(given(self.calling(), "calling"), run_tool=slow)).end == Finish("stop")

    async def test_it_goes_on_after_a_finished_call(self) -> None:
        """What Retry gives it: a conversation that ends with the call, which has had its effect in the world."""
        if not self.resumes:
            pytest.skip("resumes is False: it cannot look back")
        scenario = given(self.calling(), "calling")
        first = await self.played(scenario)
        message = AgentMessage("reply-1", "assistant", tuple(_made(first)))
        said = AgentMessage("user-1", "user", (TextPart(scenario.text),))
        again = await self.played(scenario, messages=(said, message))
        assert again.calls == (), "finished calls are not made again"
        assert again.end == Finish("stop")

    async def test_two_runs_at_once_call_each_its_own_tools(self) -> None:
        scenario = given(self.calling(), "calling")
        shared = Scenario(scenario.text, scenario.adapter or self.adapter())
        begun, both = list[int](), anyio.Event()
        records = dict[int, Record]()
        outputs = {1: ToolOutput({"content": [{"type": "text", "text": "one"}]}), 2: error_output("failed", "two")}

        async def run(number: int) -> None:
            async def meets(call: ToolCallRequest) -> ToolOutput:
                begun.append(number)
                if len(set(begun)) == 2:
                    both.set()
                with anyio.move_on_after(self.seconds / 4):  # an adapter may run one after the other
                    await both.wait()
                return outputs[number]

            records[number] = await self.played(shared, run_tool=meets)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, 1)
            tasks.start_soon(run, 2)
        for number, record in records.items():
            assert record.calls
            assert begun.count(number) == len(record.calls)


def _made(record: Record) -> list[ToolPart]:
    results = {part.id: part.output for part in record.parts if isinstance(part, ToolResult)}
    raws = {key: value.raw if isinstance(value, ToolOutput) else value for key, value in results.items()}
    calls = [part for part in record.parts if isinstance(part, ToolCall)]
    return [
        ToolPart(call.id, call.name, call.input, "done", raws[call.id], provider_metadata=call.provider_metadata)
        for call in calls
    ]
