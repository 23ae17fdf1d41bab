"""The process that the demo kills: it writes a run into a session, action by action, and never ends by itself.

Started as ``python -m talkfold.cli.demo.writer DATABASE SESSION``.
"""

from __future__ import annotations

import sys

import anyio

from ...demo_data import RUN
from ...log import Entry
from ...store import open_store

__all__ = ("write",)

_PAUSE = 0.08
"""Seconds between two actions, so that a person can watch."""


async def write(database: str, session_id: str) -> None:
    """Append the demo's run, each action durable before the next, and then wait for a courier who never answers."""
    async with open_store(database) as store:
        for number, body in enumerate(RUN.read_bytes().splitlines()):
            who = "agent" if number else "person"
            await store.append(session_id, [Entry(body, actor=who, run="run-1")], expected=number)
            await anyio.sleep(_PAUSE)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(write, sys.argv[1], sys.argv[2])
