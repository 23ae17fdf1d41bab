"""A session's log and what it folds to: appended, read in pages, seen at any number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from msgspec import Meta, Raw, Struct
from starlette.responses import Response

from ..actions import SessionAction
from ..audit import Diff, diff, encode_diff
from ..codec import encode_logged, encode_state
from ..errors import CursorAhead, InvalidArgument
from ..log import Entry, LoggedAction
from ..model import Json, SessionState, SessionStatus
from ..protocols.documents import Digest, Time
from .answers import FOREVER, NEVER, NOW, json_reply, unchanged
from .conditions import expected_version
from .endpoint import Call, Nothing

__all__ = (
    "NDJSON",
    "AppendedDocument",
    "At",
    "Between",
    "DiffDocument",
    "LoggedDocument",
    "Number",
    "PageOfActions",
    "Reading",
    "StateDocument",
    "StepDocument",
    "append_actions",
    "get_diff",
    "get_state",
    "get_step",
    "read_actions",
)

NDJSON: Final = "application/x-ndjson"

Number = Annotated[int, Meta(ge=0)]


class At(Struct, frozen=True, forbid_unknown_fields=True):
    """After which action of the log; the newest by default."""

    at: Number | None = None


class Between(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """From the state after one action to the state after another: the newest, from the one before, by default."""

    from_: Number | None = None
    to: Number | None = None


class Reading(Struct, frozen=True, forbid_unknown_fields=True):
    """Which actions: at most so many after this one."""

    after: Number = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000


class AppendedDocument(Struct, frozen=True, rename="camel"):
    """The numbers of the first and the last action that were logged. ``repeated``: this is the answer that the same
    ``Idempotency-Key`` got before, and nothing was logged now."""

    first: int
    last: int
    repeated: bool


class LoggedDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A logged action with its envelope. ``action`` is what was sent, to the byte."""

    number: int
    time: Time
    action: SessionAction
    run: str | None = None
    actor: str | None = None
    meta: dict[str, Json] | None = None
    hash: Digest | None = None


class PageOfActions(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Some actions in order; ``next`` is the ``after`` of the page behind it, if the log goes on."""

    actions: tuple[LoggedDocument, ...]
    next: int | None = None


class StateDocument(Struct, frozen=True, rename="camel"):
    """A conversation's state, and the number of the last action folded into it."""

    number: int
    state: SessionState


class StepDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One action, the status before and after it, and what it changed (nothing: ``levels`` and the rest are absent)."""

    action: LoggedDocument
    before: SessionStatus
    after: SessionStatus
    changes: Diff


class DiffDocument(Struct, frozen=True, rename={"from_": "from"}):
    """What changed between two states, as operations that turn the one into the other."""

    from_: int
    to: int
    diff: Diff


async def append_actions(call: Call[Nothing, list[Entry]]) -> Response:
    """Log actions: one, an array, or JSON lines; all of them in one transaction, or none.

    When this is answered, they are durable. An item is the action itself, or ``{"action": …, "meta": …, "run": …}``.
    ``If-Match: "17"`` logs only when the session is at 17; else 412, with the actions that are missing.
    ``If-None-Match: *`` makes the session. ``Idempotency-Key`` makes it safe to repeat.
    """
    entries = [_as(call, entry) for entry in call.body]
    appended = await call.resources.store.append(
        call.session_id,
        entries,
        expected=expected_version(call.headers),
        key=call.headers.get("idempotency-key"),
        owner=call.owner,
        actor=call.caller.name,
    )
    document = AppendedDocument(appended.first, appended.last, appended.repeated)
    return json_reply(document, 201, number=appended.last)


def _as(call: Call[Nothing, list[Entry]], entry: Entry) -> Entry:
    """An entry as this caller may log it: whose name it is logged under, and when, only the trusted side says."""
    if call.caller.owner is None:
        return entry
    if entry.actor is not None or entry.time is not None:
        raise InvalidArgument("actor" if entry.actor is not None else "time", "only an administrator may set it")
    return entry


async def read_actions(call: Call[Reading, None]) -> Response:
    """Actions in order, a page at a time; as JSON, or as JSON lines when ``Accept`` asks for them."""
    query, store = call.query, call.resources.store
    limit = min(query.limit, call.resources.limits.page_actions)
    rows = await store.read(call.session_id, after=query.after, limit=limit, owner=call.owner)
    if NDJSON in call.headers.get("accept", ""):
        return Response(b"".join(encode_logged(row) + b"\n" for row in rows), 200, {"Cache-Control": NEVER}, NDJSON)
    more = b',"next":%d' % rows[-1].number if len(rows) == limit else b""
    return json_reply(b'{"actions":[' + b",".join(map(encode_logged, rows)) + b"]" + more + b"}")


async def get_state(call: Call[At, None]) -> Response:
    """The conversation as it is now, or as it was after any action of its log."""
    at, store = call.query.at, call.resources.store
    if at is None:
        known = unchanged(call.headers, (await store.get(call.session_id, owner=call.owner)).number, NOW)
        if known is not None:
            return known
    then = await store.state(call.session_id, at=at, owner=call.owner)
    body = b'{"number":%d,"state":%s}' % (then.number, encode_state(then.state))
    return json_reply(body, number=then.number, keep=NOW if at is None else FOREVER)


async def get_step(call: Call[Nothing, None]) -> Response:
    """One action: its envelope, the status before and after it, and what it changed."""
    number = _number(call.segment("number"))
    row, before, after = await _step(call, number)
    document = {
        "action": Raw(encode_logged(row)),
        "before": before.status,
        "after": after.status,
        "changes": Raw(encode_diff(diff(before, after))),
    }
    return json_reply(document, number=number, keep=FOREVER)


async def _step(call: Call[Any, None], number: int) -> tuple[LoggedAction, SessionState, SessionState]:
    store = call.resources.store
    rows: Iterable[LoggedAction] = await store.read(call.session_id, after=number - 1, limit=1, owner=call.owner)
    for row in rows:
        before = (await store.state(call.session_id, at=number - 1, owner=call.owner)).state
        after = (await store.state(call.session_id, at=number, owner=call.owner)).state
        return row, before, after
    raise CursorAhead(call.session_id, number, number - 1)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 19 and int(text) > 0):
        raise InvalidArgument("number", f"{text[:40]!r} is no number of an action: they count from 1")
    return int(text)


async def get_diff(call: Call[Between, None]) -> Response:
    """What changed between two numbers, as operations; matched by identity, texts as texts."""
    store = call.resources.store
    to = call.query.to
    if to is None:
        to = (await store.get(call.session_id, owner=call.owner)).number
    first = max(to - 1, 0) if call.query.from_ is None else call.query.from_
    before = (await store.state(call.session_id, at=first, owner=call.owner)).state
    after = (await store.state(call.session_id, at=to, owner=call.owner)).state
    body = b'{"from":%d,"to":%d,"diff":%s}' % (first, to, encode_diff(diff(before, after)))
    return json_reply(body, keep=NEVER if call.query.to is None else FOREVER)
