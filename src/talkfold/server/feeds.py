"""Live logs for many readers: what a session gets is read and written down once, for all who follow it.

A reader that is far behind reads the store by itself, a page at a time, until it reaches what the feed still has.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from ..codec import encode_logged
from ..errors import CursorAhead, StoreClosed, TalkfoldError
from ..log import LoggedAction
from ..store.protocol import SessionStore

__all__ = ("Feed", "Feeds", "event_of")

_LOG: Final = logging.getLogger("talkfold.server")
_PAGE: Final = 500
_MOST_EVENTS: Final = 1_000
_MOST_BYTES: Final = 2**20


def event_of(row: LoggedAction) -> bytes:
    """A logged action as a server-sent event: its id is the action's number."""
    return b"id: %d\nevent: action\ndata: %s\n\n" % (row.number, encode_logged(row))


class Feed:
    """The end of one session's log: it has every event after ``start``, through ``end``.

    ``failure`` says why there will be no more: the session was erased, or the store closed.
    """

    def __init__(self, store: SessionStore, session_id: str, owner: str | None) -> None:
        self._store = store
        self._session_id = session_id
        self._owner = owner
        self._events: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._news = asyncio.Event()
        self._moved = asyncio.Event()
        self.start: int = 0
        self.end: int = 0
        self.failure: TalkfoldError | None = None

    async def begun(self) -> None:
        """Wait until it knows where the log ends. Raises SessionNotFound, SessionErased, AmbiguousSession."""
        await asyncio.shield(self._begun)

    def after(self, number: int) -> bytes:
        """The events after a number from ``start`` on, as they go over the wire."""
        return b"".join(event for at, event in self._events if at > number)

    async def news(self) -> None:
        """Wait until there is more, or ``failure`` says that there never will be."""
        await self._news.wait()

    def wake(self) -> None:
        """Wake everybody who waits."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def run(self) -> None:
        """Read what comes, until there can be no more."""
        try:
            async with self._store.watch(self._session_id, self._told, owner=self._owner) as end:
                self.start = self.end = end
                self._begun.set_result(None)
                while True:
                    self._moved.clear()
                    rows = await self._store.read(self._session_id, after=self.end, limit=_PAGE, owner=self._owner)
                    if rows:
                        self._add(rows)
                        self.wake()
                    else:
                        await self._moved.wait()
        except TalkfoldError as error:
            self._fail(error)
        except Exception:
            _LOG.exception("the feed of session %s failed", self._session_id)
            self._fail(StoreClosed())
            raise

    def _told(self, number: int) -> None:
        self._moved.set()

    def _add(self, rows: tuple[LoggedAction, ...]) -> None:
        for row in rows:
            event = event_of(row)
            self._events.append((row.number, event))
            self._bytes += len(event)
        self.end = rows[-1].number
        while len(self._events) > _MOST_EVENTS or (self._bytes > _MOST_BYTES and len(self._events) > 1):
            self.start, event = self._events.popleft()
            self._bytes -= len(event)

    def _fail(self, error: TalkfoldError) -> None:
        self.failure = error
        if not self._begun.done():
            self._begun.set_exception(error)
            with suppress(TalkfoldError):
                self._begun.exception()  # whoever waits is told; nobody may wait
        self.wake()


class Feeds:
    """The feeds that somebody follows, one for each session. ``closing``: readers are to go."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._feeds: dict[tuple[str | None, str], tuple[Feed, asyncio.Task[None]]] = {}
        self._readers: dict[Feed, int] = {}
        self.closing: bool = False

    @asynccontextmanager
    async def follow(self, session_id: str, owner: str | None, after: int) -> AsyncGenerator[Feed]:
        """A session's feed, while it is followed. Raises what ``Feed.begun`` does, and CursorAhead."""
        key = owner, session_id
        feed, _ = self._feeds.get(key) or self._begin(key)
        self._readers[feed] = self._readers.get(feed, 0) + 1
        try:
            await feed.begun()
            if after > feed.end:  # who read the store may be ahead of the feed for a moment
                head = (await self._store.get(session_id, owner=owner)).number
                if after > head:
                    raise CursorAhead(session_id, after, head)
            yield feed
        finally:
            self._readers[feed] -= 1
            if not self._readers[feed]:
                del self._readers[feed]
                if self._feeds.get(key, (None,))[0] is feed:
                    self._feeds.pop(key)[1].cancel()

    def _begin(self, key: tuple[str | None, str]) -> tuple[Feed, asyncio.Task[None]]:
        owner, session_id = key
        feed = Feed(self._store, session_id, owner)
        task = asyncio.create_task(feed.run(), name=f"talkfold feed {session_id}")
        self._feeds[key] = feed, task
        task.add_done_callback(lambda _: self._feeds.pop(key, None) if self._is(key, feed) else None)
        return feed, task

    def _is(self, key: tuple[str | None, str], feed: Feed) -> bool:
        return self._feeds.get(key, (None,))[0] is feed

    def close(self) -> None:
        """Send every reader home."""
        self.closing = True
        for feed, _ in self._feeds.values():
            feed.wake()
