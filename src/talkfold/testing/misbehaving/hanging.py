"""Adapters that never return, that ignore Stop, that catch their cancellation, and that flood."""

from __future__ import annotations

import time

import anyio
from anyio import get_cancelled_exc_class
from msgspec.structs import replace

from ...actions import Finish, MessageStart, TextDelta, ToolCall
from ...runs import AgentRunRequest, tool_outcome
from .table import STUBBORN_SECONDS, Parts, Table, first_call

__all__ = ("HANGING",)

_table = Table()
HANGING = _table.rows
"""By name."""

# ---- never returns ---------------------------------------------------------------------------------------------------


@_table.ends("aborted", until_stop=True)
async def _hangs_at_once(request: AgentRunRequest) -> Parts:
    """It waits forever before its first part."""
    await anyio.sleep_forever()
    yield Finish("stop")


@_table.ends("aborted", until_stop=True)
async def _hangs_in_its_text(request: AgentRunRequest) -> Parts:
    """It waits forever in the middle of its text."""
    yield MessageStart("m")
    yield TextDelta("m", "One moment")
    await anyio.sleep_forever()


@_table.ends("aborted", until_stop=True)
async def _hangs_with_an_open_call(request: AgentRunRequest) -> Parts:
    """It waits forever between a call and its outcome."""
    yield MessageStart("m")
    yield first_call(request)
    await anyio.sleep_forever()


@_table.ends("stop")
async def _hangs_after_its_end(request: AgentRunRequest) -> Parts:
    """It waits forever after its end."""
    yield MessageStart("m")
    yield Finish("stop")
    await anyio.sleep_forever()


@_table.ends("aborted", until_stop=True)
async def _ignores_the_signal(request: AgentRunRequest) -> Parts:
    """It goes on after Stop as if nothing had happened."""
    yield MessageStart("m")
    while True:
        yield TextDelta("m", ".")
        await anyio.sleep(0.01)


@_table.ends("aborted", until_stop=True)
async def _calls_on_after_stop(request: AgentRunRequest) -> Parts:
    """It goes on calling tools after Stop."""
    yield MessageStart("m")
    number = 0
    while True:
        number += 1
        yield (call := first_call(request, "m", f"c{number}"))
        yield tool_outcome(call.id, await request.call_tool(call))
        await anyio.sleep(0.01)


@_table.ends("aborted", until_stop=True)
async def _catches_its_cancellation(request: AgentRunRequest) -> Parts:
    """It catches its cancellation and waits on, again and again, for STUBBORN_SECONDS."""
    yield MessageStart("m")
    caught: float | None = None
    while caught is None or anyio.current_time() < caught + STUBBORN_SECONDS:
        try:
            await anyio.sleep_forever()
        except get_cancelled_exc_class():
            caught = anyio.current_time() if caught is None else caught


@_table.ends("aborted", until_stop=True)
async def _talks_on_when_cancelled(request: AgentRunRequest) -> Parts:
    """It catches its cancellation and goes on with its text, for STUBBORN_SECONDS."""
    yield MessageStart("m")
    try:
        await anyio.sleep_forever()
    except get_cancelled_exc_class():
        until = anyio.current_time() + STUBBORN_SECONDS
        while anyio.current_time() < until:
            yield TextDelta("m", ".")


@_table.ends("aborted", until_stop=True)
async def _raises_when_cancelled(request: AgentRunRequest) -> Parts:
    """It raises an error of its own in place of its cancellation."""
    yield MessageStart("m")
    try:
        await anyio.sleep_forever()
    finally:
        raise ValueError("while cleaning up")


@_table.ends("aborted", until_stop=True)
async def _waits_in_its_finally(request: AgentRunRequest) -> Parts:
    """It waits forever while it is cleaned up."""
    yield MessageStart("m")
    try:
        await anyio.sleep_forever()
    finally:
        await anyio.sleep_forever()


@_table.ends("aborted", until_stop=True)
async def _shields_its_finally(request: AgentRunRequest) -> Parts:
    """It shields its clean-up from cancellation and takes STUBBORN_SECONDS for it."""
    yield MessageStart("m")
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(STUBBORN_SECONDS)


@_table.ends("error", "unstorable-part")
async def _waits_in_its_finally_when_closed(request: AgentRunRequest) -> Parts:
    """It waits forever when its iterator is closed."""
    yield MessageStart("m")
    try:
        yield _unstorable(request)
    finally:
        await anyio.sleep_forever()


@_table.ends("error", "unstorable-part")
async def _yields_when_closed(request: AgentRunRequest) -> Parts:
    """It yields a part while its iterator is being closed."""
    yield MessageStart("m")
    try:
        yield _unstorable(request)
    finally:
        yield TextDelta("m", "one more thing")


@_table.ends("error", "unstorable-part")
async def _raises_when_closed(request: AgentRunRequest) -> Parts:
    """It raises while its iterator is being closed."""
    yield MessageStart("m")
    try:
        yield _unstorable(request)
    finally:
        raise ValueError("while cleaning up")


@_table.ends("error", "unstorable-part")
async def _exits_when_closed(request: AgentRunRequest) -> Parts:
    """It calls sys.exit while its iterator is being closed."""
    yield MessageStart("m")
    try:
        yield _unstorable(request)
    finally:
        raise SystemExit(3)


def _unstorable(request: AgentRunRequest) -> ToolCall:
    """A part after which a run closes the iterator: no log takes it."""
    return replace(first_call(request), input=float("nan"))


# ---- floods ----------------------------------------------------------------------------------------------------------


@_table.ends("aborted", until_stop=True)
async def _floods(request: AgentRunRequest) -> Parts:
    """It yields text without end and never awaits anything."""
    yield MessageStart("m")
    while True:
        yield TextDelta("m", "la ")


@_table.ends("stop", "part-after-end")
async def _floods_after_its_end(request: AgentRunRequest) -> Parts:
    """It yields text without end after its end."""
    yield MessageStart("m")
    yield Finish("stop")
    while True:
        yield TextDelta("m", "la ")


@_table.ends("stop")
async def _starts_messages_without_end(request: AgentRunRequest) -> Parts:
    """It starts a thousand messages that say nothing."""
    for number in range(1_000):
        yield MessageStart(f"m{number}")
    yield Finish("stop")


@_table.ends("stop")
async def _blocks_the_loop(request: AgentRunRequest) -> Parts:
    """It computes for a while without letting anybody else run."""
    yield MessageStart("m")
    time.sleep(0.2)  # noqa: ASYNC251 -- that is the point
    yield TextDelta("m", "done")
    yield Finish("stop")
