"""What Retry sends, and what it leaves out.

The conversation goes back to the last tool call that finished after the last user message, or to that user message.
A finished call has had its effect in the world, so Retry must not run it again; what came after it is a reply cut
short, and the model makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from .machine import FINISHED, OPEN
from .model import AgentMessage, AgentPart, ReasoningPart, ToolPart

__all__ = ("AtRisk", "DropReason", "Dropped", "RetryPlan", "last_kept", "resumable", "retry_plan")

DropReason: TypeAlias = Literal[
    "open-call", "cancelled-call", "reply-cut-short", "reasoning-after-last-call", "empty-message"
]


class Dropped(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part that Retry does not send: the message it is in, its place there (from 0), and why it goes.

    A message that had no parts is told as one such entry without ``index`` and ``part``.
    """

    message_id: str
    reason: DropReason
    index: int | None = None
    part: AgentPart | None = None


class AtRisk(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A call that a sub-agent had finished inside a dropped run: the retried run may do it a second time
    (``retry_run`` gives it the outcome that it had, where the same agents make it again with the same input).

    ``path`` are the ids of the delegate calls around it, outermost first.
    """

    path: tuple[str, ...]
    message_id: str
    call: ToolPart


class RetryPlan(Struct, frozen=True, rename="camel"):
    """What Retry sends, every part that it drops (in order), and the finished calls that it may repeat."""

    messages: tuple[AgentMessage, ...]
    dropped: tuple[Dropped, ...]
    at_risk: tuple[AtRisk, ...]


def resumable(messages: Iterable[AgentMessage]) -> tuple[AgentMessage, ...]:
    """The messages that Retry sends: equal objects are shared, and a tuple that is resumable comes back itself.

    Through the last finished call of this level after the last user message, that call included; without one,
    through the last user message; without a user message, everything.
    """
    row = tuple(messages)
    cut = last_kept(row)
    if cut is None:
        return row
    m, parts = cut
    message = row[m]
    if parts == len(message.parts):
        return row if m + 1 == len(row) else row[: m + 1]
    return (*row[:m], AgentMessage(message.id, message.role, message.parts[:parts]))


def last_kept(messages: Sequence[AgentMessage]) -> tuple[int, int] | None:
    """Where the conversation is cut: the last message that stays, and how many of its parts. None: no user message."""
    found: tuple[int, int] | None = None
    for m in range(len(messages) - 1, -1, -1):
        message = messages[m]
        if message.role == "user":
            return found or (m, len(message.parts))
        if found is None:
            for p in range(len(message.parts) - 1, -1, -1):
                part = message.parts[p]
                if type(part) is ToolPart and part.state in FINISHED:
                    found = m, p + 1
                    break
    return None


def retry_plan(messages: Iterable[AgentMessage]) -> RetryPlan:
    """``resumable`` with its reasons: every part of the input is in ``messages`` or in ``dropped``, once, in order."""
    row = tuple(messages)
    cut = last_kept(row)
    if cut is None:
        return RetryPlan(row, (), ())
    kept = resumable(row)
    m, parts = cut
    after_call = row[m].role != "user"
    dropped = tuple(
        entry
        for number, message in enumerate(row[m:])
        for entry in _dropped(message, parts if number == 0 else 0, after_call)
    )
    at_risk = tuple(risk for entry in dropped if type(entry.part) is ToolPart for risk in _finished_inside(entry.part))
    return RetryPlan(kept, dropped, at_risk)


def _dropped(message: AgentMessage, start: int, after_call: bool) -> Iterable[Dropped]:
    if not message.parts and message.role == "assistant":
        yield Dropped(message.id, "empty-message")
    for index in range(start, len(message.parts)):
        part = message.parts[index]
        yield Dropped(message.id, _reason(part, after_call), index, part)


def _reason(part: AgentPart, after_call: bool) -> DropReason:
    if type(part) is ToolPart:
        return "open-call" if part.state in OPEN else "cancelled-call"
    if type(part) is ReasoningPart and after_call:
        return "reasoning-after-last-call"
    return "reply-cut-short"


def _finished_inside(call: ToolPart) -> list[AtRisk]:
    """The finished calls of all runs nested in a call, in order: a delegate call before those inside it."""
    found: list[AtRisk] = []
    # Depth first with a row of its own instead of recursion: how many delegate calls stand around, message, call.
    row = [(0, "", call)]
    around: list[str] = []
    while row:
        depth, message_id, part = row.pop()
        del around[depth:]
        if depth and part.state in FINISHED:
            found.append(AtRisk(tuple(around), message_id, part))
        if part.agent is not None:
            around.append(part.id)
            nested = [
                (depth + 1, message.id, inner)
                for message in part.agent.messages
                for inner in message.parts
                if type(inner) is ToolPart
            ]
            row.extend(reversed(nested))
    return found
