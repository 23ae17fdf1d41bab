"""The process in which the demo's agent runs, and which the demo kills.

Started as ``python -m talkfold.cli.demo.worker DATABASE SESSION start|retry``, in the folder where its tools leave
their traces. It ends with its run, and at once when whoever started it closes its stdin: then nobody watches any more.
"""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Thread

import anyio

from ...runs import RunSettings, retry_run, start_run
from ...store import open_store
from .agents import TASK, planner
from .tools import mcp_is_installed, packing, planning

__all__ = ("play",)

_PATIENCE = 60.0
"""Seconds that the hut's booking waits for somebody's yes."""


async def play(database: str, session_id: str, how: str) -> None:
    """Run the planner on a new task, or go on with the one that was cut short."""
    folder = Path.cwd()
    tools = planning(folder)
    settings = RunSettings(approval_seconds=_PATIENCE)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(database))
        if mcp_is_installed():
            from ...runs.mcp import McpServer

            weather = McpServer.stdio(sys.executable, "-m", "talkfold.cli.demo.weather", cwd=folder)
            tools.add(await stack.enter_async_context(weather))
        agents = [packing(folder)]
        run = await stack.enter_async_context(
            start_run(store, session_id, planner, text=TASK, tools=tools, agents=agents, settings=settings)
            if how == "start"
            else retry_run(store, session_id, planner, tools=tools, agents=agents, settings=settings)
        )
        await run.wait()


def _end_with_stdin() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with_stdin, daemon=True).start()
    anyio.run(play, sys.argv[1], sys.argv[2], sys.argv[3])
