"""Sessions as wholes: made, listed, looked at, renamed, copied, erased."""

from __future__ import annotations

import json
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta, Struct
from starlette.responses import Response

from ..errors import InvalidArgument, SessionExists
from ..model import Json, SessionStatus
from ..protocols.documents import page_document, session_document, tombstone_document
from ..store.protocol import Session
from .answers import json_reply
from .endpoint import Call, Nothing

__all__ = (
    "Change",
    "ForkOf",
    "Listing",
    "NewNamed",
    "NewSession",
    "change_session",
    "create_session",
    "erase_session",
    "fork_session",
    "get_session",
    "list_sessions",
    "put_session",
)


class NewNamed(Struct, frozen=True, forbid_unknown_fields=True):
    """What a new session is called, and what the application wants to keep with it."""

    title: str | None = None
    metadata: dict[str, Json] | None = None


class NewSession(NewNamed, frozen=True, forbid_unknown_fields=True):
    """The same, under this id; without one, under a new random one."""

    id: str | None = None


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """What changes; what is absent stays. A metadata key that is ``null`` goes."""

    title: str | None = None
    metadata: dict[str, Json] | None = None


class ForkOf(Struct, frozen=True, forbid_unknown_fields=True):
    """A copy through the action ``at`` (the newest by default), under this id and title."""

    at: Annotated[int, Meta(ge=0)] | None = None
    id: str | None = None
    title: str | None = None


class Listing(Struct, frozen=True, forbid_unknown_fields=True):
    """Which sessions. ``metadata`` is ``KEY=VALUE``, the value JSON or a plain text; it may be repeated."""

    status: SessionStatus | None = None
    title: str | None = None
    metadata: tuple[str, ...] = ()
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    cursor: str | None = None


async def list_sessions(call: Call[Listing, None]) -> Response:
    """Sessions, newest first; stable while pages are read.

    ``title`` finds a text anywhere in the title. ``next`` is the cursor of the next page.
    """
    query = call.query
    page = await call.resources.store.list(
        owner=call.owner,
        status=query.status,
        title=query.title,
        metadata=dict(map(_condition, query.metadata)) or None,
        limit=query.limit,
        cursor=query.cursor,
    )
    return json_reply(page_document(page))


def _condition(given: str) -> tuple[str, str | int | float | bool | None]:
    key, equals, text = given.partition("=")
    if not key or not equals:
        raise InvalidArgument("metadata", f"{given!r} is not KEY=VALUE")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return key, text if isinstance(value, dict | list) else value


async def create_session(call: Call[Nothing, NewSession]) -> Response:
    """Make a session, empty. Its ETag is ``"0"``: an append with ``If-Match: "0"`` is its first."""
    made = await call.resources.store.create(
        call.body.id, owner=call.owner, title=call.body.title, metadata=call.body.metadata
    )
    return _made(call.root, made)


async def put_session(call: Call[Nothing, NewNamed | None]) -> Response:
    """Make a session under the id of the path, or leave it as it is when it is there: safe to repeat."""
    body = call.body or NewNamed()
    store = call.resources.store
    try:
        made = await store.create(call.session_id, owner=call.owner, title=body.title, metadata=body.metadata)
    except SessionExists:
        return _shown(await store.get(call.session_id, owner=call.owner))
    return _made(call.root, made)


async def get_session(call: Call[Nothing, None]) -> Response:
    """A session without its log: where it stands, and which living run owns it."""
    return _shown(await call.resources.store.get(call.session_id, owner=call.owner))


async def change_session(call: Call[Nothing, Change]) -> Response:
    """Rename a session, or change its metadata. The log is not touched."""
    body = call.body
    changed = await call.resources.store.update(
        call.session_id, owner=call.owner, title=body.title, metadata=body.metadata
    )
    return _shown(changed)


async def erase_session(call: Call[Nothing, None]) -> Response:
    """Remove a session for good: its log and everything made from it. Its id is never used again."""
    tombstone = await call.resources.store.erase(call.session_id, owner=call.owner, by=call.caller.name)
    return json_reply(tombstone_document(tombstone))


async def fork_session(call: Call[Nothing, ForkOf | None]) -> Response:
    """Copy a session, whole or up to an action, into a new one of the same owner."""
    body = call.body or ForkOf()
    made = await call.resources.store.fork(
        call.session_id, at=body.at, new_id=body.id, owner=call.owner, title=body.title
    )
    return _made(call.root, made)


def _made(root: str, session: Session) -> Response:
    place = root + "/v1/sessions/" + quote(session.id, safe="")
    return json_reply(session_document(session), 201, number=session.number, headers={"Location": place})


def _shown(session: Session) -> Response:
    return json_reply(session_document(session), number=session.number)
