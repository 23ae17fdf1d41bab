"""Checks of what callers pass in, the same for every store, made before anything is done."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import get_args

from ..actions import Retry, Send, SessionAction
from ..errors import InvalidArgument, MetadataKeyNotAllowed
from ..model import SessionStatus
from .lease import Hold
from .protocol import Expected, ExpectedVersion
from .retention import Retention
from .search.texts import SEARCH_KINDS, SearchKind
from .tokens import TOKEN_SCOPES

__all__ = (
    "LONGEST_NAME",
    "MOST_ACTIONS",
    "MOST_HITS",
    "MOST_SESSIONS",
    "check_digest",
    "check_expected",
    "check_filters",
    "check_first",
    "check_hold",
    "check_kinds",
    "check_limit",
    "check_name",
    "check_number",
    "check_owner",
    "check_retention",
    "check_time",
    "check_title",
    "check_token",
    "run_of",
)

MOST_ACTIONS = 10_000
"""How many actions one read gives at most."""

MOST_SESSIONS = 1_000
"""How many sessions one page of a list has at most."""

MOST_HITS = 200
"""How many hits one page of a search has at most."""

LONGEST_NAME = 512
"""The longest session id, owner, key, run or actor, in characters."""

# A fixed set: what `str.isprintable` says changes with the Python version, and names must not.
_UNSTORABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LARGEST = 2**63 - 1
_LAST_MILLISECOND = 253_402_300_799_999  # the end of the year 9999


def check_name(name: str, value: str | None) -> None:
    """Refuse an id, owner, key, run or actor that could not be stored or read back as it is."""
    if value is None:
        return
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidArgument(name, f"a text is needed, not {type(value).__name__}")
    if not value:
        raise InvalidArgument(name, "an empty text names nothing")
    if len(value) > LONGEST_NAME:
        raise InvalidArgument(name, f"{len(value):,} characters are too long; the limit is {LONGEST_NAME}")
    if _UNSTORABLE.search(value):
        raise InvalidArgument(name, "control characters, line ends and lone surrogates are not allowed")


def check_owner(value: str) -> None:
    """Refuse what names no owner where one is needed."""
    if value is None:  # pyright: ignore[reportUnnecessaryComparison] - callers may be untyped
        raise InvalidArgument("owner", "an owner is needed; nobody's sessions are erased one by one")
    check_name("owner", value)


def check_title(value: str | None) -> None:
    """Refuse a title that no database text can hold."""
    if value is None:
        return
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidArgument("title", f"a text is needed, not {type(value).__name__}")
    if "\0" in value or any("\ud800" <= unit <= "\udfff" for unit in value):
        raise InvalidArgument("title", "NUL and lone surrogates are not allowed")


def check_number(name: str, value: object) -> None:
    """Refuse what is no number of an action: 0, 1, 2 …"""
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise InvalidArgument(name, f"a whole number from 0 is needed, not {value!r}")


def check_time(value: object) -> None:
    """Refuse what is no time in milliseconds since 1970: the log writes it as a date of four-digit years."""
    if type(value) is not int or not 0 <= value <= _LAST_MILLISECOND:
        raise InvalidArgument("time", f"milliseconds since 1970 are needed, not {value!r}")


def check_digest(name: str, value: object) -> None:
    """Refuse what is no digest of a log."""
    if value is not None and not (isinstance(value, bytes) and len(value) == 32):
        raise InvalidArgument(name, "a digest of 32 bytes is needed")


def check_limit(value: object, most: int) -> None:
    """Refuse a limit outside 1 to ``most``."""
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidArgument("limit", f"a whole number from 1 to {most:,} is needed, not {value!r}")


def check_expected(expected: ExpectedVersion) -> None:
    """Refuse what is neither a number of an action nor one of ANY, ABSENT and EXISTS."""
    if not isinstance(expected, Expected):
        check_number("expected", expected)


def check_filters(
    status: SessionStatus | None, metadata: Mapping[str, object] | None, allowed: Collection[str]
) -> None:
    """Refuse a filter that means nothing, or on a metadata key that the store was not opened for."""
    if status is not None and status not in get_args(SessionStatus):
        raise InvalidArgument("status", f"{status!r} is none of {', '.join(get_args(SessionStatus))}")
    for key, value in (metadata or {}).items():
        if key not in allowed:
            raise MetadataKeyNotAllowed(key, tuple(allowed))
        if value is not None and type(value) not in (str, int, float, bool):
            raise InvalidArgument("metadata", f"the filter on {key!r} must be a text, a number, true, false or null")


def check_kinds(kinds: Collection[SearchKind]) -> None:
    """Refuse a kind of text that there is not."""
    if isinstance(kinds, str):
        raise InvalidArgument("kinds", f"several kinds are needed, even for one; not the text {kinds!r}")
    for kind in kinds:
        if kind not in SEARCH_KINDS:
            raise InvalidArgument("kinds", f"{kind!r} is none of {', '.join(SEARCH_KINDS)}")


def check_retention(rule: Retention) -> None:
    """Refuse a rule of retention that means nothing."""
    if not isinstance(rule, Retention):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidArgument("rule", f"a Retention is needed, not {type(rule).__name__}")
    if not isinstance(rule.idle, timedelta):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("idle", f"a timedelta is needed, not {type(rule.idle).__name__}")
    if rule.idle < timedelta():
        raise InvalidArgument("idle", f"{rule.idle} is less than nothing")
    check_name("owner", rule.owner)
    for status in rule.statuses:
        if status not in get_args(SessionStatus):
            raise InvalidArgument("statuses", f"{status!r} is none of {', '.join(get_args(SessionStatus))}")


_LONGEST_HOLD = 31 * 24 * 3600.0  # seconds


def check_hold(hold: Hold) -> None:
    """Refuse a hold without a run, or with a time that is no time."""
    if not isinstance(hold, Hold):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidArgument("hold", f"a Hold is needed, not {type(hold).__name__}")
    if hold.run is None:  # pyright: ignore[reportUnnecessaryComparison] - callers may be untyped
        raise InvalidArgument("hold", "it names no run")
    check_name("run", hold.run)
    seconds = hold.seconds
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("hold", f"its seconds are a number, not {type(seconds).__name__}")
    if not 0 < seconds <= _LONGEST_HOLD:
        raise InvalidArgument("hold", f"a lease lasts more than 0 and up to {_LONGEST_HOLD:,.0f} seconds")


def run_of(hold: Hold | None, run: str | None) -> str | None:
    """The run under whose id an append is logged. A run that writes by its lease has only one name."""
    if hold is None:
        return run
    check_hold(hold)
    if run is not None and run != hold.run:
        raise InvalidArgument("run", f"{run!r} cannot write by the lease of {hold.run!r}")
    return hold.run


def check_first(action: SessionAction) -> None:
    """Refuse an action that begins no run."""
    if not isinstance(action, (Send, Retry)):
        raise InvalidArgument("action", f"a run begins with a send or a retry, not with {type(action).__name__}")


def check_token(
    digest: bytes, scopes: Collection[str], owner: str | None, name: str | None, expires: int | None, now: int
) -> None:
    """Refuse a token that could not be kept, or that would be good for nothing."""
    if digest is None:  # pyright: ignore[reportUnnecessaryComparison] - callers may be untyped
        raise InvalidArgument("digest", "a digest of 32 bytes is needed")
    check_digest("digest", digest)
    check_name("owner", owner)
    check_name("name", name)
    _check_scopes(scopes, owner)
    if expires is not None:
        check_time(expires)
        if expires <= now:
            raise InvalidArgument("expires", "it is over already")


def _check_scopes(scopes: Collection[str], owner: str | None) -> None:
    if isinstance(scopes, str):
        raise InvalidArgument("scopes", f"several scopes are needed, even for one; not the text {scopes!r}")
    unknown = [scope for scope in scopes if scope not in TOKEN_SCOPES]
    if unknown or not scopes:
        given = repr(unknown[0]) if unknown else "nothing"
        raise InvalidArgument("scopes", f"{given} is none of {', '.join(TOKEN_SCOPES)}")
    if owner is None and "admin" not in scopes:
        raise InvalidArgument("scopes", "a token without an owner reaches everybody's sessions: it needs admin")
    if owner is not None and "admin" in scopes:
        raise InvalidArgument("scopes", "admin acts for every owner: only a token without an owner may have it")
