"""A run in a process of its own: ``python live_run.py DATABASE SESSION PLAY``. Says on stdout how far it is."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from talkfold import AgentStreamPart, Finish, MessageStart, TextDelta, ToolCall
from talkfold.runs import (
    AgentRunRequest,
    CallParked,
    ClientTools,
    RunEvent,
    RunSettings,
    Toolbox,
    ToolDescriptor,
    start_run,
    tool,
    tool_outcome,
)
from talkfold.store import open_store

PAID = Path("paid.txt")


@tool(confirm=lambda given: f"Pay {given['total']}?")
def pay(total: str) -> str:
    with PAID.open("a") as file:
        file.write(total + "\n")
    return f"{total} are paid"


page = ClientTools([ToolDescriptor("scroll", "Scroll the page.", {"type": "object"})])


class Player:
    """Plays one of three short pieces."""

    id = "player"
    label = "Player"

    def __init__(self, play: str) -> None:
        self.play = play

    async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("a-2")
        if self.play == "talk":
            while not request.signal.aborted:
                yield TextDelta("a-2", "word ")
                await anyio.sleep(0.01)
            yield Finish("aborted")
            return
        if self.play == "stare":
            await anyio.sleep_forever()
        call = {
            "pay": ToolCall("a-2", "c9", "pay", {"total": "25.00"}),
            "scroll": ToolCall("a-2", "c9", "scroll", {}),
        }[self.play]
        yield call
        output = await request.call_tool(call)
        yield tool_outcome(call.id, output)
        yield TextDelta("a-2", f"It says: {output.text}")
        yield Finish("stop")


def told(event: RunEvent) -> None:
    if isinstance(event, CallParked):
        print("parked", flush=True)  # noqa: T201


async def main(database: str, session: str, play: str) -> None:
    settings = RunSettings(grace_seconds=30, observe=told)
    async with (
        open_store(database) as store,
        start_run(
            store, session, Player(play), text="Pay, please.", tools=Toolbox(pay, page), settings=settings
        ) as run,
    ):
        print("running", flush=True)  # noqa: T201
        await run.wait()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
