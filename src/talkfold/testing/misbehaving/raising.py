"""Adapters whose ``run`` gives no iterator, and those that raise: before, in and after each kind of part."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import anyio

from ...actions import Finish, MessageStart, Reasoning, RunError, StepFinish, TextDelta
from ...runs import AgentRunRequest, tool_outcome
from .table import NO_PARTS, Parts, Table, first_call

__all__ = ("RAISING",)

_table = Table()
RAISING = _table.rows
"""By name."""

# ---- run() itself ----------------------------------------------------------------------------------------------------


@_table.ends("error", "agent-raised")
def _run_raises(request: AgentRunRequest) -> object:
    """run() raises."""
    raise RuntimeError("no model today")


@_table.ends("error", "agent-raised")
def _run_returns_nothing(request: AgentRunRequest) -> object:
    """run() returns None."""
    return None


@_table.ends("error", "agent-raised")
def _run_returns_a_list(request: AgentRunRequest) -> object:
    """run() returns a list of parts."""
    return [MessageStart("m"), Finish("stop")]


@_table.ends("error", "agent-raised")
async def _run_is_a_coroutine(request: AgentRunRequest) -> object:
    """run() is an async function that returns its iterator, so that nobody ever awaits it."""
    return _raises_after_text(request)


@_table.ends("error", "agent-raised")
def _run_returns_an_iterable(request: AgentRunRequest) -> object:
    """run() returns something with __aiter__, which is not an iterator yet."""

    class Iterable:
        def __aiter__(self) -> Parts:
            return _raises_after_text(request)

    return Iterable()


# ---- raises: before, in and after each kind of part ------------------------------------------------------------------


def _raising(name: str, does: str, reason: Literal["stop", "error"], parts: Callable[[AgentRunRequest], Parts]) -> None:
    async def act(request: AgentRunRequest) -> Parts:
        async for part in parts(request):
            yield part
        raise ValueError("the model's answer makes no sense")

    act.__name__, act.__doc__ = name, does
    _table.ends(reason, "agent-raised")(act)


async def _nothing(request: AgentRunRequest) -> Parts:
    for part in NO_PARTS:
        yield part


async def _a_start(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")


async def _a_text(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")
    yield TextDelta("m", "I was about to ")


async def _a_thought(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")
    yield Reasoning("m", "Let me see.", {"signature": "c2ln"})


async def _a_call(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")
    yield first_call(request)


async def _a_made_call(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")
    yield (call := first_call(request))
    await request.call_tool(call)


async def _an_outcome(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")
    yield (call := first_call(request))
    yield tool_outcome(call.id, await request.call_tool(call))


async def _a_step(request: AgentRunRequest) -> Parts:
    async for part in _an_outcome(request):
        yield part
    yield StepFinish(1)


async def _a_finish(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")
    yield Finish("stop")


async def _an_error(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")
    yield RunError("The model is gone.", "network")


_raising("raises_at_once", "It raises before its first part.", "error", _nothing)
_raising("raises_after_message_start", "It raises after a message began.", "error", _a_start)
_raising("raises_after_text", "It raises in the middle of its text.", "error", _a_text)
_raising("raises_after_reasoning", "It raises after its reasoning.", "error", _a_thought)
_raising("raises_after_tool_call", "It raises before it makes the call that it announced.", "error", _a_call)
_raising(
    "raises_after_call_tool", "It raises after the tool ran, before it reports the outcome.", "error", _a_made_call
)
_raising("raises_after_tool_outcome", "It raises after it reported an outcome.", "error", _an_outcome)
_raising("raises_after_step_finish", "It raises between two steps.", "error", _a_step)
_raising("raises_after_finish", "It raises after its end.", "stop", _a_finish)
_raising("raises_after_error", "It reports an error and raises as well.", "error", _an_error)


async def _raises_after_text(request: AgentRunRequest) -> Parts:
    yield MessageStart("m")
    raise ValueError("nobody should come here")


@_table.ends("error", "agent-raised")
async def _loses_the_network(request: AgentRunRequest) -> Parts:
    """It lets an error of its connection out."""
    yield MessageStart("m")
    raise ConnectionResetError("peer")


@_table.ends("error", "agent-raised")
async def _exits(request: AgentRunRequest) -> Parts:
    """It calls sys.exit."""
    yield MessageStart("m")
    raise SystemExit(3)


@_table.ends("error", "agent-raised")
async def _raises_a_cancellation(request: AgentRunRequest) -> Parts:
    """It raises a cancellation that nobody asked for."""
    yield MessageStart("m")
    raise asyncio.CancelledError("by nobody")


@_table.ends("error", "agent-raised")
async def _raises_a_group(request: AgentRunRequest) -> Parts:
    """A task that it started raises."""

    async def broken() -> None:
        raise ValueError("in a task")

    yield MessageStart("m")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(broken)


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


@_table.ends("error", "agent-raised")
async def _raises_what_has_no_text(request: AgentRunRequest) -> Parts:
    """It raises an error whose text cannot be made."""
    yield MessageStart("m")
    raise _Unprintable


@_table.ends("error", "agent-raised")
async def _raises_half_a_character(request: AgentRunRequest) -> Parts:
    """It raises an error whose text is no Unicode."""
    yield MessageStart("m")
    raise ValueError("\ud83d")


@_table.ends("error", "agent-raised")
async def _raises_generator_exit(request: AgentRunRequest) -> Parts:
    """It raises what only a closed generator should see."""
    yield MessageStart("m")
    raise GeneratorExit


@_table.ends("stop", "agent-raised")
async def _exits_after_its_end(request: AgentRunRequest) -> Parts:
    """It calls sys.exit after its end."""
    yield MessageStart("m")
    yield Finish("stop")
    raise SystemExit(3)


@_table.ends("error", "agent-raised")
def _returns_an_iterator_that_is_not_async(request: AgentRunRequest) -> object:
    """Its iterator's __anext__ gives a part and not something to await."""

    class Iterator:
        def __anext__(self) -> object:
            return MessageStart("m")

    return Iterator()


@_table.ends("error", "agent-raised")
def _returns_an_iterator_that_raises_at_once(request: AgentRunRequest) -> object:
    """Its iterator's __anext__ raises before there is anything to await."""

    class Iterator:
        def __anext__(self) -> object:
            raise ValueError("there is nothing")

    return Iterator()


@_table.ends("stop")
def _returns_an_iterator_that_cannot_be_closed(request: AgentRunRequest) -> object:
    """Its iterator's aclose is no function, and nothing comes after its end."""

    class Iterator:
        aclose = None

        def __init__(self) -> None:
            self.parts = [MessageStart("m"), Finish("stop")]

        async def __anext__(self) -> object:
            if not self.parts:
                raise StopAsyncIteration
            return self.parts.pop(0)

    return Iterator()
