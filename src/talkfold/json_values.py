"""JSON values as they travel: their shapes, their text, and whether UTF-8 can carry them."""

from __future__ import annotations

from typing import TypeGuard, cast

import msgspec

from .codec.text import MAX_DOCUMENT_DEPTH, encoded
from .model import Json

__all__ = ("fits_unicode", "is_list", "is_object", "json_text")


def is_object(value: Json) -> TypeGuard[dict[str, Json]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def json_text(value: Json) -> str:
    """Compact JSON of a value; only a lone UTF-16 half is escaped. Raises TooDeep."""
    return encoded(value, "value", MAX_DOCUMENT_DEPTH).decode()


def fits_unicode(value: Json) -> Json:
    """The very same JSON value when UTF-8 can carry it, else one whose lone UTF-16 halves are U+FFFD.

    Two halves in a row become the character that they spell.
    """
    try:
        if isinstance(value, str):
            value.encode()
        else:
            msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _whole(value)
    return value


def _whole(value: Json) -> Json:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if is_list(value):
        return [_whole(item) for item in value]
    if is_object(value):
        return {cast("str", _whole(key)): _whole(item) for key, item in value.items()}
    return value
