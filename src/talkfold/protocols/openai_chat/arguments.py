"""Tool arguments: OpenAI sends them as a text that is meant to be JSON.

The log holds the value. Where writing the value does not give the very same text again (other spacing, a key
twice, no JSON at all), the text is kept beside it, in the call's provider metadata.
"""

from __future__ import annotations

import json
import sys

from ...codec.text import checked
from ...errors import TooDeep
from ...json_values import fits_unicode, is_object, json_text
from ...model import Json, ToolPart

__all__ = ("DEEPEST", "arguments_of", "openai_metadata", "parse_arguments", "raw_to_keep")

DEEPEST = 100
"""Arguments nested deeper than this many brackets stay a text, well within what an action may hold."""


def parse_arguments(raw: str) -> Json:
    """The value of an arguments text; the text itself when it is no JSON (NaN and infinities are none)."""
    try:
        checked(raw, "arguments", sys.maxsize, DEEPEST)
        return json.loads(raw, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, TooDeep):
        return raw


def raw_to_keep(raw: str, value: Json) -> str | None:
    """The arguments text, when the value alone would not give it back."""
    return None if json_text(value) == raw else raw


def arguments_of(call: ToolPart) -> str:
    """The arguments text of a call: the kept one while it means the call's input, else the input as JSON."""
    written = json_text(call.input)
    raw = openai_metadata(call).get("arguments")
    if isinstance(raw, str) and fits_unicode(raw) is raw and json_text(parse_arguments(raw)) == written:
        return raw
    return written


def openai_metadata(call: ToolPart) -> dict[str, Json]:
    """What this provider left with a call; nothing of another provider's."""
    metadata = call.provider_metadata
    own = metadata.get("openai") if is_object(metadata) else None
    return own if is_object(own) else {}


def _refuse(constant: str) -> Json:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(digits)
    return value
