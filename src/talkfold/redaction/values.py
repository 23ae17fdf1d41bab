"""Free JSON values without their secrets: inputs, outputs, ``meta`` and metadata."""

from __future__ import annotations

import json
from typing import Any, cast

from ..codec import decode_json
from ..codec.text import utf8
from ..json_values import is_list, is_object
from ..model import Json
from .rules import REDACTED, Redaction

__all__ = ("may_change", "quoted", "redact_json", "redact_text", "redact_value")


class _Number(str):
    """A number as it is spelled."""


class _Members(list[tuple[str, Any]]):
    """An object with all its members, also those of one name."""


_READ = json.JSONDecoder(object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number)


def may_change(redaction: Redaction, value: Json) -> bool:
    """False where nothing in a value is to be redacted."""
    left: list[Json] = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            if redaction.may_change(each) or _may_name(redaction, each):
                return True
        elif is_object(each):
            if not redaction.fields.isdisjoint(map(str.casefold, each)):
                return True
            left += each
            left += each.values()
        elif is_list(each):
            left += each
    return False


def _may_name(redaction: Redaction, text: str) -> bool:
    """Whether a text may be a JSON document, as tools like to answer with, that has one of the fields."""
    if not redaction.fields or text[:1] not in ("{", "["):
        return False
    folded = text.casefold()
    return any(field in folded for field in redaction.fields)


def redact_value(redaction: Redaction, value: Json) -> Json:
    """A JSON value as the log would have it. The value itself stays as it is. Raises RedactionFailed."""
    if not may_change(redaction, value):
        return value
    written, _ = redact_text(redaction, json.dumps(value, ensure_ascii=False))
    return decode_json(written)


def redact_json(redaction: Redaction, data: bytes) -> tuple[bytes, int]:
    """JSON without its secrets, and how many places there were; the same bytes where there was none.

    Strings, keys, and whole values by the names of their fields. Numbers stay as they are spelled, members in their
    order, those of one name too. Raises RedactionFailed.
    """
    written, count = redact_text(redaction, data.decode())
    return (utf8(written), count) if count else (data, 0)


def redact_text(redaction: Redaction, text: str) -> tuple[str, int]:
    """``redact_json`` for JSON as a text: what it has changed may hold lone surrogates. Raises ValueError as well, for
    what is no JSON."""
    value: object = _READ.decode(text)
    work = _Work(redaction)
    value = work.cleaned(value)
    return (_written(value), work.count) if work.count else (text, 0)


class _Work:
    """A value on its way, and how many places were found."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self.count = 0

    def cleaned(self, value: object) -> object:
        if type(value) is str:
            text, inside = self._document(value) if _may_name(self._redaction, value) else (value, 0)
            text, count = self._redaction.text(text)
            self.count += inside + count
            return text
        if type(value) is list:
            return [self.cleaned(each) for each in cast("list[object]", value)]
        if type(value) is _Members:
            return self._members(value)
        return value

    def _document(self, text: str) -> tuple[str, int]:
        try:
            return redact_text(self._redaction, text)
        except (ValueError, RecursionError):  # it only looks like one
            return text, 0

    def _members(self, members: _Members) -> _Members:
        made = _Members()
        names = {name for name, _ in members}
        for name, value in members:
            if name.casefold() in self._redaction.fields and value is not None:
                self.count += value != REDACTED
                made.append((name, REDACTED))
            else:
                made.append((self._name(name, names), self.cleaned(value)))
        return made

    def _name(self, name: str, taken: set[str]) -> str:
        """A member's name; one that becomes like another's gets a number, so that neither value is lost."""
        new, count = self._redaction.text(name)
        if not count or new == name:
            return name
        self.count += count
        only, number = new, 2
        while new in taken:
            new, number = f"{only} {number}", number + 1
        taken.add(new)
        return new


def _written(value: object) -> str:
    if type(value) is _Number:
        return str(value)
    if type(value) is list:
        return "[" + ",".join([_written(each) for each in cast("list[object]", value)]) + "]"
    if type(value) is _Members:
        return "{" + ",".join([f"{quoted(name)}:{_written(each)}" for name, each in value]) + "}"
    return json.dumps(value, ensure_ascii=False)


def quoted(text: str) -> str:
    """A text as JSON."""
    return json.dumps(text, ensure_ascii=False)
