"""A diff in words, one line a change: ``describe(diff)``, for terminals and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Struct

from ..errors import TooDeep
from ..json_values import json_text
from ..model import AgentMessage, AgentPart, AgentRun, Json, ReasoningPart, SessionError, TextPart, ToolPart
from .edits import EditText, JsonEdit, OrderKeys, SetValue, SpliceArray, TextEdit, common_start
from .operations import (
    ChangeCall,
    Changed,
    ChangeMessage,
    ChangeReasoning,
    ChangeText,
    Diff,
    InsertMessage,
    InsertPart,
    LevelDiff,
    MoveMessage,
    MovePart,
    RemoveMessage,
    RemovePart,
)

__all__ = ("EXCERPT", "Line", "describe")

EXCERPT = 80
"""The longest excerpt, in code points."""

_CONTEXT = 6
"""How much of what two long texts have in common is shown before they differ: few, for each may need an escape."""

_NEAR = 2
"""How many delegate calls around a change are named, the innermost ones."""


class Line(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One change: what kind, where, and an excerpt of what was there and of what is there now.

    Excerpts are one line of at most ``EXCERPT`` code points; control characters and halves of characters are spelled
    as escapes, so they are safe on a terminal. Not set: there was nothing, or is nothing, or an excerpt says nothing.
    """

    kind: str
    where: str
    before: str | None = None
    after: str | None = None


def describe(diff: Diff) -> Iterator[Line]:
    """The changes as lines, in the order of the conversation; nested runs after what is around them.

    Places are counted from 1: those of new and moved entries in the row after, the others in the row before.
    """
    if diff.status is not None:
        yield Line("status", "session status", *_words(diff.status))
    if diff.error is not None:
        yield Line("error", "session error", _error(diff.error.before), _error(diff.error.after))
    for number, level in enumerate(diff.levels):
        around = _around(diff.levels, number)
        for operation in level.messages:
            yield from _MESSAGES[type(operation)](around, operation)


def _around(levels: Sequence[LevelDiff], number: int) -> str:
    """The delegate calls around a level, in words; the innermost few of them."""
    names: list[str] = []
    call = levels[number].call
    while call is not None and len(names) < _NEAR:
        names.append(f"{call.name} {_quoted(call.id)}")
        call = levels[call.level].call
    if call is not None:
        names.append("…")
    return "".join(f"{name} > " for name in reversed(names))


# ---- messages ---------------------------------------------------------------------------------------------


def _message_gone(around: str, change: RemoveMessage) -> Iterator[Line]:
    where = _message(around, change.at, change.message.role, change.message.id)
    yield Line("message-removed", where, before=_spoken(change.message))


def _message_came(around: str, change: InsertMessage) -> Iterator[Line]:
    where = _message(around, change.to, change.message.role, change.message.id)
    yield Line("message-added", where, after=_spoken(change.message))


def _message_moved(around: str, change: MoveMessage) -> Iterator[Line]:
    where = _message(around, change.to, change.role, change.id)
    yield Line("message-moved", where, f"message {change.at + 1}", f"message {change.to + 1}")


def _message_changed(around: str, change: ChangeMessage) -> Iterator[Line]:
    where = _message(around, change.at, change.role, change.id)
    for part in change.parts:
        yield from _PARTS[type(part)](where, part)


def _message(around: str, at: int, role: str, message_id: str) -> str:
    return f"{around}message {at + 1} ({role} {_quoted(message_id)})"


def _spoken(message: AgentMessage) -> str:
    """What a message says, its parts one after the other, as far as an excerpt goes."""
    said = ""
    for part in message.parts:
        said += (" · " if said else "") + _content(part)
        if len(said) > EXCERPT:
            break
    return _excerpt(said)


# ---- parts ------------------------------------------------------------------------------------------------


def _part_gone(where: str, change: RemovePart) -> Iterator[Line]:
    yield Line(f"{_kind(change.part)}-removed", where, before=_excerpt(_content(change.part)))


def _part_came(where: str, change: InsertPart) -> Iterator[Line]:
    yield Line(f"{_kind(change.part)}-added", where, after=_excerpt(_content(change.part)))


def _part_moved(where: str, change: MovePart) -> Iterator[Line]:
    yield Line("call-moved", f"{where}, call {_quoted(change.id)}", f"part {change.at + 1}", f"part {change.to + 1}")


def _text_changed(where: str, change: ChangeText) -> Iterator[Line]:
    yield from _texts("text", f"{where}, part {change.at + 1}", change.edits)


def _reasoning_changed(where: str, change: ChangeReasoning) -> Iterator[Line]:
    where = f"{where}, part {change.at + 1}"
    yield from _texts("reasoning", where, change.edits)
    yield from _values("reasoning-metadata", f"{where}, provider metadata", change.provider_metadata)


def _call_changed(where: str, change: ChangeCall) -> Iterator[Line]:
    where = f"{where}, call {change.name} {_quoted(change.id)}"
    words = {"name": change.renamed, "state": change.state, "error": change.error, "prompt": change.prompt}
    values = {"input": change.input, "output": change.output, "metadata": change.provider_metadata}
    for field, word in words.items():
        if word is not None:
            yield Line(f"call-{field}", f"{where}, {field}", *_words(word))
    for field, edits in values.items():
        yield from _values(f"call-{field}", f"{where}, {field}", edits)
    if change.agent is not None:
        yield Line("call-run", f"{where}, nested run", _run(change.agent.before), _run(change.agent.after))


def _kind(part: AgentPart) -> str:
    return _KINDS[type(part)]


def _content(part: AgentPart) -> str:
    if not isinstance(part, ToolPart):
        return part.text[: 2 * EXCERPT]
    return f"{part.name} {_quoted(part.id)} {part.state} {_value(part.input)[: 2 * EXCERPT]}"


def _run(run: AgentRun | None) -> str | None:
    return None if run is None else f"{_excerpt(run.id)}, {len(run.messages)} messages"


# ---- texts and values -------------------------------------------------------------------------------------


def _texts(kind: str, where: str, edits: Sequence[TextEdit]) -> Iterator[Line]:
    for edit in edits:
        yield Line(kind, f"{where}, at {edit.at}", *_pair(edit.removed or None, edit.inserted or None))


def _values(kind: str, where: str, edits: Sequence[JsonEdit]) -> Iterator[Line]:
    for edit in edits:
        place = f"{where} {_excerpt(edit.path)}" if edit.path else where
        if isinstance(edit, SetValue):
            yield Line(kind, place, *_pair(_maybe(edit.before), _maybe(edit.after)))
        elif isinstance(edit, EditText):
            yield from _texts(kind, place, edit.edits)
        elif isinstance(edit, SpliceArray):
            items = ([*edit.removed] or UNSET, [*edit.inserted] or UNSET)
            yield Line(kind, f"{place}, items from {edit.at + 1}", *_pair(*map(_maybe, items)))
        else:
            yield from _order(kind, place, edit)


def _order(kind: str, place: str, edit: OrderKeys) -> Iterator[Line]:
    yield Line(kind, f"{place}, order of keys", *_pair(", ".join(edit.before), ", ".join(edit.after)))


def _words(word: Changed) -> tuple[str | None, str | None]:
    return _pair(word.before, word.after)


def _error(error: SessionError | None) -> str | None:
    return None if error is None else _excerpt(f"{error.message} ({error.code})" if error.code else error.message)


def _maybe(value: Json) -> str | None:
    return None if value is UNSET else _value(value)


def _value(value: Json) -> str:
    try:
        return json_text(value)
    except TooDeep:
        return "…"


def _pair(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    """Excerpts of both. Of long texts that begin alike, from shortly before they differ."""
    start = 0
    if before is not None and after is not None and max(len(before), len(after)) > EXCERPT:
        start = max(common_start(before, after) - _CONTEXT, 0)
    return (
        None if before is None else _excerpt(before, start),
        None if after is None else _excerpt(after, start),
    )


def _quoted(text: str) -> str:
    return f'"{_excerpt(text)}"'


def _excerpt(text: str, start: int = 0) -> str:
    """One line of printable characters, cut where it is long."""
    cut = text[start : start + EXCERPT]
    shown = ("…" if start else "") + _shown(cut)
    return shown if start + len(cut) == len(text) and len(shown) <= EXCERPT else f"{shown[: EXCERPT - 1]}…"


def _shown(text: str) -> str:
    return text if text.isprintable() else "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    return _ESCAPES.get(character) or (
        f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\u{{{ord(character):x}}}"
    )


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_KINDS: Mapping[type, str] = {TextPart: "text", ReasoningPart: "reasoning", ToolPart: "call"}

_Teller: TypeAlias = "Callable[[str, Any], Iterator[Line]]"
_MESSAGES: Mapping[type, _Teller] = {
    RemoveMessage: _message_gone,
    InsertMessage: _message_came,
    MoveMessage: _message_moved,
    ChangeMessage: _message_changed,
}
_PARTS: Mapping[type, _Teller] = {
    RemovePart: _part_gone,
    InsertPart: _part_came,
    MovePart: _part_moved,
    ChangeText: _text_changed,
    ChangeReasoning: _reasoning_changed,
    ChangeCall: _call_changed,
}
