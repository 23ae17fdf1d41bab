"""Findings on what really happened: live runs, the replays, and conversations of a real model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from healthy_logs import rows_of

from talkfold import AgentStreamPart
from talkfold.actions import Finish, MessageStart, Send, Stop, TextDelta, ToolCall
from talkfold.audit import Finding, findings
from talkfold.codec import decode_action, encode_action
from talkfold.log import Entry, LoggedAction
from talkfold.protocols.openai_chat import from_openai_chat
from talkfold.runs import (
    AgentRunRequest,
    RunSettings,
    SubAgent,
    Tool,
    Toolbox,
    approve,
    deny,
    parked_call,
    retry_run,
    start_run,
    stop_run,
    tool,
    tool_outcome,
)
from talkfold.store import SessionStore, open_store
from talkfold.testing.broken_logs import FAULTS
from talkfold.testing.scripted import ScriptedAdapter, call, fail, say, script, think, wait

ROOT = Path(__file__).resolve().parents[2]
REPLAYS = ROOT / "tests" / "replays"
AIRLINE = ROOT.parent / "shared" / "data" / "airline.jsonl"


async def log_of(store: SessionStore) -> list[LoggedAction]:
    rows: list[LoggedAction] = []
    while page := await store.read("s", after=len(rows)):
        rows += page
    return rows


def told(rows: list[LoggedAction], *, living: bool = False) -> list[tuple[str, str]]:
    return [(each.severity, each.code) for each in findings(rows, living=living)]


# ---- live runs --------------------------------------------------------------------------------------------------


def mark(line: str) -> str:
    """Mark a line."""
    return f"marked {line}"


def pays() -> Tool[..., Any]:
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    return tool(pay, confirm="Pay?")


INNER = ScriptedAdapter(script(say("On it. "), call("mark", line="inner"), think("Done."), say("Marked.")))
CLERK = SubAgent("clerk", INNER, "Marks.", tools=Toolbox(mark))
OUTER = ScriptedAdapter(
    script(say("Let me see. "), call("mark", line="1"), call("delegate_to_clerk", task="Mark it."), say("There.")),
    script(think("They say thanks."), say("You are ", "welcome.")),
)


@pytest.mark.anyio
async def test_well_behaved_runs_show_nothing() -> None:
    async with open_store("memory:") as store:
        await store.create("s")
        for text in ("Mark it.", "Thanks."):
            async with start_run(store, "s", OUTER, text=text, tools=Toolbox(mark), agents=[CLERK]) as run:
                async for _ in run:
                    assert told(await log_of(store), living=True) == []
        assert told(await log_of(store)) == []


@pytest.mark.anyio
async def test_a_failed_run_and_its_retry_show_nothing() -> None:
    failing = ScriptedAdapter(script(call("mark", line="1"), fail("overloaded", "rate_limited")))
    going_on = ScriptedAdapter(script(call("mark", line="1"), say("There.")))
    async with open_store("memory:") as store:
        await store.create("s")
        async with start_run(store, "s", failing, text="Mark it.", tools=Toolbox(mark)) as run:
            await run.wait()
        async with retry_run(store, "s", going_on, tools=Toolbox(mark)) as run:
            await run.wait()
        assert told(await log_of(store)) == []


@pytest.mark.anyio
@pytest.mark.parametrize("decision", ["approved", "denied", "expired"])
async def test_approvals(decision: str) -> None:
    agent = ScriptedAdapter(script(call("pay", amount=3), say("Well.")))
    settings = RunSettings(approval_seconds=0.02 if decision == "expired" else 60)
    async with open_store("memory:") as store:
        await store.create("s")
        async with start_run(store, "s", agent, text="Pay.", tools=Toolbox(pays()), settings=settings) as run:
            while decision != "expired" and (parked := await parked_call(store, "s")) is None:  # noqa: ASYNC110
                await anyio.sleep(0.001)
            if decision != "expired":
                answer = approve if decision == "approved" else deny
                await answer(store, "s", parked.waiting.call_id, parked.input)
            await run.wait()
        expected = [] if decision == "approved" else [("info", f"approval-{decision}")]
        assert told(await log_of(store)) == expected


@pytest.mark.anyio
async def test_a_stopped_run_shows_no_error() -> None:
    agent = ScriptedAdapter(script(say("Wait."), call("mark", line="1"), wait(None)))
    async with open_store("memory:") as store:
        await store.create("s")
        async with start_run(store, "s", agent, text="Mark it.", tools=Toolbox(mark)) as run:
            async for part in run:
                if isinstance(part, TextDelta):
                    await stop_run(store, "s")
            await run.wait()
        assert {severity for severity, _ in told(await log_of(store))} <= {"info"}


@pytest.mark.anyio
async def test_what_a_retry_reuses_is_told() -> None:
    agent = ScriptedAdapter(script(call("delegate_to_clerk", task="Mark it."), wait(None)))

    class Deaf:
        id = label = "deaf"

        async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            yield MessageStart("m")
            made = ToolCall("m", "inner-call", "mark", {"line": "inner"})
            yield made
            yield tool_outcome("inner-call", await request.call_tool(made))
            await request.signal.wait()
            yield Finish("aborted")

    async with open_store("memory:") as store:
        await store.create("s")
        team = [SubAgent("clerk", Deaf(), "Marks.", tools=Toolbox(mark))]
        async with start_run(store, "s", agent, text="Go.", agents=team) as run:
            async for action in run.actions():
                if isinstance(part := getattr(action, "part", None), ToolCall) and part.name == "mark":
                    await anyio.sleep(0.02)
                    await stop_run(store, "s")
            await run.wait()
        assert {severity for severity, _ in told(await log_of(store))} <= {"info"}
        agent = ScriptedAdapter(script(call("delegate_to_clerk", task="Mark it."), say("There.")))
        async with retry_run(store, "s", agent, agents=[CLERK]) as run:
            await run.wait()
        found = told(await log_of(store))
        assert ("warning", "retry-repeats-calls") in found
        assert ("info", "outcome-reused") in found
        assert "error" not in {severity for severity, _ in found}


@pytest.mark.anyio
async def test_a_run_that_died_is_told_when_it_is_settled() -> None:
    async with open_store("memory:") as store:
        await store.create("s")
        await store.append("s", [Send("u1", "Hello?")], run="gone")
        assert told(await log_of(store)) == [("error", "run-without-end")]
        await store.open_session("s")
        log = await log_of(store)
        assert log[-1].action == Stop()
        assert told(log) == [("info", "run-settled")]


# ---- replays ----------------------------------------------------------------------------------------------------

LATE = ("info", "part-after-stop")
SAID_AGAIN = ("warning", "message-id-again")
SHOWN: dict[str, list[tuple[str, str]]] = {
    "agent-hangs-before-a-call": [LATE],
    "agent-reuses-the-id-of-an-open-call": [SAID_AGAIN, ("error", "call-id-in-use"), SAID_AGAIN],
    "stopped-by-the-tool-of-a-sub-agent": [("info", "result-after-stop")],
    "sub-agent-floods-no-message": [("error", "part-for-unknown-message")],
    "sub-agent-reuses-ids-after-its-call": [SAID_AGAIN, ("info", "call-id-again"), SAID_AGAIN],
}
"""By hand: what the actions alone show, without their envelopes. All others ended well, so nothing."""


@pytest.mark.parametrize("name", sorted(path.stem for path in REPLAYS.glob("*.jsonl")))
def test_replays(name: str) -> None:
    rows = rows_of([decode_action(line) for line in (REPLAYS / f"{name}.jsonl").read_bytes().splitlines()])
    assert told(rows) == SHOWN.get(name, [])


# ---- conversations of a real model --------------------------------------------------------------------------------

needs_airline = pytest.mark.skipif(
    not AIRLINE.is_file(), reason="the real conversations (../shared/data/airline.jsonl) are not on this machine"
)


def airline() -> list[tuple[list[dict[str, Any]], list[LoggedAction]]]:
    conversations = [json.loads(line)["messages"] for line in AIRLINE.read_text("utf-8").splitlines()]
    return [(messages, imported(from_openai_chat(messages).entries)) for messages in conversations]


def imported(entries: tuple[Entry, ...]) -> list[LoggedAction]:
    rows = rows_of([entry.action for entry in entries if not isinstance(entry.action, bytes)])
    assert len(rows) == len(entries)
    return [
        LoggedAction(row.number, row.time, row.action, encode_action(row.action), None, None, None, entry.meta)
        for row, entry in zip(rows, entries, strict=True)
    ]


@needs_airline
def test_real_conversations_show_what_is_true_and_nothing_else() -> None:
    """Ids that the model used again, and the last turns, which the person or a hand-over ended without a reply."""
    for messages, rows in airline():
        found: list[Finding] = list(findings(rows))
        ids = [made["id"] for message in messages for made in message.get("tool_calls") or ()]
        again = [each for each in found if each.code == "call-id-again"]
        assert len(again) == len(ids) - len(set(ids))
        last = [each for each in found if each.code != "call-id-again"]
        assert [(each.code, each.numbers[0]) for each in last] == [("empty-reply", len(rows))]
        turn = messages[max(at for at, message in enumerate(messages) if message["role"] == "user") + 1 :]
        assert not any(message["role"] == "assistant" and message["content"] for message in turn)


WITH_SUB_AGENTS = {
    "delegate-id-on-two-levels",
    "inside-an-ended-call",
    "nested-end-missing",
    "nested-outcome-missing",
    "outcome-on-the-wrong-level",
    "retried-over-a-sub-agent",
    "sub-agent-missing",
    "sub-agent-said-nothing",
}
"""Faults that need a sub-agent, which these conversations have none of."""


@needs_airline
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_real_conversation_is_found(name: str) -> None:
    made = 0
    for seed, (_, rows) in enumerate(airline()[::3]):
        healthy = rows[: max(row.number for row in rows if type(row.action) is Send) - 1]
        broken = FAULTS[name].make(healthy, Random(seed))
        if broken is not None:
            made += 1
            assert broken.expected <= {(each.code, each.numbers[0]) for each in findings(broken.rows)}
    assert (made > 0) != (name in WITH_SUB_AGENTS)
