"""A process of its own for the rows about live runs: ``python -m benchmarks.run_process WHAT FILE …``; prints JSON.

``parts FILE COUNT``: one run of so many parts, read by its caller: seconds, and the memory before and after.
``many FILE RUNS COUNT PAUSE``: so many runs at once. ``follow FILE SESSION``: follows a run, and tells the delays.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from time import monotonic_ns, perf_counter

from talkfold import Part, TextDelta
from talkfold.runs import Toolbox, follow, start_run
from talkfold.store import SessionStore, open_store

from .agents import chatting, texting


def look(at: str, number: int) -> str:
    return f"{at} {number}"


def _resident() -> int:
    """This process's memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def _one(store: SessionStore, session_id: str, count: int, pause: float) -> int:
    seen = 0
    async with start_run(store, session_id, chatting(count, pause), text="go", tools=Toolbox(look)) as run:
        async for _ in run:
            seen += 1
    return seen


async def parts(file: str, count: int) -> dict[str, float]:
    async with open_store(file) as store:
        await _one(store, (await store.create()).id, 1_000, 0)
        session = await store.create()
        before, start, seen = _resident(), perf_counter(), 0
        async with start_run(store, session.id, texting(count), text="go") as run:
            async for _ in run:
                seen += 1
        seconds = perf_counter() - start
        return {"seconds": seconds, "parts": seen, "grown": _resident() - before}


async def many(file: str, runs: int, count: int, pause: float) -> dict[str, float]:
    async with open_store(file) as store:
        sessions = [(await store.create()).id for _ in range(runs)]
        await asyncio.gather(*(_one(store, session_id, 100, 0) for session_id in sessions))
        before, start = _resident(), perf_counter()
        seen = sum(await asyncio.gather(*(_one(store, session_id, count, pause) for session_id in sessions)))
        return {"seconds": perf_counter() - start, "parts": seen, "grown": _resident() - before}


async def following(file: str, session_id: str) -> dict[str, list[int]]:
    async with open_store(file) as store:
        print("ready", flush=True)
        delays = [
            monotonic_ns() - int(row.action.part.delta.split()[0])
            async for row in follow(store, session_id)
            if isinstance(row.action, Part) and isinstance(row.action.part, TextDelta)
        ]
    return {"delays": delays}


def main() -> None:
    what, file, *rest = sys.argv[1:]
    match what, rest:
        case "parts", [count]:
            said: object = asyncio.run(parts(file, int(count)))
        case "many", [runs, count, pause]:
            said = asyncio.run(many(file, int(runs), int(count), float(pause)))
        case "follow", [session_id]:
            said = asyncio.run(following(file, session_id))
        case _:
            sys.exit(__doc__)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
