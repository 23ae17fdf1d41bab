"""Sub-agents: an agent that another agent calls like a tool, by the name ``delegate_to_<id>``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from ..errors import InvalidArgument
from ..json_values import is_object
from ..model import DELEGATE_PREFIX, AgentMessage, Json, TextPart
from .adapter import AgentAdapter, ToolDescriptor, WebAgent
from .tools import Toolbox

__all__ = ("MAX_DEPTH", "SubAgent", "briefing", "delegate_descriptor", "delegates")

MAX_DEPTH = 8
"""How deep sub-agents may nest, unless the run says otherwise: the run's own agent is at depth 0."""

_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{64 - len(DELEGATE_PREFIX)}}}")  # with the prefix, what every provider takes


class SubAgent(Struct, frozen=True):
    """An agent with an adapter, tools and instructions of its own.

    ``description`` tells the calling model when to use it. ``agents`` are those that it may call in turn: the same
    list may be given to all of them, and agents added to it later are seen. Raises InvalidArgument for an id that
    providers refuse in a tool's name.
    """

    id: str
    adapter: AgentAdapter
    description: str
    tools: Toolbox | None = None
    instructions: str | None = None
    max_steps: int | None = None
    agents: Sequence[SubAgent] = ()

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise InvalidArgument("id", f"{self.id!r} is not 1 to {64 - len(DELEGATE_PREFIX)} letters, digits, _ and -")

    @property
    def call_name(self) -> str:
        """The name of the calls that reach it."""
        return DELEGATE_PREFIX + self.id

    @property
    def agent(self) -> WebAgent:
        """What its adapter is told of it."""
        return WebAgent(self.id, self.instructions, self.max_steps)


def delegates(agents: Sequence[SubAgent]) -> dict[str, SubAgent]:
    """Sub-agents by the name of their calls. Raises InvalidArgument when two have one id."""
    by_name = {agent.call_name: agent for agent in agents}
    if len(by_name) < len(agents):
        raise InvalidArgument("agents", "two sub-agents have the same id")
    return by_name


def delegate_descriptor(agent: SubAgent) -> ToolDescriptor:
    """The tool that a calling model sees."""
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": "What to do, in full: the agent sees nothing else of this conversation.",
            }
        },
        "required": ["task"],
    }
    return ToolDescriptor(agent.call_name, agent.description, schema)


def briefing(call_id: str, given: Json) -> tuple[AgentMessage, ...] | None:
    """The conversation that a sub-agent begins with: its task as a user message; ``None`` when there is no task."""
    task = given.get("task") if is_object(given) else None
    if not isinstance(task, str) or not task.strip():
        return None
    return (AgentMessage(call_id, "user", (TextPart(task),)),)
