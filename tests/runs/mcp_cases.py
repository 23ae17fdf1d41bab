"""What the tests of MCP servers share: the servers, short ways to call, and a watch over what is left behind."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from talkfold.runs import AbortController, Toolbox, ToolCallRequest, ToolContext, ToolOutput, ToolProgress
from talkfold.runs.mcp import McpServer

SERVERS = Path(__file__).parent / "mcp_servers"


def raw(*modes: str, **options: Any) -> McpServer:
    """The hand-written server."""
    return McpServer.stdio(sys.executable, str(SERVERS / "raw.py"), *modes, **options)


def request(name: str, given: Any = None) -> ToolCallRequest:
    return ToolCallRequest("c1", name, {} if given is None else given)


async def call(server: McpServer, name: str, given: Any = None, context: ToolContext | None = None) -> ToolOutput:
    """Through a box, as runs do."""
    return await Toolbox(server).call(request(name, given), context)


def watched(seen: list[ToolProgress]) -> ToolContext:
    return ToolContext("c1", AbortController().signal, seen.append)


def names(server: McpServer) -> list[str]:
    return [descriptor.name for descriptor in server.descriptors()]


def heard(log: Path, method: str) -> list[dict[str, Any]]:
    """The messages of one method that came to the server."""
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line.get("method") == method]


def alive(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children() -> set[str]:
    """This process's children, zombies as well."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def threads() -> set[threading.Thread]:
    """The threads that are not the event loop's own pool."""
    return {each for each in threading.enumerate() if not each.name.startswith(("asyncio_", "AnyIO worker", "Trio"))}


def wait_until(true: Any, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(true())
