"""A difference for people: where something changed, and after ``-`` and ``+`` what was there before and is there now.

The words are those of ``audit.describe``; texts are shown with what stands around a change, whole words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from ..audit.edits import TextEdit
from ..audit.operations import ChangeMessage, ChangeReasoning, ChangeText, Diff
from ..audit.view import describe
from ..model import AgentMessage, AgentPart, ReasoningPart, SessionState, TextPart, ToolPart
from .output import Line, line

__all__ = ("change_lines", "changes")

_AROUND = 30
"""About how many characters of a text are shown before and after what changed in it."""

_LONGEST = 400
"""The longest stretch that is shown of a text that came or went."""

_WHOLE = {"message-added": " is new", "message-removed": " is gone", "message-moved": " has moved"}
"""What is said of a whole message; of everything else the marks say enough."""

_Spans: TypeAlias = "list[tuple[str, str]]"


def changes(difference: Diff) -> int:
    """How many changes there are."""
    return sum(1 for _ in describe(difference))


def change_lines(before: SessionState, difference: Diff, indent: int = 0) -> Iterator[Line]:
    """What the difference changes in the state before, line by line."""
    texts = _texts(before, difference)
    told = describe(difference)
    around = None
    for change in told:
        if change.kind in ("text", "reasoning"):
            text, edits = next(texts)
            places = [change.where, *(next(told).where for _ in edits[1:])]
            yield from _text_lines(text, edits, places, indent)
            around = None
            continue
        if change.where != around:
            yield line((change.where, "bold"), _WHOLE.get(change.kind, ""), indent=indent)
            around = change.where
        if change.before is not None:
            yield line((change.before, "red"), indent=indent + 2, lead=("- ", "red"))
        if change.after is not None:
            yield line((change.after, "green"), indent=indent + 2, lead=("+ ", "green"))


# ---- texts ----------------------------------------------------------------------------------------------


def _texts(before: SessionState, difference: Diff) -> Iterator[tuple[str, Sequence[TextEdit]]]:
    """Each text that is edited, as it was, with its edits; in the order of ``describe``."""
    rows: list[tuple[AgentMessage, ...]] = []
    for level in difference.levels:
        call = level.call
        row = before.messages if call is None else _run(rows[call.level][call.message].parts[call.part])
        rows.append(row)
        for message in level.messages:
            if isinstance(message, ChangeMessage):
                for part in message.parts:
                    if isinstance(part, ChangeText | ChangeReasoning) and part.edits:
                        yield _text(row[message.at].parts[part.at]), part.edits


def _run(part: AgentPart) -> tuple[AgentMessage, ...]:
    return part.agent.messages if isinstance(part, ToolPart) and part.agent is not None else ()


def _text(part: AgentPart) -> str:
    return part.text if isinstance(part, TextPart | ReasoningPart) else ""


def _text_lines(text: str, edits: Sequence[TextEdit], places: Sequence[str], indent: int) -> Iterator[Line]:
    """Edits that lie near each other in one pair of lines."""
    group: list[TextEdit] = []
    where = places[0]
    for edit, place in zip(edits, places, strict=True):
        if group and edit.at - (group[-1].at + len(group[-1].removed)) > 2 * _AROUND:
            yield from _group_lines(text, group, where, indent)
            group = []
        if not group:
            where = place
        group.append(edit)
    yield from _group_lines(text, group, where, indent)


def _group_lines(text: str, group: Sequence[TextEdit], where: str, indent: int) -> Iterator[Line]:
    yield line((where, "bold"), indent=indent)
    if any(edit.removed for edit in group):
        yield line(
            *_spans(text, group, ((it.removed, "bold red") for it in group)), indent=indent + 2, lead=("- ", "red")
        )
    if any(edit.inserted for edit in group):
        spans = _spans(text, group, ((it.inserted, "bold green") for it in group))
        yield line(*spans, indent=indent + 2, lead=("+ ", "green"))


def _spans(text: str, group: Sequence[TextEdit], stretches: Iterable[tuple[str, str]]) -> _Spans:
    """The stretches of one side, with what of the text stands before, between and after them."""
    start = _word_before(text, group[0].at)
    spans: _Spans = [("…", "dim")] if start else []
    at = start
    for edit, (stretch, style) in zip(group, stretches, strict=True):
        spans.append((text[at : edit.at], ""))
        spans.append((stretch if len(stretch) <= _LONGEST else stretch[:_LONGEST] + "…", style))
        at = edit.at + len(edit.removed)
    end = _word_after(text, at)
    return [*spans, (text[at:end], ""), ("…" if end < len(text) else "", "dim")]


def _word_before(text: str, at: int) -> int:
    start = max(at - _AROUND, 0)
    return text.find(" ", start, at) + 1 or start if start else 0


def _word_after(text: str, at: int) -> int:
    end = at + _AROUND
    if end >= len(text):
        return len(text)
    space = text.rfind(" ", at, end)
    return space if space > at else end
