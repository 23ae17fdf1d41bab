"""The seven acts of the demo. Each shows one thing on the stage and gives back what happened."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import anyio

from ...actions import Retry
from ...codec import decode_actions
from ...demo_data import CONVERSATIONS, REPLY, RUN
from ...errors import SessionExists
from ...log import Entry
from ...model import AgentMessage, Json, SessionState, TextPart, ToolPart
from ...protocols.openai_chat import check_openai_chat, to_openai_chat
from ...resumable import retry_plan
from ...store.protocol import SessionStore
from ..importing import Imported, import_conversations
from ..output import Column, line, preview
from ..plan import plan_json, plan_lines
from ..proof import report_json
from ..reading import Step, step_numbers, walk
from ..source import source
from ..wording import action_kind, action_text, count, message_lines, state_lines
from .stage import Stage

__all__ = ("bring_in", "go_on", "load_again", "plan_retry", "prove", "run_and_kill", "step_through")

_LIVE = "order-17"
_MOST_SHOWN = 6
_PATIENCE = 30.0
"""Seconds that the run may take to write all its actions before the demo gives up."""


# ---- 1: conversations come in -------------------------------------------------------------------------------


class _Row(NamedTuple):
    imported: Imported
    state: SessionState


_COLUMNS: Sequence[Column[_Row]] = (
    ("session", lambda it: it.imported.session.id),
    ("about", lambda it: it.imported.session.title or _first_words(it.state)),
    ("messages", lambda it: str(len(it.state.messages))),
    ("actions", lambda it: str(it.imported.session.number)),
    ("tool calls", lambda it: _tally(it.state.messages) or "-"),
)


async def bring_in(stage: Stage, store: SessionStore, file: str | None) -> Json:
    """Import the person's file, or the demo's own conversations, and say what became of them."""
    stage.act("Conversations come in")
    with ExitStack() as stack:
        stream = (
            stack.enter_context(source(file))
            if file is not None
            else cast(BinaryIO, stack.enter_context(CONVERSATIONS.open("rb")))
        )
        imported, _ = await import_conversations(store, stream, "openai")
    rows = [_Row(each, (await store.state(each.session.id)).state) for each in imported]
    whose = "from your file" if file is not None else "that we made up"
    stage.tell(
        f"{count(len(rows), 'conversation')} {whose}, in the chat-completions form. Each becomes a log of actions: "
        "what the person sent, and every piece that the agent reported."
    )
    stage.table(_COLUMNS, rows[:_MOST_SHOWN], elastic="about")
    actions = sum(row.imported.session.number for row in rows)
    if len(rows) > _MOST_SHOWN:
        every = _tally(message for row in rows for message in row.state.messages)
        stage.tell(f"… and {len(rows) - _MOST_SHOWN} more: {count(actions, 'action')} in all, tool calls: {every}.")
    for row in rows[:_MOST_SHOWN]:
        for note in row.imported.notes:
            stage.tell((f"{row.imported.session.id}: {note}", "yellow"))
    return {"sessions": len(rows), "actions": actions}


def _first_words(state: SessionState) -> str:
    said = (part.text for message in state.messages for part in message.parts if isinstance(part, TextPart))
    return preview(next(said, "-"), 44)


def _calls(messages: Iterable[AgentMessage]) -> Iterator[ToolPart]:
    """Every call, nested ones after the delegate call that they are in."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolPart):
                yield part
                if part.agent is not None:
                    yield from _calls(part.agent.messages)


def _tally(messages: Iterable[AgentMessage]) -> str:
    states = Counter(call.state for call in _calls(messages))
    return ", ".join(f"{number} {state}" for state, number in states.items())


# ---- 2: a run is killed -------------------------------------------------------------------------------------


async def run_and_kill(stage: Stage, store: SessionStore, database: Path) -> str:
    """Let another process write a run, watch its log, kill the process, and give the session's id."""
    stage.act("A run is killed")
    try:
        session = await store.create(_LIVE, title="Two blue mugs to Lisbon")
    except SessionExists:  # the person's file has it
        session = await store.create(title="Two blue mugs to Lisbon")
    actions = len(RUN.read_bytes().splitlines())
    command = [sys.executable, "-m", "talkfold.cli.demo.writer", str(database), session.id]
    process = await anyio.open_process(command, stdin=None, stdout=None, stderr=None)
    try:
        stage.tell(
            f"A second process ({process.pid}) runs an agent and writes down what happens. This process follows "
            "the log; every line was on the disk before it appears here."
        )
        with anyio.fail_after(_PATIENCE):
            async for logged in store.subscribe(session.id):
                kind = f"{logged.number:>3}  {action_kind(logged.action):<14}"
                stage.lines([line(action_text(logged.action), lead=(kind, "dim"))], indent=3)
                if logged.number == actions:
                    break
    finally:
        process.kill()
        await process.wait()
    calls = [call for call in _calls((await store.state(session.id)).state.messages) if call.state == "running"]
    stage.tell(
        ("The process was killed (SIGKILL). ", "bold red"),
        f"{count(len(calls), 'call')} without a result: {', '.join(call.name for call in calls)}. Sent as it is, "
        "a model provider refuses such a conversation from now on.",
    )
    return session.id


# ---- 3: it is loaded again ----------------------------------------------------------------------------------


async def load_again(stage: Stage, store: SessionStore, live: str) -> Json:
    """Open the session as the next process would, and show that exactly one ``stop`` was logged."""
    stage.act("It is loaded again")
    opened = await store.open_session(live)
    again = await store.open_session(live)
    stage.tell(
        f"Its process is gone, so opening the session logged one stop, action {opened.session.number}. "
        f"Opening it once more logged {'nothing' if not again.settled else 'another'}."
    )
    stage.lines(state_lines(opened.state), indent=3)
    return {"number": again.session.number, "settled": opened.settled, "settledAgain": again.settled}


# ---- 4: step by step ----------------------------------------------------------------------------------------

_STEP_COLUMNS: Sequence[Column[Step]] = (
    ("action", lambda it: step_numbers(it)),
    ("what", lambda it: it.kind),
    ("calls after it", lambda it: _where_calls_are(it.state)),
    ("status", lambda it: it.state.status),
)


async def step_through(stage: Stage, store: SessionStore, live: str) -> None:
    """Show where every call stood after each of the last steps."""
    stage.act("Step by step")
    stage.tell("The log is never changed, so the state after any action can be had again. The last steps:")
    log = await store.read(live)
    begin = 4
    before = (await store.state(live, at=begin)).state
    stage.table(_STEP_COLUMNS, list(walk(log[begin:], before)), elastic="calls after it")


def _where_calls_are(state: SessionState) -> str:
    return ", ".join(f"{call.id} {call.state}" for call in _calls(state.messages)) or "-"


# ---- 5: what Retry sends ------------------------------------------------------------------------------------


async def plan_retry(stage: Stage, store: SessionStore, live: str) -> Json:
    """Show what Retry would send, and that a provider takes it."""
    stage.act("What Retry sends")
    plan = retry_plan((await store.state(live)).state.messages)
    stage.lines(plan_lines(plan), indent=3)
    request = to_openai_chat(plan.messages).messages
    broken = check_openai_chat(request)
    stage.tell(
        f"As a chat-completions request that is {count(len(request), 'message')}; "
        + ("every call has exactly one result." if not broken else f"it breaks {count(len(broken), 'rule')}.")
    )
    return plan_json(plan)


# ---- 6: it goes on ------------------------------------------------------------------------------------------


async def go_on(stage: Stage, store: SessionStore, live: str) -> None:
    """Log the retry and a scripted reply that finishes the conversation."""
    stage.act("It goes on")
    head = (await store.get(live)).number
    await store.append(live, [Entry(Retry(), actor="person")], expected=head)
    kept = len((await store.state(live)).state.messages)
    reply = decode_actions(REPLY.read_bytes().splitlines())
    appended = await store.append(live, reply, expected=head + 1, actor="agent", run="run-2")
    state = (await store.state(live)).state
    stage.tell(
        f"Retry is logged as action {head + 1}; a scripted agent answers with actions {appended.first} to "
        f"{appended.last}. The session is {state.status}:"
    )
    for message in state.messages[kept:]:
        stage.lines(message_lines(message), indent=3)


# ---- 7: the proof -------------------------------------------------------------------------------------------


async def prove(stage: Stage, store: SessionStore, live: str) -> Json:
    """Check the session's whole log and show its digest."""
    stage.act("The proof")
    report = await store.check(live)
    found = "nothing is wrong" if not report.problems else count(len(report.problems), "problem")
    stage.tell(
        f"{count(report.number, 'action')} walked from the first: no number missing, the chain of hashes closes, "
        f"{found}. Even the killed run is still there, actions 1 to {len(RUN.read_bytes().splitlines())}. "
        "The digest of it all:"
    )
    stage.tell((report.digest.hex(), "green"))
    return report_json(report)
