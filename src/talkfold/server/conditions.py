"""Conditional requests: a session's number as a strong ETag (RFC 9110, 8.8 and 13.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..store.protocol import ABSENT, EXISTS, ExpectedVersion
from .refusals import InvalidHeader

__all__ = ("etag", "expected_version", "is_fresh", "wanted_number")

_NUMBER = re.compile(r'"(0|[1-9][0-9]{0,18})"')
_TAG = re.compile(r'(?:W/)?("[^"]*")')


def etag(number: int) -> str:
    """The tag of a session at this number."""
    return f'"{number}"'


def expected_version(headers: Mapping[str, str]) -> ExpectedVersion:
    """What a write expects of its session. ``If-Match: "17"``: that it is at 17; ``If-None-Match: *``: that it is not
    there, and is made; neither, or ``If-Match: *``: that it is there. Raises InvalidHeader."""
    match, none_match = headers.get("if-match"), headers.get("if-none-match")
    if none_match is not None:
        if match is not None or none_match.strip() != "*":
            raise InvalidHeader("If-None-Match", "only * alone means something in a write: the session must not exist")
        return ABSENT
    if match is None or match.strip() == "*":
        return EXISTS
    return _number("If-Match", match)


def wanted_number(headers: Mapping[str, str]) -> int | None:
    """The number that ``If-Match`` names; ``None`` without it, or for ``*``. Raises InvalidHeader."""
    match = headers.get("if-match")
    return None if match is None or match.strip() == "*" else _number("If-Match", match)


def _number(name: str, value: str) -> int:
    if value.strip().startswith("W/"):
        raise InvalidHeader(name, "a weak tag never matches here; send the ETag as it came")
    found = _NUMBER.fullmatch(value.strip())
    if found is None or int(found[1]) >= 2**63:
        raise InvalidHeader(name, 'one tag is needed, such as "17"')
    return int(found[1])


def is_fresh(headers: Mapping[str, str], tag: str) -> bool:
    """Whether ``If-None-Match`` says that the caller has what this tag stands for."""
    given = headers.get("if-none-match")
    return given is not None and (given.strip() == "*" or tag in _TAG.findall(given))
