"""The actions of one append without their secrets, a text that several deltas bring as one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..actions import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from ..log import Entry
from .bodies import redact_body
from .pieces import redact_pieces
from .rules import Redaction
from .values import may_change

__all__ = ("Cleared", "redact_actions")


class Cleared(Entry, frozen=True):
    """An entry that has been redacted already: a run redacts its own text, of which it sees more than one append."""


_SAYS: Mapping[type, str] = {
    Send: "text",
    ToolPhase: "prompt",
    Reasoning: "text",
    ToolCall: "input",
    ToolResult: "output",
    ToolError: "error",
    RunError: "error",
}
"""The field of each action and part that says something; of a text delta it is looked at with its neighbours."""

_TURNS = frozenset({Send, Retry, Reset})


def redact_actions(
    redaction: Redaction,
    actions: Sequence[SessionAction],
    bodies: Sequence[bytes],
    *,
    foreign: Sequence[bool],
    cleared: Sequence[bool],
) -> dict[int, tuple[bytes, int]]:
    """The bodies that change, by their index, each with how many places were redacted in it.

    ``foreign``: bodies that may hold more than their typed action; ``cleared``: those that are left alone. Raises
    RedactionFailed.
    """
    deltas, counts = _deltas(redaction, actions, cleared)
    made: dict[int, tuple[bytes, int]] = {}
    for index, action in enumerate(actions):
        if cleared[index]:
            continue
        delta = deltas.get(index)
        if delta is None and not foreign[index] and not _may_change(redaction, action):
            continue
        if delta is None and type(action) is Part and type(action.part) is TextDelta:
            delta = action.part.delta
        body, count = redact_body(redaction, bodies[index], delta)
        if body != bodies[index]:
            made[index] = (body, count + counts.get(index, 0))
    return made


def _may_change(redaction: Redaction, action: SessionAction) -> bool:
    """Whether something in a typed action may have to go, its delta aside."""
    said: SessionAction | AgentStreamPart = action.part if type(action) is Part else action
    name = _SAYS.get(type(said))
    if name is None:
        return False
    if type(said) is ToolCall and isinstance(said.provider_metadata, dict):
        return True
    return may_change(redaction, getattr(said, name))


def _deltas(
    redaction: Redaction, actions: Sequence[SessionAction], cleared: Sequence[bool]
) -> tuple[dict[int, str], dict[int, int]]:
    """The deltas that change, by index, and in how many places."""
    open_: dict[tuple[str | None, str], list[tuple[int, str]]] = {}
    texts: list[list[tuple[int, str]]] = []
    for index, action in enumerate(actions):
        if type(action) is not Part:
            if type(action) in _TURNS:
                open_.clear()
            continue
        part, within = action.part, action.within
        if type(part) is TextDelta:
            if cleared[index]:
                continue
            text = open_.get((within, part.message_id))
            if text is None:
                text = open_[within, part.message_id] = []
                texts.append(text)
            text.append((index, part.delta))
        elif type(part) is Reasoning or type(part) is ToolCall or type(part) is MessageStart:
            open_.pop((within, part.message_id), None)
        elif type(part) is Finish or type(part) is RunError:
            for key in [key for key in open_ if key[0] == within]:
                del open_[key]
    changed: dict[int, str] = {}
    counts: dict[int, int] = {}
    for text in texts:
        pieces = [delta for _, delta in text]
        if not redaction.may_change("".join(pieces)):
            continue
        found = redact_pieces(redaction, pieces)
        for (index, old), new, count in zip(text, pieces, found, strict=True):
            counts[index] = count
            if old != new:
                changed[index] = new
    return changed, counts
