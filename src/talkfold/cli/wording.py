"""How actions, messages and parts read for people. Only words here; what they mean is in the reducer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert

from ..actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from ..log import SETTLER, LoggedAction
from ..model import UNSET, AgentMessage, AgentPart, Json, ReasoningPart, SessionState, TextPart, ToolPart
from ..store.lease import Lease, Waiting, WaitKind
from ..store.protocol import Session
from .output import Line, line, preview

__all__ = (
    "ACTION_KINDS",
    "NOBODY",
    "STATE_STYLES",
    "action_kind",
    "action_text",
    "clock",
    "count",
    "is_left",
    "lease_text",
    "message_lines",
    "moment",
    "row_text",
    "state_lines",
    "value_text",
    "waiting_text",
)

STATE_STYLES = {
    "running": "yellow",
    "awaiting-confirmation": "yellow",
    "done": "green",
    "error": "red",
    "cancelled": "magenta",
    "idle": "green",
    "streaming": "yellow",
}
"""The colour of a call's state or a session's status; the word itself always stands there too."""

_SPEAKER = {"user": ("you       ", "bold cyan"), "assistant": ("assistant ", "bold blue")}


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 call``, ``2 calls``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def moment(time: int) -> str:
    """Milliseconds since 1970 as RFC 3339 in UTC, with milliseconds."""
    return datetime.fromtimestamp(time / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(time: int) -> str:
    """Milliseconds since 1970 as a date and a time of day in UTC, to the second."""
    return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


_WAITS: dict[WaitKind, str] = {"approval": "approval of", "client": "the result of"}


def waiting_text(waiting: Waiting) -> str:
    """What a parked call waits for, and until when."""
    until = "" if waiting.expires is None else f" until {clock(waiting.expires)}"
    return f"waits for {_WAITS[waiting.kind]} {preview(waiting.name, 40)}{until}"


NOBODY = "nobody runs it: talkfold settle"
"""What is said of a session that a dead run left streaming."""


def is_left(session: Session) -> bool:
    """Whether a session is in the middle of a turn that nobody plays."""
    return session.status == "streaming" and session.lease is None


def lease_text(lease: Lease) -> str:
    """Which run owns a session: its id, by whom, since when, and what it waits for."""
    waits = "" if lease.waiting is None else f", {waiting_text(lease.waiting)}"
    return f"{lease.run} by {lease.holder} since {clock(lease.since)}{waits}"


def value_text(value: Json, width: int = 72) -> str:
    """A JSON value on one line; the text blocks of a tool's output read as their text."""
    if isinstance(value, str):
        return preview(value, width)
    try:
        texts = [block.text for block in convert(value, _Output).content]
    except (ValidationError, UnicodeEncodeError):  # the latter: a lone surrogate in a key
        return preview(json.dumps(value, ensure_ascii=False), width)
    return preview(" ".join(texts), width)


class _TextBlock(Struct, tag_field="type", tag="text"):
    text: str


class _Output(Struct):
    """What a tool gives back when all of it is text."""

    content: Annotated[list[_TextBlock], Meta(min_length=1)]


# ---- actions --------------------------------------------------------------------------------------------

_WORDS: dict[type[Any], Callable[[Any], str]] = {
    Send: lambda it: preview(it.text),
    ToolPhase: lambda it: f"{it.name} is {it.state}" + (f": {preview(it.prompt)}" if it.prompt else ""),
    Stop: lambda _: "",
    Retry: lambda _: "",
    Reset: lambda _: "",
    MessageStart: lambda it: it.message_id,
    TextDelta: lambda it: preview(it.delta),
    Reasoning: lambda it: preview(it.text),
    ToolCall: lambda it: f"{it.id} {it.name} {value_text(it.input, 56)}",
    ToolResult: lambda it: f"{it.id} → {value_text(it.output, 64)}",
    ToolError: lambda it: f"{it.id} → {preview(it.error, 64)}",
    StepFinish: lambda it: f"{it.step:g}",
    Finish: lambda it: it.reason,
    RunError: lambda it: preview(it.error) + (f" ({it.code})" if it.code else ""),
}

ACTION_KINDS = tuple(str(kind.__struct_config__.tag) for kind in _WORDS)
"""Every wire name of what can happen."""


def action_kind(action: SessionAction) -> str:
    """The wire name of what happened: the action's own, or that of the stream part it carries."""
    what = action.part if isinstance(action, Part) else action
    return str(what.__struct_config__.tag)


def action_text(action: SessionAction) -> str:
    """What happened, in a few words; a nested one begins with the delegate call it belongs to."""
    if isinstance(action, Part):
        inside = f"in {action.within}: " if action.within is not None else ""
        return inside + _WORDS[type(action.part)](action.part)
    return _WORDS[type(action)](action)


def row_text(row: LoggedAction) -> str:
    """What happened, and by whom and why where the envelope says so; and in how many places it was redacted."""
    meta = row.meta or {}
    reason, redacted = meta.get("reason"), meta.get("redacted")
    settled = type(row.action) is Stop and row.actor == SETTLER
    who = "settled: nobody ran it any more" if settled else f"by {row.actor}" if row.actor else ""
    why = preview(reason, 64) if isinstance(reason, str) else ""
    said = (action_text(row.action), who, why, f"{redacted} redacted" if type(redacted) is int else "")
    return ", ".join(word for word in said if word)


# ---- messages and states --------------------------------------------------------------------------------


def state_lines(state: SessionState, last: int = 0) -> Iterator[Line]:
    """A conversation as a person reads it: who said what, each call with where it is and what came back. ``last``: only
    so many messages, the newest."""
    for message in state.messages[-last:]:
        yield from message_lines(message)
    if state.error is not None:
        yield line(state.error.message, lead=("error     ", "bold red"))


def message_lines(message: AgentMessage, indent: int = 0) -> Iterator[Line]:
    """One message: the speaker before its first part, the messages of a nested run under their call."""
    name, style = _SPEAKER[message.role]
    if not message.parts:
        yield line(("(nothing yet)", "dim"), indent=indent, lead=(name, style))
    for place, part in enumerate(message.parts):
        lead = (" " * len(name), "") if place else (name, style)
        yield line(*_part_spans(part), indent=indent, lead=lead)
        if isinstance(part, ToolPart) and part.agent is not None:
            for nested in part.agent.messages:
                yield from message_lines(nested, indent + len(name) + 2)


def _part_spans(part: AgentPart) -> Iterable[str | tuple[str, str]]:
    match part:
        case TextPart():
            return [preview(part.text, 400)]
        case ReasoningPart():
            return [("thinks: " + preview(part.text, 120), "dim italic")]
        case ToolPart():
            return _call_spans(part)


def _call_spans(part: ToolPart) -> Iterable[str | tuple[str, str]]:
    yield (part.name, "bold")
    yield f" {value_text(part.input, 48)} "
    yield (f"[{part.state}]", STATE_STYLES[part.state])
    if part.prompt is not None:
        yield f" asks: {preview(part.prompt, 60)}"
    if part.output is not UNSET:
        yield f" → {value_text(part.output, 60)}"
    if part.error is not None:
        yield f" → {preview(part.error, 60)}"
