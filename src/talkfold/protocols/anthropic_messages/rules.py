"""Anthropic's rules for messages: as limits that healing keeps, and as a checker of finished requests.

The rules are those whose breach the API answers with status 400: the schema of the API reference, "`tool_use`
ids were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found in
`tool_result` blocks", "`tool_use` ids must be unique", "text content blocks must contain non-whitespace
text", "content cannot be empty if `is_error` is true", "all content must be type text if `is_error` is true",
"the final block in an assistant message cannot be `thinking`", "final assistant content cannot end with
trailing whitespace".
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec import Struct

from ...healing import Rules, Violation
from ...json_values import fits_unicode, is_list, is_object
from ...model import Json

__all__ = ("ANTHROPIC", "IMAGE_TYPES", "THINKING", "check_anthropic", "is_base64")

ANTHROPIC = Rules(
    illegal_in_id="[^a-zA-Z0-9_-]",
    id_length=None,
    illegal_in_name="[^a-zA-Z0-9_-]",
    name_length=128,
    object_input=True,
)

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
THINKING = ("thinking", "redacted_thinking")

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_BLOCKS_OF = {
    "user": ("text", "image", "tool_result"),
    "assistant": ("text", "tool_use", *THINKING),
}


def is_base64(data: Json) -> bool:
    """Whether a value is base64 of something: the standard alphabet, padded, not empty (RFC 4648, 4)."""
    try:
        return isinstance(data, str) and bool(b64decode(data, validate=True))
    except ValueError:
        return False


class _Message(Struct, frozen=True):
    path: str
    role: str
    blocks: list[dict[str, Json]]

    def ids(self, kind: str, field: str) -> list[str]:
        """The call ids in its blocks of one kind."""
        found = (block.get(field) for block in self.blocks if block.get("type") == kind)
        return [call_id for call_id in found if isinstance(call_id, str)]


def check_anthropic(request: Mapping[str, Json]) -> tuple[Violation, ...]:
    """Which rules a request ``{system?, messages}`` breaks: none when the provider takes it. Never raises."""
    found = [*_system(request)]
    messages = request.get("messages")
    if not is_list(messages) or not messages:
        return (*found, Violation("not-empty", "$.messages", "a list of messages that is not empty"))
    row = [_message(message, f"$.messages[{index}]") for index, message in enumerate(messages)]
    found += [violation for check in _WHOLE for violation in check(row)]
    for message in row:
        for number, block in enumerate(message.blocks):
            found += _block(block, _BLOCKS_OF.get(message.role, ()), f"{message.path}.content[{number}]")
    return tuple(found)


def _message(message: Json, path: str) -> _Message:
    body = message if is_object(message) else {}
    return _Message(path, str(body.get("role")), _blocks(body.get("content")))


def _blocks(content: Json) -> list[dict[str, Json]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block if is_object(block) else {} for block in content] if is_list(content) else []


# ---- one check for each rule over the whole row -----------------------------------------------------------


def _system(request: Mapping[str, Json]) -> Iterator[Violation]:
    system = request.get("system", "none")
    if not isinstance(system, str) or not system.strip():
        yield Violation("system", "$.system", "a text that is not blank")
    elif fits_unicode(system) is not system:
        yield Violation("unicode", "$.system", "a lone half of a UTF-16 pair")


def _roles(row: list[_Message]) -> Iterator[Violation]:
    for before, message in zip([None, *row], row, strict=False):
        if message.role not in _BLOCKS_OF:
            yield Violation("role", message.path, f"unknown role {message.role!r}")
        if message.role == ("assistant" if before is None else before.role):
            yield Violation("alternate", message.path, "the user is first, then the roles alternate")


def _contents(row: list[_Message]) -> Iterator[Violation]:
    for message in row:
        if not message.blocks:
            yield Violation("content", f"{message.path}.content", "a text or a list of blocks, not empty")
        if fits_unicode(message.blocks) is not message.blocks:
            yield Violation("unicode", message.path, "a lone half of a UTF-16 pair")


def _pairs(row: list[_Message]) -> Iterator[Violation]:
    """Results stand at the start of the message after their calls: each once, and none anywhere else."""
    nothing = _Message(row[-1].path, "user", [])
    for before, message in zip([nothing, *row], [*row, nothing], strict=True):
        calls, results = before.ids("tool_use", "id"), Counter(message.ids("tool_result", "tool_use_id"))
        for call_id in calls:
            if results[call_id] != 1:
                text = f"the call {call_id!r} needs exactly one result in the next message"
                yield Violation("call-without-result", before.path, text)
        for call_id in results.keys() - set(calls):
            text = f"the message before makes no call {call_id!r}"
            yield Violation("result-without-call", message.path, text)
        kinds = [block.get("type") == "tool_result" for block in message.blocks]
        if kinds != sorted(kinds, reverse=True):
            yield Violation("results-first", message.path, "something stands before a result")


def _unique(row: list[_Message]) -> Iterator[Violation]:
    seen: set[str] = set()
    for message in row:
        for call_id in message.ids("tool_use", "id"):
            if call_id in seen:
                yield Violation("id-unique", message.path, f"another call has the id {call_id!r}")
            seen.add(call_id)


def _ends(row: list[_Message]) -> Iterator[Violation]:
    for message in row:
        if message.role == "assistant" and message.blocks and message.blocks[-1].get("type") in THINKING:
            yield Violation("thinking-last", message.path, "a message ends with thinking")
    last = row[-1]
    text = last.blocks[-1].get("text") if last.blocks else None
    if last.role == "assistant" and isinstance(text, str) and text != text.rstrip():
        yield Violation("trailing-space", last.path, "the last message of the assistant ends with white space")


_WHOLE = (_roles, _contents, _pairs, _unique, _ends)


# ---- one check for each kind of block ---------------------------------------------------------------------


def _block(block: dict[str, Json], known: Collection[str], place: str) -> Iterator[Violation]:
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in known:
        yield Violation("block", place, f"no block {kind!r} may stand here")
    else:
        yield from _CHECKS[kind](block, place)


def _text(block: dict[str, Json], place: str) -> Iterator[Violation]:
    text = block.get("text")
    if not isinstance(text, str) or not text.strip():
        yield Violation("blank-text", place, "a text that is not blank")


def _thinking(block: dict[str, Json], place: str) -> Iterator[Violation]:
    signature = block.get("signature")
    if not isinstance(block.get("thinking"), str) or not isinstance(signature, str) or not signature:
        yield Violation("signature", place, "thinking has a text and a signature")


def _redacted(block: dict[str, Json], place: str) -> Iterator[Violation]:
    data = block.get("data")
    if not isinstance(data, str) or not data:
        yield Violation("signature", place, "redacted thinking has its data")


def _tool_use(block: dict[str, Json], place: str) -> Iterator[Violation]:
    call_id, name = block.get("id"), block.get("name")
    if not isinstance(call_id, str) or _ID.fullmatch(call_id) is None:
        yield Violation("id", f"{place}.id", "one or more of a-z, A-Z, 0-9, _ and -")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        yield Violation("name", f"{place}.name", "1 to 128 of a-z, A-Z, 0-9, _ and -")
    if not isinstance(block.get("input"), dict):
        yield Violation("input", f"{place}.input", "an object")


def _tool_result(block: dict[str, Json], place: str) -> Iterator[Violation]:
    inner = _blocks(block.get("content"))
    for number, part in enumerate(inner):
        yield from _block(part, ("text", "image"), f"{place}.content[{number}]")
    if block.get("is_error") is True:
        if not inner:
            yield Violation("error-text", place, "a failure has a text")
        if any(part.get("type") != "text" for part in inner):
            yield Violation("error-text", place, "a failure has nothing but text")


def _image(block: dict[str, Json], place: str) -> Iterator[Violation]:
    source = block.get("source")
    fields = source if is_object(source) else {}
    if fields.get("type") != "base64":
        return
    if fields.get("media_type") not in IMAGE_TYPES:
        yield Violation("image", place, f"one of {', '.join(IMAGE_TYPES)}")
    if not is_base64(fields.get("data")):
        yield Violation("image", f"{place}.source.data", "base64 that is not empty")


_CHECKS: Mapping[str, Callable[[dict[str, Json], str], Iterator[Violation]]] = {
    "text": _text,
    "image": _image,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}
