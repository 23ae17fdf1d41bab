"""Plays one cell of the fault matrix: a run with an agent that stumbles at the cell's point, on the cell's level."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
from faults import KINDS, Cell, Death, Fault, Here, Leave
from msgspec import Struct

from talkfold import AgentStreamPart, Finish, MessageStart, Reasoning, StepFinish, TextDelta, ToolCall
from talkfold.runs import (
    AgentAdapter,
    AgentRunRequest,
    Run,
    RunEnding,
    RunSettings,
    SubAgent,
    Tool,
    Toolbox,
    parked_call,
    start_run,
    stop_run,
    tool,
    tool_outcome,
)
from talkfold.store import SessionStore
from talkfold.testing.scripted import ScriptedAdapter, call, say, script, think

SETTINGS = RunSettings(grace_seconds=0.05)
_NAMES = ("", "a", "b")


class Outcome(Struct, frozen=True):
    """How a run ended, and what came out of its ``async with`` block, by name."""

    ending: RunEnding | None
    raised: str | None


class FaultyAgent:
    """Makes one call, then plays one part of each kind, and at the cell's point its fault."""

    id = "faulty"
    label = "Faulty"

    def __init__(self, cell: Cell, here: Here) -> None:
        self._cell = cell
        self._here = here

    async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        async with aclosing(self._parts(request)) as parts:
            try:
                async for part in parts:
                    yield part
            except Leave:
                return

    async def _parts(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m1")
        first = ToolCall("m1", "c1", "mark", {"line": f"{self._cell.level}-first"})
        yield first
        yield tool_outcome("c1", await request.call_tool(first))
        yield StepFinish(1)
        name = "ask" if self._cell.point[0] == "parked" else "mark"
        second = ToolCall("m2", "c2", name, {"line": f"{self._cell.level}-second"})
        parts: dict[str, AgentStreamPart] = {
            "message-start": MessageStart("m2"),
            "text-delta": TextDelta("m2", "Let me mark that."),
            "reasoning": Reasoning("m2", "It is not marked yet.", {"signature": "c2ln"}),
            "tool-call": second,
            "step-finish": StepFinish(2),
            "finish": Finish("stop"),
        }
        for kind in KINDS:
            async for part in self._stumbles("before", kind):
                yield part
            if self._cell.point == ("during", kind) and kind != "call_tool":
                self._here.tasks.start_soon(self._beside)
            if kind == "call_tool":
                parts["tool-result"] = tool_outcome("c2", await self._called(request, second))
            else:
                yield parts[kind]
        async for part in self._stumbles("after", "finish"):
            yield part

    async def _stumbles(self, when: str, kind: str) -> AsyncIterator[AgentStreamPart]:
        if self._cell.point == (when, kind):
            async with aclosing(self._cell.fault.happens(self._here)) as parts:  # type: ignore[type-var]
                async for part in parts:
                    yield part

    async def _beside(self) -> None:
        async for _ in self._cell.fault.happens(self._here):
            raise AssertionError("only what yields nothing can happen while a part is taken")

    async def _while_parked(self) -> None:
        while await self._here.parked() is None:  # noqa: ASYNC110 - it is in a row
            await anyio.sleep(0.002)
        self._here.tool_runs.set()
        if not self._cell.fault.gives_up:
            await self._beside()

    async def _called(self, request: AgentRunRequest, made: ToolCall) -> Any:
        if self._cell.point == ("parked", "call_tool"):
            self._here.tasks.start_soon(self._while_parked)
        if not (self._cell.fault.gives_up and self._cell.point[0] in ("during", "parked")):
            return await request.call_tool(made)
        raised: list[Exception] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(request.call_tool, made)
            await self._here.tool_runs.wait()
            try:
                await self._beside()
            except Exception as error:
                raised.append(error)
                tasks.cancel_scope.cancel()
        raise raised[0]


def marking(lines: Path, session_id: str) -> Callable[[str], None]:
    """A function that appends a line of a session to a file, durably enough for whoever survives this process."""

    def mark(line: str) -> None:
        descriptor = os.open(lines, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, f"{session_id} {line}\n".encode())
        finally:
            os.close(descriptor)

    return mark


def _box(cell: Cell | None, here: Here | None, lines: Path, session_id: str) -> Toolbox:
    write = marking(lines, session_id)
    stumbling = None if cell is None or cell.point != ("during", "call_tool") else f"{cell.level}-second"
    fault = None if cell is None else cell.fault

    async def mark(line: str) -> str:
        """Mark a line."""
        write(line)
        if line == stumbling and cell is not None and here is not None:
            here.tool_runs.set()
            if cell.fault.gives_up:
                await anyio.sleep_forever()
            async for _ in cell.fault.happens(here):
                raise AssertionError("a tool yields no parts")
        return f"marked {line}"

    def mark_in_thread(line: str) -> str:
        """Mark a line."""
        write(line)
        if line == stumbling and fault is not None:
            _in_thread(fault)
        return f"marked {line}"

    function: Any = mark_in_thread if fault is not None and fault.sync else mark
    made: Tool[..., Any] = tool(function, name="mark", timeout=fault.timeout if fault and stumbling else None)
    return Toolbox(made, tool(write, name="ask", confirm="Mark it?"))


def _in_thread(fault: Fault) -> None:
    match fault.name:
        case "tool-raises-in-thread":
            raise ValueError("out of stock")
        case "tool-dies-in-thread":
            raise Death("gone")
        case "tool-exits-its-thread":
            raise SystemExit(3)
        case _:
            time.sleep(0.5)  # nobody can end it; it is left behind


def _scripted(level: int, inner: int) -> ScriptedAdapter:
    """What an agent of this level does when all is well; ``inner`` is the deepest level."""
    first = call("mark", line=f"{level}-first")
    if level == inner:
        return ScriptedAdapter(
            script(first, say("Half."), think("On."), call("mark", line=f"{level}-second"), say("Done."))
        )
    return ScriptedAdapter(script(first, call(f"delegate_to_{_NAMES[level + 1]}", task="Mark it."), say("Done.")))


def team(
    inner: int, lines: Path, session_id: str, *, cell: Cell | None = None, here: Here | None = None
) -> tuple[AgentAdapter, dict[str, Any]]:
    """The agents of a run, the deepest on the level ``inner``, with the cell's faulty one there if there is a cell."""
    adapters: list[AgentAdapter] = [_scripted(level, inner) for level in range(inner + 1)]
    if cell is not None and here is not None:
        adapters[inner] = FaultyAgent(cell, here)
    box = _box(cell, here, lines, session_id)
    agents: tuple[SubAgent, ...] = ()
    for level in range(inner, 0, -1):
        agents = (SubAgent(_NAMES[level], adapters[level], "Marks.", tools=box, agents=agents),)
    return adapters[0], {"tools": box, "agents": agents}


async def play(
    cell: Cell,
    store: SessionStore,
    session_id: str,
    lines: Path,
    *,
    flood: int,
    paused: Callable[[Here], object] | None = None,
) -> Outcome:
    """Play a cell in a session of its own. Never raises what the run raises: that is in the outcome."""
    await store.create(session_id)
    raised: str | None = None
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()
        own: list[asyncio.Task[None]] = []
        here = Here(
            tasks,
            stop=lambda: stop_run(store, session_id),
            erase=lambda: store.erase(session_id),
            parked=lambda: parked_call(store, session_id),
            cancel_caller=lambda: own[0].cancel() if own else scope.cancel(),
            flood=flood,
        )
        if paused is not None:
            paused(here)

        async def caller() -> None:
            adapter, around = team(cell.level, lines, session_id, cell=cell, here=here)
            around |= {"text": "Mark it.", "message_id": "u1", "settings": SETTINGS}
            async with start_run(store, session_id, adapter, **around) as run:
                kept.append(run)
                if cell.fault.name.endswith("caller-raises"):
                    await here.caller_raises.wait()
                    raise KeyError("mine")
                async for _ in run:
                    pass
                await run.wait()

        kept: list[Run] = []
        try:
            with scope:
                if cell.fault.native:
                    own.append(asyncio.create_task(caller()))
                    await asyncio.wait(own)
                    own[0].result()
                else:
                    await caller()
            if scope.cancelled_caught:
                raised = "cancelled"
        except asyncio.CancelledError:
            if not cell.fault.native:
                raise
            raised = "cancelled"
        except Exception as error:
            raised = type(error).__name__
        tasks.cancel_scope.cancel()
    return Outcome(kept[0].ending if kept else None, raised)
