"""A retry plan in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw, to_builtins

from ..codec import encode_messages
from ..model import Json, ReasoningPart, TextPart, ToolPart
from ..resumable import Dropped, DropReason, RetryPlan
from .output import Line, line, preview
from .wording import STATE_STYLES, count, message_lines, value_text

__all__ = ("plan_json", "plan_lines")

_WHY: dict[DropReason, str] = {
    "open-call": "the call had not finished",
    "cancelled-call": "the call was cancelled",
    "reply-cut-short": "comes after the last finished call; the model writes it anew",
    "reasoning-after-last-call": "it belongs to a step that is done again",
    "empty-message": "the message had nothing in it yet",
}


def plan_json(plan: RetryPlan) -> dict[str, Json]:
    """The plan as JSON: ``messages``, ``dropped`` with reasons, ``atRisk``."""
    return {
        "messages": Raw(encode_messages(plan.messages)),
        "dropped": to_builtins(plan.dropped),
        "atRisk": to_builtins(plan.at_risk),
    }


def plan_lines(plan: RetryPlan) -> Iterator[Line]:
    """The plan for people: what is sent, what is dropped and why, what may happen twice."""
    yield line(("Retry sends ", "bold"), f"{count(len(plan.messages), 'message')}:")
    for message in plan.messages:
        yield from message_lines(message, indent=2)
    if plan.dropped:
        yield line(("and drops ", "bold"), f"{count(len(plan.dropped), 'part')}:")
    for dropped in plan.dropped:
        why = (f"  ({_WHY[dropped.reason]})", "dim")
        yield line(_dropped_text(dropped), why, indent=2, lead=("- ", "red"))
    if plan.at_risk:
        calls = count(len(plan.at_risk), "finished call")
        yield line(("At risk: ", "bold yellow"), f"{calls} inside a dropped run may happen a second time:")
    for risk in plan.at_risk:
        call = risk.call
        yield line(
            f"{call.name} {value_text(call.input, 48)} ",
            (f"[{call.state}]", STATE_STYLES[call.state]),
            f" in {' > '.join(risk.path)}",
            indent=2,
            lead=("! ", "yellow"),
        )


def _dropped_text(dropped: Dropped) -> str:
    match dropped.part:
        case ToolPart() as call:
            return f"{call.name} {value_text(call.input, 48)} [{call.state}]"
        case TextPart() as text:
            return f"“{preview(text.text, 56)}”"
        case ReasoningPart() as reasoning:
            return f"reasoning: {preview(reasoning.text, 56)}"
        case None:
            return f"message {dropped.message_id}"
