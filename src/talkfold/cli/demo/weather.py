"""The demo's tool server: a process of its own that speaks the Model Context Protocol over stdin and stdout.

Started as ``python -m talkfold.cli.demo.weather``; needs ``talkfold[mcp]``.
"""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

__all__ = ("forecast", "server")

server: MCPServer = MCPServer("weather")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def forecast(place: str) -> str:
    """What the weather does at a place on the weekend."""
    return f"Saturday in {place}: rain from noon, 4 degrees at night. Sunday: dry."


if __name__ == "__main__":
    server.run("stdio")
