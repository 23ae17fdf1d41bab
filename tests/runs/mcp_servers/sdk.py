"""A server as the SDK makes it: over stdin and stdout, or with a port over Streamable HTTP.

python sdk.py [PORT [json]]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("sdk")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it is raining")


@server.tool()
async def count(context: Context, to: int = 3) -> str:
    """Count, and tell of it."""
    for step in range(1, to + 1):
        await context.report_progress(step, to, f"step {step}")
    return "counted"


@server.tool()
async def wait(context: Context, path: str) -> str:
    """Wait for ever; write to a file when that is over."""
    await context.report_progress(1)
    try:
        await anyio.sleep(60)
    except BaseException:
        Path(path).write_text("cancelled\n")
        raise
    return "slept"


@server.tool()
def long(n: int) -> str:
    """A long text."""
    return "x" * n


@server.tool()
def header(context: Context) -> str:
    """What came in a header."""
    return (context.headers or {}).get("x-key", "none")


@server.tool()
async def grow(context: Context) -> str:
    """Make a tool, and say so."""

    def grown() -> str:
        return "new"

    server.add_tool(grown)
    await context.session.send_tool_list_changed()
    return "grown"


@server.tool()
def die() -> str:
    """End the process."""
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]), json_response="json" in sys.argv)
    else:
        server.run("stdio")
