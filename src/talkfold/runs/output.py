"""What a tool call gives back: an MCP tool result, kept exactly as it came, or made from a Python value.

The form is that of ``CallToolResult`` in the Model Context Protocol: ``content`` (blocks for the model),
``isError``, ``structuredContent`` (any JSON) and ``_meta``. Whatever else a server puts there stays as well.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeGuard, cast

import msgspec
from msgspec import UNSET, Struct

from ..actions import ToolError, ToolResult
from ..codec import MAX_ACTION_BYTES, MAX_DEPTH, decode_json, encode_json
from ..errors import InvalidAction, NotJsonValue, TooDeep, TooLarge
from ..model import Json

__all__ = (
    "MAX_OUTPUT_BYTES",
    "MAX_OUTPUT_DEPTH",
    "ToolErrorCode",
    "ToolOutput",
    "error_output",
    "output_of",
    "tool_outcome",
)

ToolErrorCode: TypeAlias = Literal["not_found", "invalid_input", "failed", "timeout", "cancelled", "unavailable"]
"""Why a call gave no result: no such tool · arguments that do not fit · the tool raised · it took too long · the
person stopped it · what the tool runs in is gone (a server, a page, a thread that died)."""

MAX_OUTPUT_BYTES = MAX_ACTION_BYTES - 64 * 2**10
"""The largest output, in bytes of JSON: what fits into a logged action, with room for the call's id."""

MAX_OUTPUT_DEPTH = MAX_DEPTH - 2
"""How deep brackets may nest in an output: it lies two levels deep in its action."""


class ToolOutput(Struct, frozen=True):
    """A tool call's result. ``raw`` is the JSON object itself, with every field, block and key order kept.

    Raises InvalidAction, with the path, for an object that is no MCP result.
    """

    raw: dict[str, Json]

    def __post_init__(self) -> None:
        if (fault := _fault(self.raw)) is not None:
            raise InvalidAction("tool output", fault[1], fault[0])

    @classmethod
    def from_json(cls, data: bytes | str) -> ToolOutput:
        """An output from its JSON. Raises TooLarge, TooDeep, InvalidJson; InvalidAction for JSON that is no output."""
        return cls(decode_json(data, "tool output"))

    def to_json(self) -> bytes:
        """One line of JSON that reads back as the same output. Raises NotJsonValue, TooDeep, TooLarge."""
        return encode_json(self.raw, "tool output")

    @property
    def content(self) -> list[dict[str, Json]]:
        """The content blocks, known and unknown ones."""
        return cast("list[dict[str, Json]]", self.raw["content"])

    @property
    def text(self) -> str:
        """The text blocks as one text, a line end between two of them."""
        blocks = (block.get("text") for block in self.content if block.get("type") == "text")
        return "\n".join(text for text in blocks if isinstance(text, str))

    @property
    def is_error(self) -> bool:
        """Whether it says that the call failed."""
        return self.raw.get("isError") is True

    @property
    def structured_content(self) -> Json:
        """The result as data; ``UNSET`` when there is none, since ``None`` is the JSON value ``null``."""
        return self.raw.get("structuredContent", UNSET)

    @property
    def meta(self) -> dict[str, Json]:
        """What ``_meta`` holds: data for programs, not for the model."""
        return cast("dict[str, Json]", self.raw.get("_meta") or {})


def _fault(raw: object) -> tuple[str, str] | None:
    """The path of the first thing that is not as in an MCP result, and what it should be."""
    if not isinstance(raw, dict):
        return "$", "expected an object"
    fields = cast("dict[str, object]", raw)
    content = fields.get("content")
    if not isinstance(content, list):
        return "$.content", "expected an array of content blocks"
    for index, block in enumerate(cast("list[object]", content)):
        if not (isinstance(block, dict) and isinstance(cast("dict[str, object]", block).get("type"), str)):
            return f"$.content[{index}]", "expected an object with a type"
    if not isinstance(fields.get("isError", False), bool):
        return "$.isError", "expected true or false"
    if not isinstance(fields.get("_meta", {}), dict):
        return "$._meta", "expected an object"
    return None


def _is_result(value: object) -> TypeGuard[dict[str, Json]]:
    return isinstance(value, dict) and _fault(cast("object", value)) is None


def error_output(code: ToolErrorCode, text: str) -> ToolOutput:
    """The output of a call that gave no result: ``Error [code] text``, for the model to read.

    A page shows a call whose text starts with ``Error [cancelled]`` as cancelled, all others as failed.
    """
    return ToolOutput({"content": [_text_block(f"Error [{code}] {text}")], "isError": True})


def output_of(value: object) -> ToolOutput:
    """The output for what a tool returned: a copy that the tool can no longer change.

    An output, or a dict of the form of one, is taken as it is; a str is the text; ``None`` is the empty text.
    Everything else that msgspec can turn into JSON (Structs, dataclasses, dicts, lists, numbers, enums …) is
    both the text, as JSON, and ``structuredContent``. Raises NotJsonValue for what JSON cannot hold (NaN, bytes,
    keys that are no str, foreign objects), TooDeep and TooLarge for what a log would not take.
    """
    try:
        data = encode_json(_result(_plain(value.raw if isinstance(value, ToolOutput) else value)), "the result")
        if len(data) > MAX_OUTPUT_BYTES:
            raise TooLarge("result", len(data), MAX_OUTPUT_BYTES)
        # One bracket more around it than the limit leaves room for: checked by reading it two levels down.
        return ToolOutput(decode_json(b"[[" + data + b"]]", "result")[0][0])
    except TooDeep:
        raise TooDeep("result", MAX_OUTPUT_DEPTH) from None


def _result(plain: Json) -> dict[str, Json]:
    if _is_result(plain):
        return plain
    if plain is None or isinstance(plain, str):
        return {"content": [_text_block(plain or "")]}
    return {"content": [_text_block(encode_json(plain, "the result").decode())], "structuredContent": plain}


_NO_JSON: tuple[Any, ...] = (bytes, bytearray, memoryview)


def _plain(value: object) -> Json:
    """The value as JSON has it, so far as it can be. What is left over is refused by name when it is encoded."""
    try:
        return _listed(msgspec.to_builtins(value, builtin_types=_NO_JSON, enc_hook=_text_of))
    except RecursionError:
        raise TooDeep("result", MAX_OUTPUT_DEPTH) from None
    except TypeError as error:
        raise NotJsonValue("the result", str(error)) from None


def _text_of(value: object) -> str:
    """msgspec knows no subclass of str, though escaped HTML and the like are nothing but text."""
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} has no JSON form of its own")


def _listed(value: object) -> Json:
    """JSON has one kind of row; msgspec leaves tuples as they are."""
    if isinstance(value, list | tuple):
        return [_listed(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in cast("dict[object, object]", value).items()}
    return value


def _text_block(text: str) -> dict[str, Json]:
    return {"type": "text", "text": text}


def tool_outcome(call_id: str, output: ToolOutput) -> ToolResult | ToolError:
    """The part that ends a call: ``tool-result`` with the output, or ``tool-error`` with its text when it failed."""
    return ToolError(call_id, output.text) if output.is_error else ToolResult(call_id, output.raw)
