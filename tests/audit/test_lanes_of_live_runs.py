"""Blame, lanes and timings of logs that real runs have written: with a sub-agent, stopped by a person, retried."""

from __future__ import annotations

from pathlib import Path

import pytest
from logged_rows import rows

from talkfold import LoggedAction, TextDelta, ToolResult, fold
from talkfold.audit.blame import Blame, Place, PlaceStep
from talkfold.audit.lanes import lanes
from talkfold.audit.timings import timings
from talkfold.codec import decode_action, decode_state
from talkfold.runs import SubAgent, Toolbox, retry_run, start_run, stop_run
from talkfold.store import open_store
from talkfold.testing.scripted import ScriptedAdapter, call, say, script, wait

REPLAYS = Path(__file__).parents[1] / "replays"


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


async def played(folder: Path) -> list[LoggedAction]:
    """A run with a sub-agent that is stopped by a person after its call, and the retry of it."""
    clerk = ScriptedAdapter(script(say("Let me see. "), call("add", a=1, b=2), say("It is 3.")))
    ask = call("delegate_to_clerk", task="1 + 2")
    slow = ScriptedAdapter(script(ask, wait()))
    quick = ScriptedAdapter(script(ask, say("Thr", "ee."), call("add", a=3, b=3)))
    agents = [SubAgent("clerk", clerk, "Adds.", tools=Toolbox(add))]
    async with open_store(folder / "chat.db") as store:
        session = await store.create()
        async with start_run(store, session.id, slow, text="1 + 2?", tools=Toolbox(add), agents=agents) as run:
            async for part in run:
                if isinstance(part, ToolResult):
                    await stop_run(store, session.id, actor="ann")
        async with retry_run(store, session.id, quick, tools=Toolbox(add), agents=agents) as run:
            await run.wait()
        return list(await store.read(session.id))


async def test_a_run_is_stopped_and_retried(tmp_path: Path) -> None:
    log = await played(tmp_path)
    first, agent, inner, second, last = lanes(log)
    assert (first.kind, first.id, first.ended) == ("run", log[0].run, "stopped")
    assert (second.kind, second.id, second.ended) == ("run", log[-1].run, "stop")
    assert first.last + 1 == second.first, "the stop, which names no run, belongs to the run that it stops"
    assert (agent.kind, agent.name, agent.ended, agent.parent) == ("agent", "clerk", "stop", 0)
    assert (inner.kind, inner.name, inner.ended, inner.parent) == ("call", "add", "done", 1)
    assert (last.kind, last.name, last.ended, last.parent) == ("call", "add", "done", 3)
    assert first.actions + agent.actions + inner.actions + second.actions + last.actions == len(log)

    told = timings(log)
    assert [timing.lane for timing in told.runs] == [0, 3]
    assert [timing.lane for timing in told.agents] == [1]
    assert [(timing.name, timing.ended) for timing in told.calls] == [
        ("delegate_to_clerk", "stop"),
        ("add", "done"),
        ("add", "done"),
    ]
    assert [(step.lane, step.step, step.last) for step in told.steps] == [
        (0, 1, agent.last + 1),
        (1, 1, inner.last + 1),
        (1, None, agent.last - 1),  # the last step of the sub-agent ends with its run
        (3, 1, second.last - 1),
    ]

    blame, state = Blame(log), fold(row.action for row in log)
    assert blame.state == state
    answer = blame.of(Place((PlaceStep(2, 0),), "text"))
    assert "".join(log[one.number - 1].action.part.delta for one in answer) == "Three."  # type: ignore[union-attr]
    assert all(second.first <= one.number <= second.last for one in answer)


@pytest.mark.parametrize("path", sorted(REPLAYS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_replays(path: Path) -> None:
    """Logs of runs in which something went wrong: they are one turn each, and nothing in them is left open."""
    log = rows(decode_action(line) for line in path.read_bytes().splitlines())
    assert Blame(log).state == decode_state(path.with_suffix(".state.json").read_bytes())
    found, told = lanes(log), timings(log)
    assert len([lane for lane in found if lane.parent is None]) == len(told.runs) == 1
    assert "open" not in [lane.ended for lane in found]
    assert told.runs[0].ms == (len(log) - 1) * 1000
    has_text = any(isinstance(getattr(row.action, "part", None), TextDelta) for row in log)
    assert has_text or told.runs[0].first_text_ms is None
