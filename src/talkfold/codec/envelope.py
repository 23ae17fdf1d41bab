"""The fields around an action in a line of JSON, each read from its own piece of the text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from ..errors import InvalidAction, NotJsonValue
from ..model import Json
from .text import MAX_DEPTH, decoded

__all__ = ("read_meta", "read_number", "read_text", "read_time", "written_time")

_WHAT = "logged action"
_NUMBER = msgspec.json.Decoder(int)
_TEXT = msgspec.json.Decoder(str)
_META: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

T = TypeVar("T")


def written_time(time: int) -> str:
    """Milliseconds since 1970 as RFC 3339, in UTC, with milliseconds. Raises NotJsonValue beyond the year 9999."""
    try:
        moment = _EPOCH + time * _MILLISECOND
    except OverflowError:
        raise NotJsonValue("$.time", f"{time} ms since 1970 is no date of the years 1 to 9999") from None
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def read_time(raw: Raw, path: str) -> int:
    """Milliseconds since 1970 from what ``written_time`` writes. Raises InvalidAction, like all here."""
    text = _field(_TEXT, raw, path)
    try:
        if _TIME.fullmatch(text) is None:
            raise ValueError
        return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND
    except ValueError:
        raise InvalidAction(_WHAT, f"{text!r} is no time such as 2026-01-31T12:00:00.000Z", path) from None


def read_number(raw: Raw, path: str) -> int:
    """A whole number."""
    return _field(_NUMBER, raw, path)


def read_text(raw: Raw, path: str) -> str:
    """A text."""
    return _field(_TEXT, raw, path)


def read_meta(raw: Raw, path: str) -> dict[str, Json]:
    """An object of free JSON."""
    return _field(_META, raw, path)


def _field(decoder: msgspec.json.Decoder[T], raw: Raw, path: str) -> T:
    try:
        return decoded(decoder, bytes(raw), _WHAT, MAX_DEPTH)
    except InvalidAction as error:
        raise InvalidAction(_WHAT, error.reason, path + error.path[1:]) from None
