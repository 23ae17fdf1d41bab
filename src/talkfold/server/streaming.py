"""A session's log as server-sent events: what is there, then what comes, without a gap and without a repeat."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Final

from msgspec import Meta, Struct
from sse_starlette import EventSourceResponse
from starlette.responses import Response

from ..errors import TalkfoldError
from .endpoint import Call
from .feeds import Feed, event_of
from .problems import document_of
from .refusals import InvalidHeader

__all__ = ("EVENT_STREAM", "Following", "stream_actions")

EVENT_STREAM: Final = "text/event-stream"
_PAGE: Final = 500


class Following(Struct, frozen=True, forbid_unknown_fields=True):
    """After which action. ``Last-Event-ID`` is the same, and wins: a browser sends it when it comes back."""

    after: Annotated[int, Meta(ge=0)] = 0


async def stream_actions(call: Call[Following, None]) -> Response:
    """Every action after a number as server-sent events: first what is there, then what comes, from any process.

    An event's ``id`` is the action's number, its ``data`` the logged action. ``caught-up`` tells once that the reader
    has all there is now. The last event before the server closes says why: ``closing`` (come back, and go on after the
    last id), or ``problem`` (the session was erased). Whoever does not take what is sent is cut, and may come back.
    """
    after = _cursor(call)
    begun = _events(call, after)
    first = await anext(begun)  # a cursor beyond the end, or no such session, is a plain problem and no stream

    async def events() -> AsyncGenerator[bytes]:
        try:
            yield first
            async for chunk in begun:
                yield chunk
        finally:
            await begun.aclose()

    limits = call.resources.limits
    return EventSourceResponse(
        events(), sep="\n", ping=limits.ping_seconds, send_timeout=limits.stream_seconds, headers={"Vary": "Accept"}
    )


def _cursor(call: Call[Following, None]) -> int:
    given = call.headers.get("last-event-id")
    if given is None or not given.strip():
        return call.query.after
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise InvalidHeader("Last-Event-ID", f"{given[:40]!r} is no number of an action")
    return int(given)


async def _events(call: Call[Following, None], after: int) -> AsyncGenerator[bytes]:
    """The chunks of the stream; the first one comes as soon as it is known that there is a stream."""
    resources = call.resources
    with resources.streams.one(call.caller):
        async with resources.feeds.follow(call.session_id, call.owner, after) as feed:
            yield b"retry: 1000\n\n"
            caught_up = False
            while not resources.feeds.closing:
                chunk, after = await _more(call, feed, after)
                if chunk:
                    yield chunk
                elif not caught_up:
                    caught_up = True
                    yield _event("caught-up", json.dumps({"number": after}).encode())
                elif feed.failure is not None:
                    yield _problem(feed.failure, call.request.state.request_id)
                    return
                else:
                    await feed.news()
            yield _event("closing", json.dumps({"number": after}).encode())


async def _more(call: Call[Following, None], feed: Feed, after: int) -> tuple[bytes, int]:
    """What comes after a number, as events, and the number of the last of them."""
    if after >= feed.start:
        return feed.after(after), max(after, feed.end)  # who read the store may be ahead of the feed for a moment
    try:
        rows = await call.resources.store.read(call.session_id, after=after, limit=_PAGE, owner=call.owner)
    except TalkfoldError as error:
        feed.failure = feed.failure or error
        return b"", after
    return b"".join(map(event_of, rows)), rows[-1].number if rows else after


def _event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


def _problem(error: TalkfoldError, request_id: str) -> bytes:
    return _event("problem", document_of(error, request_id))
