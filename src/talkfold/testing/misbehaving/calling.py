"""Adapters that are careless with ids, and those that make calls otherwise than they say."""

from __future__ import annotations

from typing import Any, cast

import anyio
from msgspec.structs import replace

from ...actions import Finish, MessageStart, TextDelta, ToolCall, ToolError, ToolResult
from ...runs import AgentRunRequest, ToolCallRequest, tool_outcome
from .table import Parts, Table, first_call

__all__ = ("CALLING",)

_table = Table()
CALLING = _table.rows
"""By name."""

# ---- ids -------------------------------------------------------------------------------------------------------------


@_table.ends("stop", "unknown-message")
async def _names_a_message_that_never_began(request: AgentRunRequest) -> Parts:
    """Its text and its call name a message that it never started."""
    yield TextDelta("nobody", "Hello?")
    yield (call := first_call(request, "nobody"))
    yield tool_outcome(call.id, await request.call_tool(call))
    yield Finish("stop")


@_table.ends("stop")
async def _uses_a_message_id_again(request: AgentRunRequest) -> Parts:
    """It starts two messages under one id, which is the person's as well."""
    message_id = request.messages[-1].id
    for _ in range(2):
        yield MessageStart(message_id)
        yield TextDelta(message_id, "It is me.")
    yield Finish("stop")


@_table.ends("stop")
async def _uses_a_call_id_again(request: AgentRunRequest) -> Parts:
    """It makes two calls, one after the other, under one id."""
    yield MessageStart("m")
    for _ in range(2):
        yield (call := first_call(request))
        yield tool_outcome(call.id, await request.call_tool(call))
    yield Finish("stop")


@_table.ends("stop")
async def _uses_an_open_calls_id_again(request: AgentRunRequest) -> Parts:
    """It announces two calls under one id and reports one outcome."""
    yield MessageStart("m")
    yield (call := first_call(request))
    yield call
    yield tool_outcome(call.id, await request.call_tool(call))
    yield Finish("stop")


@_table.ends("stop")
async def _uses_empty_ids(request: AgentRunRequest) -> Parts:
    """All its ids are empty."""
    yield MessageStart("")
    yield (call := first_call(request, "", ""))
    yield tool_outcome("", await request.call_tool(call))
    yield TextDelta("", "done")
    yield Finish("stop")


# ---- calls -----------------------------------------------------------------------------------------------------------


@_table.ends("stop", "unsaid-call")
async def _calls_before_it_says_so(request: AgentRunRequest) -> Parts:
    """It makes a call first and announces it afterwards."""
    yield MessageStart("m")
    call = first_call(request)
    output = await request.call_tool(call)
    yield call
    yield tool_outcome(call.id, output)
    yield Finish("stop")


@_table.ends("stop", "unsaid-call")
async def _calls_without_saying_so(request: AgentRunRequest) -> Parts:
    """It makes a call that it never announces, and says nothing of its outcome."""
    yield MessageStart("m")
    await request.call_tool(first_call(request))
    yield Finish("stop")


@_table.ends("stop", "unsaid-call")
async def _calls_before_its_first_message(request: AgentRunRequest) -> Parts:
    """It makes a call before any message that could hold it."""
    await request.call_tool(first_call(request))
    yield MessageStart("m")
    yield Finish("stop")


@_table.ends("stop", "changed-call")
async def _calls_with_another_input(request: AgentRunRequest) -> Parts:
    """It makes a call with another input than it announced."""
    yield MessageStart("m")
    yield (call := first_call(request))
    yield tool_outcome(call.id, await request.call_tool(replace(call, input={"amount": 1_000})))
    yield Finish("stop")


@_table.ends("stop", "changed-call")
async def _changes_the_input_in_place(request: AgentRunRequest) -> Parts:
    """It changes the input of a call that it has announced, in the very object."""
    yield MessageStart("m")
    yield (call := replace(first_call(request), input={"amount": 1}))
    call.input["amount"] = 1_000
    yield tool_outcome(call.id, await request.call_tool(call))
    yield Finish("stop")


@_table.ends("stop", "changed-call")
async def _calls_another_tool(request: AgentRunRequest) -> Parts:
    """It makes a call of another tool than it announced."""
    yield MessageStart("m")
    yield (call := ToolCall("m", "c", "harmless", {}))
    yield tool_outcome(call.id, await request.call_tool(first_call(request)))
    yield Finish("stop")


@_table.ends("stop")
async def _calls_twice(request: AgentRunRequest) -> Parts:
    """It makes the same call twice before it reports an outcome."""
    yield MessageStart("m")
    yield (call := first_call(request))
    output = await request.call_tool(call)
    await request.call_tool(call)
    yield tool_outcome(call.id, output)
    yield Finish("stop")


@_table.ends("stop", "unsaid-call")
async def _calls_again_after_the_outcome(request: AgentRunRequest) -> Parts:
    """It makes a call again whose outcome it has reported."""
    yield MessageStart("m")
    yield (call := first_call(request))
    yield tool_outcome(call.id, await request.call_tool(call))
    await request.call_tool(call)
    yield Finish("stop")


@_table.ends("stop")
async def _calls_two_at_once(request: AgentRunRequest) -> Parts:
    """It makes two calls at once."""
    yield MessageStart("m")
    calls = [first_call(request, "m", "c1"), first_call(request, "m", "c2")]
    outcomes = list[Any]()

    async def make(call: ToolCall) -> None:
        outcomes.append(tool_outcome(call.id, await request.call_tool(call)))

    for call in calls:
        yield call
    async with anyio.create_task_group() as tasks:
        for call in calls:
            tasks.start_soon(make, call)
    for outcome in outcomes:
        yield outcome
    yield Finish("stop")


@_table.ends("stop")
async def _never_reports_the_outcome(request: AgentRunRequest) -> Parts:
    """It makes a call and never reports its outcome."""
    yield MessageStart("m")
    yield (call := first_call(request))
    await request.call_tool(call)
    yield TextDelta("m", "done")
    yield Finish("stop")


@_table.ends("stop", "unknown-call")
async def _reports_the_outcome_twice(request: AgentRunRequest) -> Parts:
    """It reports the outcome of a call twice."""
    yield MessageStart("m")
    yield (call := first_call(request))
    outcome = tool_outcome(call.id, await request.call_tool(call))
    yield outcome
    yield outcome
    yield Finish("stop")


@_table.ends("stop", "unknown-call")
async def _reports_an_outcome_of_nothing(request: AgentRunRequest) -> Parts:
    """It reports outcomes of calls that it never made."""
    yield MessageStart("m")
    yield ToolResult("nobody", {"content": []})
    yield ToolError("nobody", "Error [failed] nobody: it failed")
    yield Finish("stop")


@_table.ends("stop", "unsaid-call")
async def _reports_the_outcome_first(request: AgentRunRequest) -> Parts:
    """It invents the outcome of a call and makes the call afterwards."""
    yield MessageStart("m")
    yield (call := first_call(request))
    yield ToolResult(call.id, {"content": []})
    await request.call_tool(call)
    yield Finish("stop")


@_table.ends("stop", "changed-outcome")
async def _reports_another_outcome(request: AgentRunRequest) -> Parts:
    """It reports as failed what went well."""
    yield MessageStart("m")
    yield (call := first_call(request))
    await request.call_tool(call)
    yield ToolError(call.id, "Error [failed] it went well, but not for me")
    yield Finish("stop")


@_table.ends("stop")
async def _calls_what_is_not_there(request: AgentRunRequest) -> Parts:
    """It calls a tool that does not exist, with an input that is no object."""
    yield MessageStart("m")
    yield (call := ToolCall("m", "c", "no such tool", None))
    yield tool_outcome(call.id, await request.call_tool(call))
    yield Finish("stop")


@_table.ends("error", "agent-raised")
async def _calls_with_no_request(request: AgentRunRequest) -> Parts:
    """It passes None where a call belongs."""
    yield MessageStart("m")
    await request.call_tool(cast("ToolCallRequest", None))
    yield Finish("stop")
