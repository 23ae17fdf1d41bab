"""One run of an adapter by a request that writes down what is done and when, with nothing else around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, TypeAlias, cast

import anyio
from msgspec import Struct

from ...actions import AgentStreamPart, Finish, RunError
from ...model import AgentMessage
from ...runs import (
    AbortController,
    AgentAdapter,
    AgentRunRequest,
    ToolCallRequest,
    ToolDescriptor,
    ToolOutput,
    WebAgent,
)

__all__ = ("CallBegan", "CallReturned", "Event", "Listed", "Record", "RunTool", "Yielded", "play")


_MOST_EVENTS = 20_000
"""More than any run of a test has: the adapter does not come to an end."""


class Listed(Struct, frozen=True):
    """The adapter read ``request.tools``."""


class Yielded(Struct, frozen=True):
    """It yielded a part; kept as it was then, whatever becomes of the object."""

    part: AgentStreamPart


class CallBegan(Struct, frozen=True):
    """It awaited ``request.call_tool``."""

    call: ToolCallRequest


class CallReturned(Struct, frozen=True):
    """``request.call_tool`` gave an output."""

    call: ToolCallRequest
    output: ToolOutput


Event: TypeAlias = Listed | Yielded | CallBegan | CallReturned

RunTool: TypeAlias = Callable[[ToolCallRequest], Awaitable[ToolOutput]]
"""A tool of the kit."""


class Record(Struct, frozen=True):
    """What an adapter did in one run, in order.

    ``raised`` is what it let out; ``hung``: it was still running when the time was over, and was cancelled;
    ``seconds`` is how long it took.
    """

    messages: tuple[AgentMessage, ...]
    events: tuple[Event, ...]
    raised: Exception | None
    hung: bool
    seconds: float

    @property
    def parts(self) -> tuple[AgentStreamPart, ...]:
        """What it yielded."""
        return tuple(event.part for event in self.events if isinstance(event, Yielded))

    @property
    def calls(self) -> tuple[ToolCallRequest, ...]:
        """The calls that it made."""
        return tuple(event.call for event in self.events if isinstance(event, CallBegan))

    @property
    def end(self) -> Finish | RunError | None:
        """The part that ended it; ``None`` when the last one is no end."""
        last = self.parts[-1] if self.parts else None
        return last if isinstance(last, Finish | RunError) else None


async def play(
    adapter: AgentAdapter,
    messages: Sequence[AgentMessage],
    *,
    tools: Sequence[ToolDescriptor],
    run_tool: RunTool,
    controller: AbortController | None = None,
    agent: WebAgent | None = None,
    seconds: float = 10.0,
    on_part: Callable[[AgentStreamPart], object] | None = None,
) -> Record:
    """Run an adapter to its end, or cancel it after so many seconds. ``on_part`` is called after each part, before
    the adapter goes on."""
    events: list[Event] = []

    def list_tools() -> Sequence[ToolDescriptor]:
        events.append(Listed())
        return tools

    async def recorded(call: ToolCallRequest) -> ToolOutput:
        if not isinstance(call, ToolCallRequest):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"call_tool got a {type(call).__name__}, which is no call")
        call = deepcopy(call)
        events.append(CallBegan(call))
        output = await run_tool(call)
        events.append(CallReturned(call, output))
        return output

    signal = (controller or AbortController()).signal
    request = AgentRunRequest(tuple(messages), signal, list_tools, recorded, agent)
    raised: Exception | None = None
    began = anyio.current_time()
    with anyio.move_on_after(seconds) as time:
        stream: Any = None
        try:
            stream = adapter.run(request)
            if not hasattr(stream, "__anext__"):
                raise TypeError(f"run gave a {type(stream).__name__}, which is no async iterator")
            async for part in cast("AsyncIterator[AgentStreamPart]", stream):
                events.append(Yielded(deepcopy(part)))
                if on_part is not None:
                    on_part(part)
                if len(events) > _MOST_EVENTS:
                    raise OverflowError("the adapter yields without end")
        except Exception as error:
            raised = error
            await _close(stream)
    return Record(tuple(messages), tuple(events), raised, time.cancelled_caught, anyio.current_time() - began)


async def _close(stream: Any) -> None:
    """Close what is left of an iterator, so that nothing of it is found later, elsewhere."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        with anyio.move_on_after(1.0), suppress(Exception):
            await close()
