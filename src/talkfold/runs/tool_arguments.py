"""A model's arguments checked against what a tool takes, and what is wrong with them in words that a model can use.

msgspec names the first fault only. A model that hears of all of them corrects them in one step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo

from ..codec import decode_json, encode_json
from ..errors import TalkfoldError
from ..model import Json
from .tool_schema import ToolInput

__all__ = ("InvalidInput", "read_arguments")

_LAST_EXACT = 2**53
_AT = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)


class InvalidInput(Struct, frozen=True):
    """Arguments that do not fit the tool: all that is wrong with them, in a text for the model."""

    text: str


def read_arguments(takes: ToolInput, given: Json) -> dict[str, Any] | InvalidInput:
    """The function's keyword arguments from a call's input, which is any JSON. They share nothing with it, so the
    tool cannot change the call that the log has. Never raises."""
    try:
        copy = decode_json(encode_json(given, "the input"))
    except TalkfoldError as error:
        return InvalidInput(str(error))
    if not isinstance(copy, dict):
        return InvalidInput(f"the input must be an object with the arguments, not {_kind(copy)}")
    fields = cast("dict[str, Json]", copy)
    try:
        return takes.keywords(_converted(fields, takes.kind), fields)
    except Exception as error:  # a Struct's own checks may raise anything
        return InvalidInput(_sentence(takes.kind, fields, error))


def _converted(value: Json, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        if "got `float`" not in str(error):
            raise
        # In JSON Schema 1.0 is an integer, and some providers send every number so.
        return msgspec.convert(_whole_numbers(value), kind, str_keys=True)


def _whole_numbers(value: object) -> Json:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LAST_EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in cast("dict[str, object]", value).items()}
    return [_whole_numbers(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _sentence(kind: type[Struct], given: dict[str, Json], error: Exception) -> str:
    faults = list(_faults(kind, given)) or [_fault("", error)]
    known = ", ".join(field.encode_name + ("" if field.required else " (optional)") for field in _fields(kind))
    return f"{'; '.join(faults)}. The arguments are: {known or 'none'}. Correct them and call again."


def _faults(kind: type[Struct], given: dict[str, Json]) -> Iterator[str]:
    for field in _fields(kind):
        if field.encode_name not in given:
            if field.required:
                yield f"{field.encode_name}: missing"
            continue
        try:
            _converted(given[field.encode_name], field.type)
        except Exception as error:
            yield _fault(field.encode_name, error)
    if kind.__struct_config__.forbid_unknown_fields:
        known = [field.encode_name for field in _fields(kind)]
        for name in given:
            if name not in known and name != kind.__struct_config__.tag_field:
                near = get_close_matches(name, known, 1)
                yield f"{name}: no such argument" + (f" (did you mean {near[0]}?)" if near else "")


def _fields(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _fault(name: str, error: Exception) -> str:
    """One fault: the path to the value, and msgspec's words without their ornaments."""
    text = str(error) if isinstance(error, ValueError | msgspec.MsgspecError) else f"{type(error).__name__}: {error}"
    found = _AT.fullmatch(text)
    reason, path = (found[1], found[2]) if found else (text, "")
    where = name + (path if path.startswith("[") or not path or not name else f".{path}")
    reason = reason.replace("`", "")
    return f"{where}: {reason[:1].lower()}{reason[1:]}" if where else reason


def _kind(value: Json) -> str:
    return _KINDS.get(cast("type[object]", type(value)), "a number")


_KINDS: dict[type[object], str] = {list: "an array", str: "a text", bool: "true or false", type(None): "null"}
