"""What the demo's agents can do. Every tool leaves a trace in a file, so that one can count what happened, and when."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import anyio

from ...runs import SubAgent, Toolbox, tool
from .agents import packer

__all__ = ("MAP", "MAP_FILE", "NOTEBOOK", "mcp_is_installed", "packing", "planning")

NOTEBOOK = "trip.txt"
"""One line for each thing that was really done."""

MAP_FILE = "map.txt"

MAP = (
    r"              /\        * hut",
    r"      /\     /  \      /",
    r"     /  \   / ^^ \    /",
    r"  __/    \_/      \__/",
    r"  car ............. 9 km",
)

_ROW_SECONDS = 0.4
_PRICE = "48.00"


def planning(folder: Path) -> Toolbox:
    """The planner's own tools."""

    @tool(confirm=lambda given: f"Book the hut for {given['night']} night, for {_PRICE}?")
    def book_hut(night: str) -> str:
        """Book a bed in the hut. It costs money."""
        _note(folder, f"booked  hut, {night} night, {_PRICE}")
        return f"booked for {night} night, {_PRICE}"

    @tool
    async def draw_map(to: str) -> str:
        """Draw the way to a place. It takes a while."""
        with (folder / MAP_FILE).open("w", encoding="utf-8") as file:
            for row in MAP:
                await anyio.sleep(_ROW_SECONDS)
                file.write(row + "\n")
                file.flush()
        return f"the way to {to} is drawn"

    return Toolbox(book_hut, draw_map)


def packing(folder: Path) -> SubAgent:
    """The packer, with a tool of its own."""

    @tool
    def pack(item: str) -> str:
        """Put one thing into the rucksack."""
        _note(folder, f"packed  {item}")
        return f"{item}: packed"

    return SubAgent("packer", packer, "Packs a rucksack for what you tell it.", Toolbox(pack))


def _note(folder: Path, line: str) -> None:
    with (folder / NOTEBOOK).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def mcp_is_installed() -> bool:
    """Whether tools of MCP servers can be used here: they need ``talkfold[mcp]``."""
    return all(find_spec(name) is not None for name in ("mcp", "mcp_types", "jsonschema"))
