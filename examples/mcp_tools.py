"""The tools of an MCP server beside one's own in one box, as a run gets them. Needs ``talkfold[mcp]``."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from talkfold.runs import Toolbox, ToolCallRequest
from talkfold.runs.mcp import McpServer


def fahrenheit(celsius: float) -> float:
    """Turn degrees Celsius into Fahrenheit."""
    return celsius * 9 / 5 + 32


async def main() -> None:
    server = str(Path(__file__).with_name("mcp_weather.py"))
    async with McpServer.stdio(sys.executable, server, prefix="weather_", confirm="destructive", timeout=10) as weather:
        box = Toolbox(fahrenheit, weather)
        print([tool.name for tool in box.descriptors()])  # noqa: T201
        warm = await box.call(ToolCallRequest("c1", "weather_temperature", {"city": "Lagos"}))
        print(warm.structured_content)  # noqa: T201
        print(box.confirmation(ToolCallRequest("c2", "weather_forget", {"city": "Oslo"})))  # noqa: T201
        unknown = await box.call(ToolCallRequest("c3", "weather_temperature", {"town": "Oslo"}))
        print(unknown.text)  # noqa: T201


if __name__ == "__main__":
    anyio.run(main)
