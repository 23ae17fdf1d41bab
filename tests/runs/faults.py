"""The fault matrix as data: what may go wrong in a run, at which points of a script, and what the run must say.

A fault is an async generator that is put at a point of a script: it may yield parts of its own, raise, wait, or reach
for what is around the run. The script has one part of each kind; the agent that plays it stands at the top, in a
sub-agent, or in a sub-agent of a sub-agent. *After* a part is *before* the next one, so only the last has an after.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from talkfold import AgentStreamPart, Finish, MessageStart, RunError, TextDelta, ToolCall
from talkfold.runs import AgentFaultCode, RunCause, output_of, tool_outcome

KINDS = ("message-start", "text-delta", "reasoning", "tool-call", "call_tool", "tool-result", "step-finish", "finish")
LEVELS = (0, 1, 2)
FLOOD = 1_500
"""Parts of a flood, where it is played at every point; the long tests play 100,000."""

Point: TypeAlias = "tuple[Literal['before', 'during', 'parked', 'after'], str]"
Reason: TypeAlias = Literal["stop", "aborted", "error"]
Happens: TypeAlias = "Callable[[Here], AsyncIterator[AgentStreamPart]]"

_BEFORE: tuple[Point, ...] = tuple(("before", kind) for kind in KINDS)
_AFTER: tuple[Point, ...] = (("after", "finish"),)
_DURING: tuple[Point, ...] = tuple(("during", kind) for kind in KINDS)
_IN_TOOL: tuple[Point, ...] = (("during", "call_tool"),)
_PARKED: tuple[Point, ...] = (("parked", "call_tool"),)
"""While the call waits for a person's yes or no."""

DATABASE_POINTS = (*_BEFORE, *_IN_TOOL, *_AFTER)
"""Where the database fails: what fails before a part fails while it is written."""


class Here:
    """What a fault may reach: the run's task group, its caller, its session, and the call that is being made."""

    def __init__(
        self,
        tasks: TaskGroup,
        *,
        stop: Callable[[], Awaitable[object]],
        erase: Callable[[], Awaitable[object]],
        parked: Callable[[], Awaitable[object | None]],
        cancel_caller: Callable[[], object],
        flood: int = FLOOD,
    ) -> None:
        self.tasks = tasks
        self.stop = stop
        self.erase = erase
        self.parked = parked
        self.cancel_caller = cancel_caller
        self.flood = flood
        self.caller_raises = anyio.Event()
        self.tool_runs = anyio.Event()
        self.reached = anyio.Event()
        self.go_on = anyio.Event()


class Says(Struct, frozen=True):
    """What the run's ending must say: one of these causes and reasons, all of ``needs`` and nothing but ``may``."""

    causes: tuple[RunCause, ...] = ("agent",)
    reasons: tuple[Reason | None, ...] = ("stop",)
    needs: tuple[AgentFaultCode, ...] = ()
    may: tuple[AgentFaultCode, ...] = ()
    raises: tuple[str, ...] = ()


class Fault(Struct, frozen=True):
    """``top`` and ``nested``: what the run says when it happens at the top, and in a sub-agent; ``at_end``: after the
    last part, at the top (by default ``top``). ``outcome``: it happens inside the second call's tool, of this
    ``timeout``, in a thread when ``sync``, and the call ends with an error that starts like this, or in this state.
    ``gives_up``: the agent does it beside the call that it waits for. ``native``: the caller is an asyncio task that is
    cancelled as such."""

    name: str
    happens: Happens
    at: tuple[Point, ...]
    top: Says
    nested: Says
    at_end: Says | None = None
    outcome: str | None = None
    timeout: float | None = None
    sync: bool = False
    gives_up: bool = False
    native: bool = False


class Cell(Struct, frozen=True):
    """One square of the matrix."""

    fault: Fault
    point: Point
    level: int

    @property
    def name(self) -> str:
        when, kind = self.point
        return f"{self.fault.name}-{when}-{kind}-{self.level}".replace("_", "-")

    @property
    def says(self) -> Says:
        fault = self.fault
        if self.level:
            return fault.nested
        return fault.at_end if self.point[0] == "after" and fault.at_end else fault.top


def cells(fault: Fault) -> list[Cell]:
    """The fault at each of its points, on each level."""
    return [Cell(fault, point, level) for level in LEVELS for point in fault.at]


# ---- adapters ------------------------------------------------------------------------------------------------


class Leave(Exception):
    """The script is left: the agent's parts end here."""


async def _raises(here: Here) -> AsyncIterator[AgentStreamPart]:
    raise RuntimeError("the model went away")
    yield


async def _raises_network(here: Here) -> AsyncIterator[AgentStreamPart]:
    raise ConnectionResetError("the line is dead")
    yield


async def _ends_early(here: Here) -> AsyncIterator[AgentStreamPart]:
    raise Leave
    yield


async def _fails(here: Here) -> AsyncIterator[AgentStreamPart]:
    yield RunError("Slow down.", "rate_limited")
    raise Leave


async def _hangs(here: Here) -> AsyncIterator[AgentStreamPart]:
    here.tasks.start_soon(here.stop)
    await anyio.sleep_forever()
    yield


async def _hangs_deaf(here: Here) -> AsyncIterator[AgentStreamPart]:
    here.tasks.start_soon(here.stop)
    with anyio.CancelScope(shield=True):
        await anyio.sleep(1.5)
    yield Finish("stop")


async def _goes_on_after_end(here: Here) -> AsyncIterator[AgentStreamPart]:
    yield Finish("stop")
    yield TextDelta("m2", "and another thing")


async def _yields_rubbish(here: Here) -> AsyncIterator[AgentStreamPart]:
    yield "no part"  # type: ignore[misc]


async def _floods(here: Here) -> AsyncIterator[AgentStreamPart]:
    for number in range(here.flood):
        yield TextDelta("m2", f"{number} ")


async def _reuses_ids(here: Here) -> AsyncIterator[AgentStreamPart]:
    """Begins a message and a call anew whose ids are in use, and gives that call an outcome."""
    yield MessageStart("m1")
    yield TextDelta("m1", "Again: ")
    yield ToolCall("m1", "c2", "mark", {"line": "said only"})
    yield tool_outcome("c2", output_of("said only"))
    yield MessageStart("m2")


# ---- whoever runs it -----------------------------------------------------------------------------------------


async def _stop(here: Here) -> AsyncIterator[AgentStreamPart]:
    await here.stop()
    return
    yield


async def _erased(here: Here) -> AsyncIterator[AgentStreamPart]:
    await here.erase()
    return
    yield


async def _caller_cancelled(here: Here) -> AsyncIterator[AgentStreamPart]:
    here.cancel_caller()
    await anyio.sleep(0.02)
    return
    yield


async def _caller_raises(here: Here) -> AsyncIterator[AgentStreamPart]:
    here.caller_raises.set()
    await anyio.sleep(0.02)
    return
    yield


async def pauses(here: Here) -> AsyncIterator[AgentStreamPart]:
    """Waits until the database has been struck."""
    here.reached.set()
    await here.go_on.wait()
    return
    yield


# ---- tools ---------------------------------------------------------------------------------------------------


class Death(BaseException):
    """What no ordinary handler catches."""


async def _tool_raises(here: Here) -> AsyncIterator[AgentStreamPart]:
    raise ValueError("out of stock")
    yield


async def _tool_hangs(here: Here) -> AsyncIterator[AgentStreamPart]:
    await anyio.sleep_forever()
    yield


async def _tool_dies(here: Here) -> AsyncIterator[AgentStreamPart]:
    raise Death("gone")
    yield


async def _tool_exits(here: Here) -> AsyncIterator[AgentStreamPart]:
    raise SystemExit(3)
    yield


async def _tool_loses_its_server(here: Here) -> AsyncIterator[AgentStreamPart]:
    raise ConnectionResetError("the server went away")
    yield


async def _tool_leaves_a_scope_cancelled(here: Here) -> AsyncIterator[AgentStreamPart]:
    anyio.CancelScope(deadline=-1).__enter__()
    await anyio.sleep(1)
    yield


async def _tool_hangs_until_stop(here: Here) -> AsyncIterator[AgentStreamPart]:
    here.tasks.start_soon(here.stop)
    await anyio.sleep_forever()
    yield


async def _tool_hangs_until_caller_goes(here: Here) -> AsyncIterator[AgentStreamPart]:
    here.cancel_caller()
    await anyio.sleep_forever()
    yield


async def _tool_hangs_until_caller_raises(here: Here) -> AsyncIterator[AgentStreamPart]:
    here.caller_raises.set()
    await anyio.sleep_forever()
    yield


# ---- the table -----------------------------------------------------------------------------------------------

_WELL = Says()
_FLOODED = Says(may=("unknown-message",))  # where it floods a message that has not begun
_ADAPTER = (*_BEFORE, *_AFTER)
_WHOLE_WAY = (*_BEFORE, *_IN_TOOL, *_PARKED)
_ANYWHERE = (*_BEFORE, *_DURING, *_PARKED, *_AFTER)
_STOPPED = Says(("stop",), ("aborted",))
_CANCELLED = Says(("cancelled",), ("aborted",), raises=("cancelled",))
_RAISED = Says(("raised",), ("aborted",), raises=("KeyError",))
_GONE = Says(("store",), (None,), raises=("SessionErased",))


def _or_well(says: Says) -> Says:
    """Late enough that the agent may have come to its end first."""
    return Says((*says.causes, "agent"), (*says.reasons, "stop"), says.needs, says.may, says.raises)


def _agent(
    name: str,
    happens: Happens,
    at: tuple[Point, ...],
    top: Says,
    nested: Says,
    end: Says | None = None,
    *,
    gives_up: bool = False,
    native: bool = False,
) -> Fault:
    return Fault(name, happens, at, top, nested, end, gives_up=gives_up, native=native)


def _tool(
    name: str, happens: Happens, outcome: str, says: Says = _WELL, *, timeout: float | None = None, sync: bool = False
) -> Fault:
    return Fault(name, happens, _IN_TOOL, says, says, outcome=outcome, timeout=timeout, sync=sync)


_FAILED, _LATE, _DEAD = "Error [failed] mark: ", "Error [timeout] mark: ", "Error [unavailable] mark: "
_BROKE = Says(reasons=("error",), needs=("agent-raised",))
_BROKE_INSIDE = Says(needs=("agent-raised",))
_UNENDED = Says(reasons=("error",), needs=("no-end",))
_RUBBISH = Says(reasons=("error",), needs=("not-a-part",), may=("part-after-end",))
_RUBBISH_INSIDE = Says(needs=("not-a-part",), may=("part-after-end",))
_WENT_ON = Says(needs=("part-after-end",), may=("open-call",))

FAULTS: tuple[Fault, ...] = (
    _agent("raises", _raises, (*_WHOLE_WAY, *_AFTER), _BROKE, _BROKE_INSIDE, _BROKE_INSIDE, gives_up=True),
    _agent("raises-network", _raises_network, _BEFORE, _BROKE, _BROKE_INSIDE),
    _agent("ends-early", _ends_early, _WHOLE_WAY, _UNENDED, Says(needs=("no-end",)), gives_up=True),
    _agent("fails", _fails, _BEFORE, Says(reasons=("error",)), _WELL),
    _agent("hangs", _hangs, (*_BEFORE, *_AFTER), _STOPPED, _STOPPED, _or_well(_STOPPED)),
    _agent("hangs-deaf", _hangs_deaf, _BEFORE, _STOPPED, _STOPPED),
    _agent("goes-on-after-end", _goes_on_after_end, _ADAPTER, _WENT_ON, _WENT_ON),
    _agent("yields-rubbish", _yields_rubbish, _BEFORE, _RUBBISH, _RUBBISH_INSIDE),
    _agent("floods", _floods, _BEFORE, _FLOODED, _FLOODED),
    _agent("reuses-ids", _reuses_ids, _BEFORE, _WELL, _WELL),
    _agent("stopped", _stop, _ANYWHERE, _or_well(_STOPPED), _or_well(_STOPPED)),
    _agent("erased", _erased, _ANYWHERE, _GONE, _GONE),
    _agent("caller-cancelled", _caller_cancelled, _ANYWHERE, _or_well(_CANCELLED), _or_well(_CANCELLED)),
    _agent(
        "caller-task-cancelled",
        _caller_cancelled,
        _ANYWHERE,
        _or_well(_CANCELLED),
        _or_well(_CANCELLED),
        native=True,
    ),
    _agent("caller-raises", _caller_raises, _ANYWHERE, _or_well(_RAISED), _or_well(_RAISED)),
    _tool("tool-raises", _tool_raises, _FAILED),
    _tool("tool-raises-in-thread", _tool_raises, _FAILED, sync=True),
    _tool("tool-hangs-until-timeout", _tool_hangs, _LATE, timeout=0.05),
    _tool("tool-hangs-in-thread-until-timeout", _tool_hangs, _LATE, timeout=0.05, sync=True),
    _tool("tool-hangs-until-stop", _tool_hangs_until_stop, "cancelled", _STOPPED),
    _tool("tool-hangs-until-caller-cancelled", _tool_hangs_until_caller_goes, "cancelled", _CANCELLED),
    _tool("tool-hangs-until-caller-raises", _tool_hangs_until_caller_raises, "cancelled", _RAISED),
    _tool("tool-dies", _tool_dies, _DEAD),
    _tool("tool-dies-in-thread", _tool_dies, _DEAD, sync=True),
    _tool("tool-exits", _tool_exits, _DEAD),
    _tool("tool-exits-its-thread", _tool_exits, _DEAD, sync=True),
    _tool("tool-loses-its-server", _tool_loses_its_server, _FAILED),
    _tool("tool-leaves-a-scope-cancelled", _tool_leaves_a_scope_cancelled, _FAILED),
)
"""Everything but the database, which the tests strike themselves: it is one for many sessions."""

PAUSES = _agent("database", pauses, DATABASE_POINTS, _WELL, _WELL)
"""What the agents do whose database is struck: they wait at their points until it has been."""
