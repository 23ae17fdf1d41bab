"""Free JSON in and out: metadata, and whatever else has no type of its own."""

from __future__ import annotations

import msgspec

from ..model import Json
from .text import MAX_ACTION_BYTES, MAX_DEPTH, checked, decoded, encoded
from .values import refuse_unjson

__all__ = ("decode_json", "encode_json")

_JSON = msgspec.json.Decoder(object)


def encode_json(
    value: Json, what: str = "value", *, max_bytes: int = MAX_ACTION_BYTES, max_depth: int = MAX_DEPTH
) -> bytes:
    """Any JSON value as one line that decodes to an equal value. ``what`` names it in errors.

    Raises NotJsonValue with the path of what JSON cannot hold exactly, TooDeep, TooLarge.
    """
    refuse_unjson(value, what, what=what, max_depth=max_depth)
    return checked(encoded(value, what, max_depth), what, max_bytes, max_depth)


def decode_json(
    data: bytes | str, what: str = "value", *, max_bytes: int = MAX_ACTION_BYTES, max_depth: int = MAX_DEPTH
) -> Json:
    """The value of a JSON text. Raises TooLarge, TooDeep, InvalidJson."""
    return decoded(_JSON, checked(data, what, max_bytes, max_depth), what, max_depth)
