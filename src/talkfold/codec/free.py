"""Free JSON in and out: metadata and ``meta``, which hold whatever the application puts there."""

from __future__ import annotations

from typing import Any

import msgspec

from ..model import Json
from .text import MAX_ACTION_BYTES, MAX_DEPTH, checked, decoded, encoded
from .values import refuse_unjson

__all__ = ("decode_json", "encode_json")

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Any)


def decode_json(data: bytes | str, what: str = "JSON") -> Json:
    """Any JSON value, exact in numbers and key order. Raises TooLarge, TooDeep, InvalidJson."""
    return decoded(_ANY, checked(data, what, MAX_ACTION_BYTES, MAX_DEPTH), what, MAX_DEPTH)


def encode_json(value: Json, what: str = "JSON") -> bytes:
    """One line of JSON that decodes to the same value. Raises NotJsonValue (its path starts with ``what``),
    TooDeep, TooLarge."""
    refuse_unjson(value, what, what=what, max_depth=MAX_DEPTH)
    return checked(encoded(value, what, MAX_DEPTH), what, MAX_ACTION_BYTES, MAX_DEPTH)
