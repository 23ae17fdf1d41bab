"""How much an action weighs while it waits in memory: about its characters, so that a few large parts hold whoever
makes them back as many small ones do."""

from __future__ import annotations

from ..actions import AgentStreamPart, Part, Reasoning, SessionAction, TextDelta, ToolCall, ToolError, ToolResult
from ..json_values import is_list, is_object
from ..model import Json

__all__ = ("weight",)


def weight(action: SessionAction) -> int:
    """The characters of its texts and of the strings in its free fields; 0 for what is always small."""
    part: AgentStreamPart | None = action.part if type(action) is Part else None
    match part:
        case TextDelta(delta=text):
            return _characters(text)
        case Reasoning(text=text, provider_metadata=free):
            return _characters(text) + _characters(free)
        case ToolCall(input=free):
            return _characters(free)
        case ToolResult(output=free) | ToolError(error=free):
            return _characters(free)
        case _:
            return 0


def _characters(value: Json) -> int:
    """The characters of all strings in a value; what is no JSON weighs nothing and is refused when it is written."""
    if isinstance(value, str):
        return len(value)
    found = 0
    left: list[Json] = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            found += len(each)
        elif is_object(each):
            left.extend(each)
            left.extend(each.values())
        elif is_list(each):
            left.extend(each)
    return found
