"""Agents for the rows about live runs: no model, just parts, as fast as they are asked for or at a given pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from time import monotonic_ns

from talkfold import AgentStreamPart, Finish, MessageStart, TextDelta, ToolCall
from talkfold.runs import AgentRunRequest, tool_outcome

__all__ = ("Agent", "chatting", "clocked", "texting")

Play = Callable[[AgentRunRequest], AsyncIterator[AgentStreamPart]]

_WORDS = "the quick brown fox jumps over the"
_CALL_EVERY = 50
_MESSAGE_EVERY = 500


class Agent:
    """An adapter whose ``run`` is a function."""

    id = "bench"
    label = "Bench"

    def __init__(self, play: Play) -> None:
        self._play = play

    def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        return self._play(request)


def texting(count: int) -> Agent:
    """``count`` text deltas of 34 characters, each a new object; a new message every 500."""

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        message = "m"
        for number in range(count):
            if not number % _MESSAGE_EVERY:
                message = f"m{number}"
                yield MessageStart(message)
            yield TextDelta(message, _WORDS)
        yield Finish("stop")

    return Agent(play)


def chatting(count: int, pause: float = 0) -> Agent:
    """About ``count`` parts, a new message and a call of the tool ``look`` among every fifty; then, if wished, a pause
    in seconds."""

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        for number in range(count // _CALL_EVERY):
            message = f"m{number}"
            yield MessageStart(message)
            for _ in range(_CALL_EVERY - 3):
                yield TextDelta(message, _WORDS)
            call = ToolCall(message, f"c{number}", "look", {"at": "the quick brown fox", "number": number})
            yield call
            yield tool_outcome(call.id, await request.call_tool(call))
            if pause:
                await asyncio.sleep(pause)
        yield Finish("stop")

    return Agent(play)


def clocked(count: int, pause: float) -> Agent:
    """``count`` text deltas, one every ``pause`` seconds, each saying when it was yielded (CLOCK_MONOTONIC, in ns)."""

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        for _ in range(count):
            await asyncio.sleep(pause)
            yield TextDelta("m", f"{monotonic_ns()} {_WORDS}")
        yield Finish("stop")

    return Agent(play)
