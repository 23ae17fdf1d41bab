"""What happened in a step, in a few words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

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
from ..log import LoggedAction
from .room import output_text
from .visible import first_words

__all__ = ("clock", "day", "duration", "hour", "kind_of", "said")


def kind_of(action: SessionAction) -> str:
    """The wire name of what happened: the action's own, or that of the stream part it carries."""
    what = action.part if isinstance(action, Part) else action
    return str(what.__struct_config__.tag)


_SAID: dict[type, Callable[[Any], str]] = {
    Send: lambda it: it.text,
    ToolPhase: lambda it: f"{it.name} waits: {it.prompt or ''}" if it.state != "running" else f"{it.name} goes on",
    Stop: lambda _: "the run is stopped",
    Retry: lambda _: "the last turn is tried again",
    Reset: lambda _: "everything is taken away",
    MessageStart: lambda it: f"message {it.message_id} begins",
    TextDelta: lambda it: it.delta,
    Reasoning: lambda it: it.text,
    ToolCall: lambda it: f"{it.name} {output_text(it.input)}",
    ToolResult: lambda it: f"→ {output_text(it.output)}",
    ToolError: lambda it: f"→ {it.error}",
    StepFinish: lambda it: f"step {it.step} is over",
    Finish: lambda it: f"the run is over: {it.reason}",
    RunError: lambda it: f"the run failed: {it.error}" + (f" ({it.code})" if it.code else ""),
}


def said(row: LoggedAction) -> str:
    """What happened, by whom, and why where the envelope says so."""
    action = row.action
    what = action.part if isinstance(action, Part) else action
    words = first_words(_SAID[type(what)](what))
    reason = (row.meta or {}).get("reason")
    who = f" · by {first_words(row.actor, 60)}" if row.actor else ""
    return words + who + (f" · {first_words(reason, 80)}" if isinstance(reason, str) else "")


def clock(time: int) -> str:
    """Milliseconds since 1970 as a date and a time of day in UTC, to the second; in seconds beyond the year 9999."""
    return _clock(time // 1000)


@lru_cache(maxsize=4096)  # a log has many rows in one second
def _clock(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(" ")[:19]
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s"


def day(time: int) -> str:
    """The date of a time; nothing beyond the year 9999."""
    told = clock(time)
    return told[:10] if told[-1] != "s" else ""


def hour(time: int) -> str:
    """The time of day of a time, to the second."""
    told = clock(time)
    return told[11:] if told[-1] != "s" else told


def duration(ms: int) -> str:
    """Milliseconds as a person says them: ``0 ms``, ``1.25 s``, ``3 min 5 s``, ``2 h 10 min``."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.2f}".rstrip("0").rstrip(".") + " s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
