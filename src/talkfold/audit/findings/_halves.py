"""Halves of UTF-16 pairs: whether a value carries one alone, and texts whose halves come in two deltas."""

from __future__ import annotations

import re
from typing import cast

from ..._utf16 import joined
from ...actions import Part, Reasoning, RunError, Send, SessionAction, ToolCall, ToolError, ToolPhase, ToolResult
from ...model import UNSET
from ._conversation import Message
from ._telling import Telling

__all__ = ("Halves", "carries_half", "find_half")

find_half = re.compile("[\ud800-\udfff]").search
"""Half of a pair in a text in which all pairs are joined."""


def carries_half(action: SessionAction) -> bool:
    """Whether a text in an action has half of a pair alone. Deltas are not looked at: theirs may be halves of one."""
    match action:
        case Send(_, text):
            return _has_half(text)
        case Part(Reasoning(_, text, metadata)):
            return _has_half(text) or _has_half(metadata)
        case Part(ToolCall(provider_metadata=metadata) as call):
            return _has_half(call.input) or _has_half(metadata)
        case Part(ToolResult(_, output)):
            return _has_half(output)
        case Part(ToolError(_, error)) | Part(RunError(error)):
            return _has_half(error)
        case ToolPhase(prompt=str(prompt)):
            return _has_half(prompt)
        case _:
            return False


def _has_half(value: object) -> bool:
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if not item.isascii() and find_half(joined(item)):
                return True
        elif isinstance(item, dict):
            for key, inner in cast("dict[object, object]", item).items():
                stack += (key, inner)
        elif isinstance(item, list):
            stack += cast("list[object]", item)
        elif item is UNSET:
            continue
    return False


class Halves:
    """Texts that end with the first half of a pair: the next delta of their message may bring the other."""

    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._open: dict[Message, int] = {}

    def delta(self, message: Message, delta: str, number: int) -> bool:
        """More text for a message; whether the other half of its end may still come."""
        before = self._open.pop(message, None) if self._open else None
        if delta.isascii():
            if before is not None:
                self._tell(message, before)
            return False
        text = joined(delta)
        if before is not None:
            if "\udc00" <= text[0] <= "\udfff":
                text = text[1:]
            else:
                self._tell(message, before)
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._open[message] = number
            text = text[:-1]
        if find_half(text):
            self._tell(message, number)
        return message in self._open

    def part(self, message: Message) -> None:
        """Something else than text was added to a message: its text is closed."""
        if self._open and (before := self._open.pop(message, None)) is not None:
            self._tell(message, before)

    def close(self) -> None:
        """Nothing more comes for any text."""
        for message, number in self._open.items():
            self._tell(message, number)
        self._open.clear()

    def left(self) -> tuple[tuple[str, int], ...]:
        """The messages whose texts are such, and the actions that brought the halves."""
        return tuple((message.id, number) for message, number in self._open.items())

    def _tell(self, message: Message, number: int) -> None:
        self._telling.tell("lone-surrogate", (number,), message_id=message.id)
