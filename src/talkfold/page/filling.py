"""The templates, and how values are put into them: escaped, with nothing unseen, and nothing of a log as markup."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ..model import AgentPart, ReasoningPart, TextPart, ToolPart
from ..resumable import DropReason
from .room import output_text
from .steps import Step
from .visible import first_words, marked, visible
from .words import clock, day, duration, hour

__all__ = ("environment",)

_TEMPLATES = files(__package__ or "talkfold.page") / "templates"

_WHY: Mapping[DropReason, str] = {
    "open-call": "the call had not finished",
    "cancelled-call": "the call was cancelled",
    "reply-cut-short": "it comes after the last finished call; the model writes it anew",
    "reasoning-after-last-call": "it belongs to a step that is done again",
    "empty-message": "the message had nothing in it yet",
}


@cache
def environment() -> Environment:
    """The templates, ready to be filled; read once."""
    style, script = _source("style.css"), _source("script.js")
    made = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    # The page's own text, the only one that is not escaped; its hashes are the only ones that the policy lets through.
    own: dict[str, Any] = {
        "policy": _policy(style, script),
        "style": Markup(style),
        "script": Markup(script),
        "why": _WHY,
    }
    made.globals.update(own)
    made.filters.update(_FILTERS)
    return made


def _source(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """What a browser may do with the page: nothing but its own style and its own script."""
    hashed = [b64encode(sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashed[0]}'; script-src 'sha256-{hashed[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _span(step: Step) -> str:
    return str(step.first) if step.first == step.last else f"{step.first}-{step.last}"


def _part_words(part: AgentPart | None) -> str:
    """A part in a few words."""
    match part:
        case None:
            return "an empty message"
        case ToolPart():
            return f"{first_words(part.name, 80)} {first_words(output_text(part.input), 100)} [{part.state}]"
        case TextPart() | ReasoningPart():
            return first_words(part.text)


_FILTERS: dict[str, Any] = {
    "clock": clock,
    "count": _count,
    "day": day,
    "duration": duration,
    "first_words": first_words,
    "hour": hour,
    "marked": marked,
    "part_words": _part_words,
    "span": _span,
}
