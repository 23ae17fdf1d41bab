"""What a log shows: findings, lanes, times, blame, proof. Reads the log from its first action; nothing is changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any

import anyio.to_thread
from msgspec import Meta, Struct
from starlette.responses import Response

from ..audit import Auditor, Blame, Contribution, Finding, Lane, lanes, place_at, timings
from ..errors import StoreDamaged
from ..log import LoggedAction
from ..protocols.documents import Digest
from ..store.protocol import Problem, Session
from .answers import json_reply
from .endpoint import Call, Nothing

__all__ = (
    "BlameDocument",
    "Blaming",
    "CheckDocument",
    "Checking",
    "FindingsDocument",
    "LanesDocument",
    "get_blame",
    "get_check",
    "get_findings",
    "get_lanes",
    "get_stats",
)

_PAGE = 5_000


class FindingsDocument(Struct, frozen=True, rename="camel"):
    """What is wrong with the log, or worth a look, through this number."""

    number: int
    findings: tuple[Finding, ...]


class LanesDocument(Struct, frozen=True, rename="camel"):
    """Runs and sub-agents as intervals, through this number."""

    number: int
    lanes: tuple[Lane, ...]


class Blaming(Struct, frozen=True, forbid_unknown_fields=True):
    """Which place of the state, as a JSON Pointer such as ``/messages/1/parts/0/text``, after which action."""

    pointer: str
    at: Annotated[int, Meta(ge=0)] | None = None


class BlameDocument(Struct, frozen=True, rename="camel"):
    """The actions that made what stands at the place."""

    number: int
    contributions: tuple[Contribution, ...]


class Checking(Struct, frozen=True, forbid_unknown_fields=True):
    """A digest of this log that was noted before: the answer says up to where the log is still what it was then."""

    since: Digest | None = None


class CheckDocument(Struct, frozen=True, rename="camel"):
    """Proof of the log: good when there are no problems. Note the digest down, and a rewritten log will not match.

    ``since``: the number up to which the log is what was noted; null where nothing was asked or it is not in the log.
    """

    number: int
    digest: Digest
    snapshots: int
    since: int | None
    problems: tuple[Problem, ...]


async def get_findings(call: Call[Nothing, None]) -> Response:
    """What is wrong with the log, or worth a look: codes, severities, the actions where it shows, and what to do."""
    session = await _session(call)
    auditor = Auditor()
    found: list[Finding] = []
    async for rows in _pages(call, session.number):
        found += await anyio.to_thread.run_sync(list, auditor.read(rows))
    # The lease is of the same moment as the number up to which the log was read.
    found += auditor.pending(living=session.lease is not None)
    return json_reply(FindingsDocument(session.number, tuple(found)), number=session.number)


async def get_lanes(call: Call[Nothing, None]) -> Response:
    """Runs and sub-agents as intervals of the log, with their times."""
    session = await _session(call)
    rows = await _log(call, session.number)
    drawn = await anyio.to_thread.run_sync(lanes, rows)
    return json_reply(LanesDocument(session.number, drawn), number=session.number)


async def get_stats(call: Call[Nothing, None]) -> Response:
    """Times of runs, steps and calls; tokens and cost where the log's ``meta`` has them."""
    session = await _session(call)
    rows = await _log(call, session.number)
    return json_reply(await anyio.to_thread.run_sync(timings, rows), number=session.number)


async def get_blame(call: Call[Blaming, None]) -> Response:
    """Which actions made what stands at a place of the conversation."""
    session = await _session(call)
    place = place_at(call.query.pointer)
    at = session.number if call.query.at is None else call.query.at
    rows = await _log(call, session.number)
    found = await anyio.to_thread.run_sync(lambda: Blame(rows).of(place, at=at))
    return json_reply(BlameDocument(at, found), number=at)


async def get_check(call: Call[Checking, None]) -> Response:
    """Walk the log from its first action: numbers, hash chain, every body, every snapshot against the fold."""
    noted = None if call.query.since is None else bytes.fromhex(call.query.since)
    report = await call.resources.store.check(call.session_id, owner=call.owner, since=noted)
    document = CheckDocument(report.number, report.digest.hex(), report.snapshots, report.since, report.problems)
    return json_reply(document, number=report.number)


async def _session(call: Call[Any, None]) -> Session:
    return await call.resources.store.get(call.session_id, owner=call.owner)


async def _log(call: Call[Any, None], end: int) -> list[LoggedAction]:
    return [row async for rows in _pages(call, end) for row in rows]


async def _pages(call: Call[Any, None], end: int) -> AsyncGenerator[tuple[LoggedAction, ...]]:
    after = 0
    while after < end:
        rows = await call.resources.store.read(
            call.session_id, after=after, limit=min(_PAGE, end - after), owner=call.owner
        )
        if not rows:
            raise StoreDamaged(f"the log of {call.session_id} ends with action {after}, and should with {end}")
        yield rows
        after = rows[-1].number
