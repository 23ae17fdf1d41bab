"""The acts of the demo without an agent: conversations from elsewhere, and the proof that a log is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import BinaryIO, NamedTuple, cast

from ...demo_data import CONVERSATIONS
from ...model import AgentMessage, Json, SessionState, TextPart, ToolPart
from ...store.protocol import SessionStore
from ..importing import Imported, import_conversations
from ..output import line, preview
from ..proof import report_json
from ..source import source
from ..wording import count
from .stage import Stage

__all__ = ("Row", "bring_in", "prove", "show_imported")

_MOST_SHOWN = 6


class Row(NamedTuple):
    """A conversation that was imported."""

    imported: Imported
    state: SessionState


async def bring_in(store: SessionStore, file: str | None) -> list[Row]:
    """Import the person's file, or the demo's own conversations."""
    with ExitStack() as stack:
        stream = (
            stack.enter_context(source(file))
            if file is not None
            else cast(BinaryIO, stack.enter_context(CONVERSATIONS.open("rb")))
        )
        imported, _ = await import_conversations(store, stream, "openai")
    return [Row(each, (await store.state(each.session.id)).state) for each in imported]


def show_imported(stage: Stage, rows: Sequence[Row], *, own: bool) -> Json:
    """Say what became of the imported conversations."""
    stage.act("Conversations from elsewhere")
    whose = "from your file" if own else "that we made up"
    stage.tell(
        f"{count(len(rows), 'conversation')} {whose}, in the chat-completions form. Each became a log as well, with "
        "all that one can do with it:"
    )
    for row in rows[:_MOST_SHOWN]:
        about = row.imported.session.title or _first_words(row.state)
        calls = _tally(row.state.messages)
        stage.lines(
            [
                line(
                    about,
                    (f"  ({count(len(row.state.messages), 'message')}{calls and '; calls: '}{calls})", "dim"),
                    lead=(f"{row.imported.session.id:<17} ", "bold"),
                )
            ],
            indent=5,
        )
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


async def prove(stage: Stage, store: SessionStore, live: str, killed_at: int) -> Json:
    """Check the live session's whole log and show its digest."""
    stage.act("The proof")
    report = await store.check(live)
    good = (
        "no number missing, the chain of hashes closes, nothing is wrong. Keep the last hash, and you can prove later"
    )
    bad = f"{count(len(report.problems), 'problem')}; `talkfold check` names them. The last hash would prove"
    stage.tell(
        f"Nothing was erased on the way. {count(report.number, 'action')} walked from the first, the killed run "
        f"(1 to {killed_at}) among them: {bad if report.problems else good} that nobody changed a letter:"
    )
    stage.tell((report.digest.hex(), "green"))
    return report_json(report)
