"""A healed conversation as the turns that providers know, and the outcome of a call as they take it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..json_values import is_list, is_object, json_text
from ..model import AgentMessage, AgentPart, Json, ReasoningPart, TextPart, ToolPart

__all__ = ("Step", "outcome_blocks", "outcome_failed", "outcome_text", "said", "steps")


class Step(Struct, frozen=True):
    """One answer of the model: what it said and thought, in order, and then the calls it made together."""

    lead: tuple[TextPart | ReasoningPart, ...]
    calls: tuple[ToolPart, ...]


def steps(parts: Iterable[AgentPart]) -> Iterator[Step]:
    """An assistant message cut into model steps: what follows a call opens the next one."""
    lead: list[TextPart | ReasoningPart] = []
    calls: list[ToolPart] = []
    for part in parts:
        if isinstance(part, ToolPart):
            calls.append(part)
            continue
        if calls:
            yield Step(tuple(lead), tuple(calls))
            lead, calls = [], []
        lead.append(part)
    if lead or calls:
        yield Step(tuple(lead), tuple(calls))


def said(message: AgentMessage) -> str:
    """What a message of the person says."""
    return "\n".join(part.text for part in message.parts if isinstance(part, TextPart))


def outcome_blocks(call: ToolPart) -> tuple[dict[str, Json], ...]:
    """The outcome of a healed call as content blocks of the Model Context Protocol.

    A done call has its output's ``content``; ``structuredContent`` repeats it for programs, so it is taken
    only when there is no content. An output of another form is one text block: itself, or its JSON.
    """
    if call.state != "done":
        return (_text_block(call.error or ""),)
    output: Json = call.output
    if is_object(output) and is_list(content := output.get("content")):
        if not content and "structuredContent" in output:
            return (_text_block(json_text(output["structuredContent"])),)
        return tuple(map(_block, content))
    return (_block(output),)


def _block(value: Json) -> dict[str, Json]:
    if isinstance(value, str):
        return _text_block(value)
    if is_object(value) and isinstance(kind := value.get("type"), str):
        if kind != "text" or isinstance(value.get("text"), str):
            return value
    return _text_block(json_text(value))


def _text_block(text: str) -> dict[str, Json]:
    return {"type": "text", "text": text}


def outcome_text(call: ToolPart) -> str:
    """The outcome as one text: a line for each block, its text or (an image, say) its JSON."""
    return "\n".join(block["text"] if block["type"] == "text" else json_text(block) for block in outcome_blocks(call))


def outcome_failed(call: ToolPart) -> bool:
    """Whether the outcome is a failure to the model: no result, an error, or ``isError`` in the output."""
    return call.state != "done" or (is_object(call.output) and call.output.get("isError") is True)
