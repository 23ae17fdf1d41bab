"""A conversation as a request to Anthropic's Messages API.

First a flat row of content blocks, each with the role that says it; then the row is cut where the role
changes. That is all of "roles alternate": calls open an assistant message, their results begin the user
message after it, and what the person says next joins the same message behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

from msgspec import Struct

from ...healing import FAILED_SILENTLY, Healed, ProviderExport, heal, report
from ...json_values import fits_unicode, is_object, json_text
from ...model import AgentMessage, Json, ReasoningPart, Role, TextPart, ToolPart
from ..system_prompt import SystemPrompts, by_place
from ..turns import Step, outcome_blocks, outcome_failed, outcome_text, said, steps
from .rules import ANTHROPIC, IMAGE_TYPES, THINKING, is_base64

__all__ = ("to_anthropic",)

_NO_TEXT = "(no text)"
"""Stands for a message in which the person said nothing: the turn is theirs, so it must not vanish."""

_BEGINNING = "(The conversation begins with the assistant.)"
"""Stands before an assistant message that nobody asked for: the provider wants the user first."""


class _Block(Struct, frozen=True):
    role: Role
    message_id: str
    body: dict[str, Json]

    @property
    def is_result(self) -> bool:
        return bool(self.body["type"] == "tool_result")


def to_anthropic(messages: Iterable[AgentMessage], *, system: SystemPrompts = None) -> ProviderExport:
    """A conversation as ``{system?, messages}`` of a Messages request, healed.

    Signed thinking (``providerMetadata.anthropic.signature`` or ``.redactedData``) goes back in its place,
    other reasoning is left out. Nothing of another provider's metadata is sent. A conversation that ends with
    the assistant's text ends the request too: the model goes on from there (prefill; models without prefill
    refuse it). A conversation without anything to send gives no messages,
    and says so.
    """
    row = tuple(messages)
    healing = heal(row, ANTHROPIC)
    healed = list(healing.healed)
    beside = _system(system, row, healed)
    blocks = [block for message in healing.messages for block in _message(message, healed)]
    blocks = _without_last_thinking(blocks, healed)
    blocks = _user_first(blocks, healed)
    _report_merged(blocks, healed)
    blocks = _without_trailing_space(blocks, healed)
    out: list[dict[str, Json]] = [
        {"role": role, "content": [block.body for block in group]}
        for role, group in groupby(blocks, key=lambda block: block.role)
    ]
    if not out:
        healed.append(report("nothing-to-send", ""))
    return ProviderExport(out, tuple(healed), beside)


def _system(system: SystemPrompts, row: tuple[AgentMessage, ...], healed: list[Healed]) -> str | None:
    prompts = [prompt for place in by_place(system, row, healed).values() for prompt in place]
    healed += [report("system-moved", prompt.after) for prompt in prompts if prompt.after is not None]
    texts = [prompt.text for prompt in prompts if prompt.text.strip()]
    return "\n\n".join(texts) or None


# ---- messages as blocks -----------------------------------------------------------------------------------


def _message(message: AgentMessage, healed: list[Healed]) -> list[_Block]:
    if message.role == "user":
        return [_person(message, healed)]
    blocks = [block for step in steps(message.parts) for block in _step(step, message.id, healed)]
    if not blocks:
        healed.append(report("empty-message", message.id))
    return blocks


def _person(message: AgentMessage, healed: list[Healed]) -> _Block:
    text = said(message)
    if not text.strip():
        healed.append(report("empty-text", message.id, to=f"sent as {_NO_TEXT}"))
        text = _NO_TEXT
    return _Block("user", message.id, {"type": "text", "text": text})


def _step(step: Step, message_id: str, healed: list[Healed]) -> Iterator[_Block]:
    for part in step.lead:
        body = _text(part) if isinstance(part, TextPart) else _thinking(part)
        if body is None:
            blank = isinstance(part, TextPart)
            healed.append(
                report("empty-text", message_id, to="left out") if blank else report("unsigned-reasoning", message_id)
            )
        else:
            yield _Block("assistant", message_id, body)
    for call in step.calls:
        use = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
        yield _Block("assistant", message_id, use)
    for call in step.calls:
        yield _Block("user", message_id, _result(call, message_id, healed))


def _text(part: TextPart) -> dict[str, Json] | None:
    return {"type": "text", "text": part.text} if part.text.strip() else None


def _thinking(part: ReasoningPart) -> dict[str, Json] | None:
    """Thinking that carries the provider's own proof; a block without it is refused.

    So is one whose text is not what was signed: thinking is sent as it stands or not at all.
    """
    metadata = part.provider_metadata
    own = metadata.get("anthropic") if is_object(metadata) else None
    match own:
        case {"signature": str(signature)} if signature:
            body = {"type": "thinking", "thinking": part.text, "signature": signature}
        case {"redactedData": str(data)} if data:
            body = {"type": "redacted_thinking", "data": data}
        case _:
            return None
    return body if fits_unicode(body) is body else None


def _result(call: ToolPart, message_id: str, healed: list[Healed]) -> dict[str, Json]:
    result: dict[str, Json] = {"type": "tool_result", "tool_use_id": call.id}
    failed = outcome_failed(call)
    if any(block["type"] == "image" and not _is_picture(block) for block in outcome_blocks(call)):
        healed.append(report("illegal-picture", message_id, call.id))
    # Pictures travel as pictures, but a failure may hold nothing but text.
    content: Json = outcome_text(call) if failed or not _shows(call) else _pictures(call)
    if isinstance(content, str) and not content.strip():
        if failed:
            healed.append(report("no-error-text", message_id, call.id))
        elif content:
            healed.append(report("empty-text", message_id, call.id, to="left out"))
        content = FAILED_SILENTLY if failed else None
    if content is not None:
        result["content"] = content
    return {**result, "is_error": True} if failed else result


def _shows(call: ToolPart) -> bool:
    return any(map(_is_picture, outcome_blocks(call)))


def _is_picture(block: dict[str, Json]) -> bool:
    return block["type"] == "image" and block.get("mimeType") in IMAGE_TYPES and is_base64(block.get("data"))


def _pictures(call: ToolPart) -> list[dict[str, Json]]:
    return [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": block["mimeType"], "data": block["data"]},
        }
        if _is_picture(block)
        else {"type": "text", "text": block["text"] if block["type"] == "text" else json_text(block)}
        for block in outcome_blocks(call)
        if block["type"] != "text" or block["text"].strip()
    ]


# ---- rules over the whole row -----------------------------------------------------------------------------


def _without_last_thinking(blocks: list[_Block], healed: list[Healed]) -> list[_Block]:
    """No message ends with thinking: it goes where a message of the person, or nothing, follows."""
    kept: list[_Block] = []
    for block in reversed(blocks):
        ends = not kept or kept[-1].role == "user"
        if ends and block.body["type"] in THINKING:
            healed.append(report("thinking-at-end", block.message_id))
        else:
            kept.append(block)
    return kept[::-1]


def _user_first(blocks: list[_Block], healed: list[Healed]) -> list[_Block]:
    if not blocks or blocks[0].role == "user":
        return blocks
    first = blocks[0].message_id
    healed.append(report("assistant-first", first))
    return [_Block("user", first, {"type": "text", "text": _BEGINNING}), *blocks]


def _report_merged(blocks: list[_Block], healed: list[Healed]) -> None:
    # The person's words behind results are this API's usual form; only messages of their own kind are merged.
    healed += [
        report("turns-merged", b.message_id)
        for a, b in pairwise(blocks)
        if a.role == b.role and a.message_id != b.message_id and not a.is_result
    ]


def _without_trailing_space(blocks: list[_Block], healed: list[Healed]) -> list[_Block]:
    if not blocks or blocks[-1].role == "user":
        return blocks
    *before, last = blocks
    text = last.body["text"].rstrip()
    if text == last.body["text"]:
        return blocks
    healed.append(report("trailing-space", last.message_id))
    return [*before, _Block("assistant", last.message_id, {"type": "text", "text": text})]
