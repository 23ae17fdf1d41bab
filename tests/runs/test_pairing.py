"""Random teams of agents that use the same few ids everywhere: every outcome stands at the call that it belongs to."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from run_world import all_calls, at_rest

from talkfold import AgentStreamPart, Finish, MessageStart, StepFinish, TextDelta, TextPart, ToolCall, ToolPart
from talkfold.calls import is_delegate
from talkfold.healing import heal
from talkfold.model import AgentMessage
from talkfold.resumable import resumable
from talkfold.runs import AgentRunRequest, RunSettings, SubAgent, Toolbox, start_run, stop_run, tool_outcome
from talkfold.store import SessionStore

pytestmark = pytest.mark.anyio

RUNS = 100
_IDS = ("c", "d", "e")
_DEEPEST = 3


class Fickle:
    """An agent that decides by chance what to do, and may stumble over anything."""

    id, label = "fickle", "Fickle"

    def __init__(self, chance: random.Random, numbers: Iterator[int], depth: int) -> None:
        self._chance = chance
        self._numbers = numbers
        self._depth = depth

    async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        chance = self._chance
        message = ""
        under = _under(request.messages)
        for step in range(chance.randrange(1, 6)):
            if not message or chance.random() < 0.3:
                message = chance.choice(_IDS)
                yield MessageStart(message)
            yield TextDelta(message, f"{under} ")
            ids = [chance.choice(_IDS)] if chance.random() < 0.7 else chance.sample(_IDS, 2)
            made = [self._call(message, call_id, under) for call_id in ids]
            for call in made:
                yield call
            for call in made if chance.random() < 0.7 else reversed(made):
                stumbles = chance.random()
                if stumbles < 0.03:
                    raise RuntimeError("stumbled")
                if stumbles < 0.05:
                    return
                outcome = tool_outcome(call.id, await request.call_tool(call))
                if chance.random() < 0.95:
                    yield outcome
            yield StepFinish(step)
        yield Finish("stop")

    def _call(self, message: str, call_id: str, under: str) -> ToolCall:
        number = next(self._numbers)
        if self._depth < _DEEPEST and self._chance.random() < 0.35:
            return ToolCall(message, call_id, "delegate_to_fickle", {"task": str(number), "under": under})
        return ToolCall(message, call_id, "echo", {"number": number, "under": under})


def team(chance: random.Random, numbers: Iterator[int], box: Toolbox, depth: int = 0) -> tuple[Fickle, list[SubAgent]]:
    """An agent, and one below it, and so on."""
    if depth == _DEEPEST:
        return Fickle(chance, numbers, depth), []
    below, agents = team(chance, numbers, box, depth + 1)
    return Fickle(chance, numbers, depth), [SubAgent("fickle", below, "Does things.", tools=box, agents=agents)]


def _under(messages: tuple[AgentMessage, ...]) -> str:
    """The number of the delegate call that an agent works for: its task; ``go`` at the top."""
    (part,) = messages[-1].parts
    assert isinstance(part, TextPart)
    return part.text


def misplaced(messages: tuple[AgentMessage, ...], under: str = "go") -> list[object]:
    """What stands in the nested run of another delegate call than the one that its agent worked for."""
    found: list[object] = []
    for part in (part for message in messages if message.role == "assistant" for part in message.parts):
        if isinstance(part, TextPart):
            found += [part] if {*part.text.split()} != {under} else []
        elif isinstance(part, ToolPart):
            found += [part] if part.input["under"] != under else []  # type: ignore[index, call-overload]
            if part.agent is not None:
                found += misplaced(part.agent.messages, str(part.input["task"]))  # type: ignore[index, call-overload]
    return found


def wrongly_paired(messages: tuple[AgentMessage, ...]) -> list[ToolPart]:
    """The calls whose output is that of another call."""
    return [
        call
        for call in all_calls(messages)
        if not is_delegate(call) and call.state == "done" and _text(call.output) != f"echo of {_number(call)}"
    ]


def _text(output: Any) -> str:
    return str(output["content"][0]["text"])


def _number(call: ToolPart) -> int:
    return int(call.input["number"])  # type: ignore[index, call-overload]


async def play(store: SessionStore, seed: int) -> tuple[int, int]:
    """Two runs in one session; how many calls ended with a result, and how deep the deepest was."""
    chance = random.Random(seed)
    ran: list[int] = []

    async def echo(number: int, under: str) -> str:
        """Echo."""
        ran.append(number)
        if chance.random() < 0.1:
            raise ValueError("no echo")
        await anyio.lowlevel.checkpoint()
        return f"echo of {number}"

    box = Toolbox(echo)
    adapter, agents = team(chance, iter(range(100_000)), box)
    session = f"s{seed}"
    await store.create(session)
    settings = RunSettings(grace_seconds=0.05)
    for _ in range(2):
        async with start_run(store, session, adapter, text="go", tools=box, agents=agents, settings=settings) as run:
            if chance.random() < 0.3:
                await anyio.sleep(chance.random() * 0.01)
                await stop_run(store, session)
            await run.wait()
    state = await at_rest(store, session)
    assert misplaced(state.messages) == [], seed
    assert wrongly_paired(state.messages) == [], seed
    numbers = [_number(call) for call in all_calls(state.messages) if not is_delegate(call)]
    assert len(set(numbers)) == len(numbers), (seed, "a call is in the state twice")
    assert len(set(ran)) == len(ran), (seed, "a tool ran twice")
    assert {*ran} <= {*numbers}, (seed, "a tool ran whose call is not in the state")
    kept = resumable(state.messages)
    healed = heal(kept).messages
    assert len([part for m in kept for part in m.parts]) == len([part for m in healed for part in m.parts])
    return len(ran), _depth(state.messages)


def _depth(messages: tuple[AgentMessage, ...]) -> int:
    inner = (part.agent for m in messages for part in m.parts if isinstance(part, ToolPart) and part.agent)
    return max((1 + _depth(agent.messages) for agent in inner), default=0)


async def test_every_outcome_stands_at_its_call(store: SessionStore, store_kind: str) -> None:
    runs = RUNS if store_kind == "memory" else RUNS // 4
    played = [await play(store, seed) for seed in range(runs)]
    assert sum(ran for ran, _ in played) > 5 * runs, "too few calls for this to mean anything"
    assert max(depth for _, depth in played) == _DEEPEST


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_every_outcome_stands_at_its_call_in_thousands_of_runs(store: SessionStore) -> None:
    for seed in range(RUNS, 20 * RUNS):
        await play(store, seed)
