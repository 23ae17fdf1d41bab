"""The two agents of the demo. In the place of a model they have a script; all else about them is real.

They remember nothing: what comes next follows from the conversation that they are given, as with a model. So one
that is started again, in another process, goes on after the last call that finished.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

import anyio

from ...actions import AgentStreamPart, Finish, MessageStart, TextDelta, ToolCall
from ...model import AgentMessage, Json, ToolPart
from ...runs import AgentRunRequest, tool_outcome

__all__ = ("TASK", "ScriptedAgent", "Step", "packer", "planner")

TASK = "Plan my weekend in the hills: see what the weather does, pack, book the hut, and draw me a map of the way up."

_WORD_SECONDS = 0.03
_STEP_SECONDS = 0.25
"""So that a person can watch."""


class Step(NamedTuple):
    """One thing that an agent does: what it says before, and the call that it makes."""

    says: str
    name: str
    given: dict[str, Json]


class ScriptedAgent:
    """An adapter (see ``AgentAdapter``) that takes the first of its steps which is not done yet, until all are."""

    def __init__(self, agent_id: str, steps: Sequence[Step], ending: str) -> None:
        self.id = agent_id
        self.label: str = f"{agent_id.capitalize()} (scripted)"
        self._steps = steps
        self._ending = ending

    async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        """The steps that are left, and the ending. A step whose tool is not there is left out."""
        told = sum(message.role == "assistant" for message in request.messages)
        message_id = f"{self.id}-says-{told + 1}"
        yield MessageStart(message_id)
        done = [(call.name, call.input) for call in _finished(request.messages)]
        for number, step in enumerate(self._steps, start=1):
            if (step.name, step.given) in done or step.name not in {tool.name for tool in request.tools}:
                continue
            for words in _pieces(step.says):
                yield TextDelta(message_id, words)
                await anyio.sleep(_WORD_SECONDS)
            call = ToolCall(message_id, f"{self.id}-{number}", step.name, step.given)
            yield call
            await anyio.sleep(_STEP_SECONDS)
            output = await request.call_tool(call)
            yield tool_outcome(call.id, output)
            if request.signal.aborted:
                yield Finish("aborted")
                return
        for words in _pieces(self._ending):
            yield TextDelta(message_id, words)
            await anyio.sleep(_WORD_SECONDS)
        yield Finish("stop")


def _finished(messages: Sequence[AgentMessage]) -> Iterator[ToolPart]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolPart) and part.state in ("done", "error"):
                yield part


def _pieces(text: str) -> Iterator[str]:
    """A text as a model streams it: a word at a time."""
    for word in text.split():
        yield f"{word} "


planner: ScriptedAgent = ScriptedAgent(
    "planner",
    (
        Step("First the weather.", "forecast", {"place": "the hills"}),
        Step("", "delegate_to_packer", {"task": "Pack for one night in the hills: rain, 4 degrees."}),
        Step("The rucksack is packed. Now the hut.", "book_hut", {"night": "Saturday"}),
        Step("Booked. Last, the map.", "draw_map", {"to": "the hut"}),
    ),
    "All done: you are packed for rain, the hut is yours on Saturday night, and the map of the way is in map.txt.",
)
"""The agent that the person talks to."""

packer: ScriptedAgent = ScriptedAgent(
    "packer",
    (
        Step("", "pack", {"item": "rain jacket"}),
        Step("", "pack", {"item": "warm socks"}),
        Step("", "pack", {"item": "torch"}),
    ),
    "Three things are packed.",
)
"""The agent that the planner asks to pack."""
