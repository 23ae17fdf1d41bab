"""Sessions and what happens to them as JSON documents, the same on the command line and over HTTP.

Times are RFC 3339 in UTC with milliseconds, digests hexadecimal digits, names camelCase; what is not there is left out.
The actions, states, findings and diffs inside need no documents of their own: their Structs are their JSON.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from ..codec import written_time
from ..model import Json, SessionStatus
from ..store.lease import Lease, Waiting, WaitKind
from ..store.protocol import Page, Session, Tombstone

__all__ = (
    "Digest",
    "LeaseDocument",
    "PageDocument",
    "SessionDocument",
    "Time",
    "TombstoneDocument",
    "WaitingDocument",
    "lease_document",
    "page_document",
    "session_document",
    "tombstone_document",
)

Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-01-31T12:00:00.000Z"])]
"""A moment, to the millisecond, for people: order is a number, never a time."""

Digest: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
"""The hash of a session's newest action, which proves the whole log up to there."""


class WaitingDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A parked call: the number of its action, what it is, and until when somebody outside may answer it."""

    number: int
    call_id: str
    name: str
    kind: WaitKind
    prompt: str | None = None
    expires: Time | None = None
    within: str | None = None


class LeaseDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which living run owns a session, in which process, and the call that it is parked on."""

    run: str
    holder: str
    since: Time
    expires: Time
    waiting: WaitingDocument | None = None


class SessionDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A session without its log. ``number`` is its newest action's, ``size`` the bytes of its log."""

    id: str
    status: SessionStatus
    number: int
    digest: Digest
    size: int
    created: Time
    updated: Time
    owner: str | None = None
    title: str | None = None
    metadata: dict[str, Json] | None = None
    forked_from: str | None = None
    forked_at: int | None = None
    lease: LeaseDocument | None = None


class PageDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Some sessions, newest first; ``next`` is the cursor of the next page, if there is one."""

    sessions: tuple[SessionDocument, ...]
    next: str | None = None


class TombstoneDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is left of an erased session. ``number`` is how many actions it had."""

    erased: str
    number: int
    at: Time
    owner: str | None = None
    by: str | None = None


def session_document(session: Session) -> SessionDocument:
    """A stored session."""
    return SessionDocument(
        id=session.id,
        status=session.status,
        number=session.number,
        digest=session.digest.hex(),
        size=session.size,
        created=written_time(session.created),
        updated=written_time(session.updated),
        owner=session.owner,
        title=session.title,
        metadata=session.metadata,
        forked_from=session.forked_from,
        forked_at=session.forked_at,
        lease=None if session.lease is None else lease_document(session.lease),
    )


def page_document(page: Page) -> PageDocument:
    """A page of a list."""
    return PageDocument(tuple(map(session_document, page.sessions)), page.next)


def tombstone_document(tombstone: Tombstone) -> TombstoneDocument:
    """An erased session."""
    return TombstoneDocument(tombstone.id, tombstone.number, written_time(tombstone.at), tombstone.owner, tombstone.by)


def lease_document(lease: Lease) -> LeaseDocument:
    """A living run's lease."""
    return LeaseDocument(
        lease.run,
        lease.holder,
        written_time(lease.since),
        written_time(lease.expires),
        None if lease.waiting is None else _waiting(lease.waiting),
    )


def _waiting(waiting: Waiting) -> WaitingDocument:
    return WaitingDocument(
        waiting.number,
        waiting.call_id,
        waiting.name,
        waiting.kind,
        waiting.prompt,
        None if waiting.expires is None else written_time(waiting.expires),
        waiting.within,
    )
