"""Writes the replays: real runs with the faults of ``tests/runs/faults.py``, as logs and the states that they fold to.

``python tests/replays/write_replays.py [NAME …]`` writes those named, or all. What it writes is read by a person
before it is committed: the tests hold the code to these files, and the files are held to the contract by hand.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))

import anyio
from crew import Crew, crew
from fault_play import play
from faults import FAULTS, PAUSES, Cell, Here, Point
from run_world import at_rest, whole_log
from test_database_faults import STRUCK

from talkfold.codec import encode_action, encode_state
from talkfold.fold import fold
from talkfold.log import LoggedAction
from talkfold.store import SessionStore, open_store

HERE = Path(__file__).parent
FLOOD = 12
_FAULTS = {fault.name: fault for fault in FAULTS}

CELLS: dict[str, tuple[str, Point, int]] = {
    "agent-raises-before-text": ("raises", ("before", "text-delta"), 0),
    "agent-raises-beside-its-call-in-a-sub-agent": ("raises", ("during", "call_tool"), 1),
    "agent-raises-after-its-end": ("raises", ("after", "finish"), 0),
    "agent-loses-the-network": ("raises-network", ("before", "reasoning"), 0),
    "agent-ends-with-an-open-call": ("ends-early", ("before", "call_tool"), 0),
    "agent-ends-early-two-deep": ("ends-early", ("before", "tool-result"), 2),
    "agent-fails-after-a-call": ("fails", ("before", "step-finish"), 0),
    "sub-agent-fails": ("fails", ("before", "text-delta"), 1),
    "agent-hangs-before-a-call": ("hangs", ("before", "tool-call"), 0),
    "agent-hangs-two-deep": ("hangs", ("before", "tool-result"), 2),
    "agent-is-deaf-with-an-open-call": ("hangs-deaf", ("before", "call_tool"), 0),
    "agent-finishes-with-an-open-call-and-goes-on": ("goes-on-after-end", ("before", "call_tool"), 0),
    "sub-agent-goes-on-after-its-end": ("goes-on-after-end", ("before", "finish"), 1),
    "agent-yields-no-part": ("yields-rubbish", ("before", "reasoning"), 0),
    "agent-yields-no-part-two-deep": ("yields-rubbish", ("before", "message-start"), 2),
    "agent-floods-a-message": ("floods", ("before", "reasoning"), 0),
    "sub-agent-floods-no-message": ("floods", ("before", "message-start"), 1),
    "agent-reuses-the-id-of-an-open-call": ("reuses-ids", ("before", "call_tool"), 0),
    "sub-agent-reuses-ids-after-its-call": ("reuses-ids", ("before", "step-finish"), 1),
    "stopped-with-an-open-call": ("stopped", ("before", "call_tool"), 0),
    "stopped-by-the-tool-of-a-sub-agent": ("stopped", ("during", "call_tool"), 1),
    "caller-cancelled-after-a-call": ("caller-cancelled", ("before", "tool-result"), 0),
    "caller-task-cancelled-in-a-sub-agent": ("caller-task-cancelled", ("before", "reasoning"), 1),
    "caller-raises-before-the-end": ("caller-raises", ("before", "finish"), 0),
    "tool-raises": ("tool-raises", ("during", "call_tool"), 0),
    "tool-raises-two-deep": ("tool-raises", ("during", "call_tool"), 2),
    "tool-raises-in-a-thread": ("tool-raises-in-thread", ("during", "call_tool"), 1),
    "tool-is-too-slow": ("tool-hangs-until-timeout", ("during", "call_tool"), 0),
    "tool-is-too-slow-in-a-thread": ("tool-hangs-in-thread-until-timeout", ("during", "call_tool"), 1),
    "tool-hangs-until-stop": ("tool-hangs-until-stop", ("during", "call_tool"), 0),
    "tool-hangs-until-stop-two-deep": ("tool-hangs-until-stop", ("during", "call_tool"), 2),
    "tool-hangs-until-the-caller-is-cancelled": ("tool-hangs-until-caller-cancelled", ("during", "call_tool"), 1),
    "tool-hangs-until-the-caller-raises": ("tool-hangs-until-caller-raises", ("during", "call_tool"), 0),
    "tool-dies": ("tool-dies", ("during", "call_tool"), 0),
    "tool-dies-in-a-thread": ("tool-dies-in-thread", ("during", "call_tool"), 1),
    "tool-exits": ("tool-exits", ("during", "call_tool"), 2),
    "tool-exits-its-thread": ("tool-exits-its-thread", ("during", "call_tool"), 0),
    "tool-loses-its-server": ("tool-loses-its-server", ("during", "call_tool"), 1),
    "tool-leaves-a-scope-cancelled": ("tool-leaves-a-scope-cancelled", ("during", "call_tool"), 0),
}
"""One run each: the fault, its point, and the level of the agent."""

DATABASE: dict[str, tuple[str, Point, int]] = {
    "database-full-in-a-tool": ("full", ("during", "call_tool"), 0),
    "database-full-in-a-sub-agent": ("full", ("before", "text-delta"), 1),
    "database-locked-for-long-in-a-tool": ("locked-for-longer-than-the-timeout", ("during", "call_tool"), 2),
    "database-locked-for-a-second": ("locked-for-a-second", ("before", "tool-call"), 0),
    "store-closed-before-a-result": ("closed", ("before", "tool-result"), 0),
}

CRASHES: dict[str, tuple[str, str]] = {
    "killed-in-the-tool-of-a-sub-agent": ("marks", "n2"),
    "killed-while-a-call-waits-for-approval": ("pays", ""),
    "denied-from-another-process": ("pays", "deny"),
}
"""The agent of ``crash_child``, and when it is killed: in this tool, while it is parked, or never."""


async def _played(cell: Cell, folder: Path) -> list[LoggedAction]:
    async with open_store("memory:") as store:
        await play(cell, store, "s", folder / "lines", flood=FLOOD)
        return await _rows(store)


async def _rows(store: SessionStore) -> list[LoggedAction]:
    await store.open_session("s")
    await at_rest(store, "s")
    return await whole_log(store, "s")


async def _struck(how: str, cell: Cell, folder: Path) -> list[LoggedAction]:
    struck = STRUCK[how]
    path = folder / "chat.db"
    waiting: list[Here] = []
    ended = anyio.Event()
    async with open_store(path, timeout=struck.patience) as store, anyio.create_task_group() as tasks:

        async def one() -> None:
            await play(cell, store, "s", folder / "lines", flood=0, paused=waiting.append)
            ended.set()

        tasks.start_soon(one)
        while not waiting:  # noqa: ASYNC110 - it is a list
            await anyio.sleep(0.01)
        await waiting[0].reached.wait()
        async with struck.strike(store, path):
            waiting[0].go_on.set()
            await (ended.wait() if struck.seconds is None else anyio.sleep(struck.seconds))
    async with open_store(path) as store:
        return await _rows(store)


def _crashed(made: Crew, path: Path, agent: str, at: str) -> list[LoggedAction]:
    async def prepare() -> None:
        async with open_store(path) as store:
            await store.create("s")

    async def look() -> list[LoggedAction]:
        async with open_store(path) as store:
            return await _rows(store)

    anyio.run(prepare)
    pid = made.do("run", "s", run="r", agent=agent, pace=0.05)
    if agent == "pays":
        parked = made.asks("parked", "parked", "s")
        if at:
            made.asks("answer", "answered", "s", how=at, call=parked["call"], input=parked["input"])
            made.hears(pid, "ended")
    else:
        made.hears(pid, "tool", line=at)
        time.sleep(0.01)
    made.kill(pid)
    return anyio.run(look)


def _write(name: str, rows: Sequence[LoggedAction]) -> None:
    actions = [row.action for row in rows]
    (HERE / f"{name}.jsonl").write_bytes(b"".join(encode_action(action) + b"\n" for action in actions))
    state = json.loads(encode_state(fold(actions)))
    text = json.dumps(state, indent=1, ensure_ascii=False)
    (HERE / f"{name}.state.json").write_text(text + "\n", encoding="utf-8")


def main(wanted: Sequence[str]) -> None:
    """Write the replays of these names; of none: all."""
    logging.disable()
    for name in wanted or [*CELLS, *DATABASE, *CRASHES]:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            if name in CRASHES:
                with crew(folder / "chat.db", folder / "lines") as children:
                    rows = _crashed(children, folder / "chat.db", *CRASHES[name])
            elif name in DATABASE:
                how, point, level = DATABASE[name]
                rows = asyncio.run(_struck(how, Cell(PAUSES, point, level), folder))
            else:
                fault, point, level = CELLS[name]
                rows = asyncio.run(_played(Cell(_FAULTS[fault], point, level), folder))
        _write(name, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
