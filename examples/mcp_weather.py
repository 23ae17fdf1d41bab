"""A small MCP server: ``python mcp_weather.py`` speaks the protocol over stdin and stdout. Needs ``talkfold[mcp]``."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("weather")
_celsius = {"Oslo": 4.5, "Lagos": 31.0}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def temperature(city: str) -> float:
    """The temperature of a city, in degrees Celsius."""
    return _celsius[city]


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def forget(city: str) -> str:
    """Forget what is known of a city."""
    del _celsius[city]
    return f"{city} is forgotten"


if __name__ == "__main__":
    server.run("stdio")
