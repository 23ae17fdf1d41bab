"""Free JSON in and out: metadata and ``meta``, which hold whatever the application puts there; documents going out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Raw

from ..model import Json
from .text import MAX_ACTION_BYTES, MAX_DEPTH, checked, decoded, encoded
from .values import refuse_unjson

__all__ = ("decode_json", "encode_document", "encode_json")

_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Any)


def decode_json(data: bytes | str, what: str = "JSON") -> Json:
    """Any JSON value, exact in numbers and key order. Raises TooLarge, TooDeep, InvalidJson."""
    return decoded(_ANY, checked(data, what, MAX_ACTION_BYTES, MAX_DEPTH), what, MAX_DEPTH)


def encode_json(value: Json, what: str = "JSON") -> bytes:
    """One line of JSON that decodes to the same value. Raises NotJsonValue (its path starts with ``what``),
    TooDeep, TooLarge."""
    refuse_unjson(value, what, what=what, max_depth=MAX_DEPTH)
    return checked(encoded(value, what, MAX_DEPTH), what, MAX_ACTION_BYTES, MAX_DEPTH)


def encode_document(value: object) -> bytes:
    """The JSON of what was made here: a Struct, or plain values, with ``Raw`` JSON in it. A lone surrogate becomes its
    escape. Raises TypeError for what has no JSON."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # legal in JSON as an escape, and unknown to msgspec
        return json.dumps(value, default=_plain, ensure_ascii=True, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    return json.loads(bytes(value)) if isinstance(value, Raw) else msgspec.to_builtins(value)
