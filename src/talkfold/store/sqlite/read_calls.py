"""The calls of the SQLite store that change nothing: some reads for the reader each."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from ...errors import CursorAhead
from ...log import LoggedAction
from ...model import SessionStatus
from ..arguments import (
    MOST_ACTIONS,
    MOST_SESSIONS,
    check_digest,
    check_filters,
    check_limit,
    check_name,
    check_number,
    check_title,
)
from ..protocol import CheckReport, Page, Session, StateAt
from .calls import Calls, check_target
from .listing import list_sessions
from .reading import end_of, fold_page, read_actions, read_session
from .snapshots import Warm, load_snapshot
from .verify import Walk

__all__ = ("ReadCalls",)

_FOLLOW_PAGE = 500


class ReadCalls(Calls):
    """Looking at sessions, their logs and states, and following them."""

    async def get(self, session_id: str, *, owner: str | None = None) -> Session:
        check_target(session_id, owner)
        return await self._read(partial(read_session, session_id=session_id, owner=owner, moment=self._moment()))

    async def list(
        self,
        *,
        owner: str | None = None,
        status: SessionStatus | None = None,
        title: str | None = None,
        metadata: Mapping[str, str | int | float | bool | None] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        check_name("owner", owner)
        check_filters(status, metadata, self._metadata_keys)
        check_title(title)
        check_limit(limit, MOST_SESSIONS)
        return await self._read(
            partial(
                list_sessions,
                owner=owner,
                status=status,
                title=title,
                metadata=metadata or {},
                limit=limit,
                cursor=cursor,
                moment=self._moment(),
            )
        )

    async def read(
        self, session_id: str, *, after: int = 0, limit: int = 1000, owner: str | None = None
    ) -> tuple[LoggedAction, ...]:
        check_target(session_id, owner)
        check_number("after", after)
        check_limit(limit, MOST_ACTIONS)

        def page(connection: sqlite3.Connection) -> tuple[LoggedAction, ...]:
            end = end_of(connection, session_id, owner)
            if after > end.number:
                raise CursorAhead(session_id, after, end.number)
            return read_actions(connection, end.key, after, limit)

        return await self._read(page)

    async def subscribe(
        self, session_id: str, *, after: int = 0, owner: str | None = None
    ) -> AsyncGenerator[LoggedAction]:
        check_target(session_id, owner)
        check_number("after", after)
        key = (await self._read(partial(end_of, session_id=session_id, owner=owner))).key
        while True:
            more = self._followers.wait(key, after)
            try:
                page = await self.read(session_id, after=after, limit=_FOLLOW_PAGE, owner=owner)
                if not page:
                    await more
            finally:
                self._followers.leave(key, more)
            for logged in page:
                yield logged
                after = logged.number

    @asynccontextmanager
    async def watch(
        self, session_id: str, told: Callable[[int], object], *, owner: str | None = None
    ) -> AsyncGenerator[int]:
        check_target(session_id, owner)
        key = (await self._read(partial(end_of, session_id=session_id, owner=owner))).key
        watcher = self._followers.watch(key, told)
        try:
            # Read again: what was committed before the watcher was there is in this number, the rest is told to it.
            end = await self._read(partial(end_of, session_id=session_id, owner=owner))
            number = watcher.begin(end.number)
            if number < 0:
                await self._read(partial(end_of, session_id=session_id, owner=owner))  # raises
            yield number
        finally:
            self._followers.unwatch(watcher)

    async def state(self, session_id: str, *, at: int | None = None, owner: str | None = None) -> StateAt:
        check_target(session_id, owner)
        if at is not None:
            check_number("at", at)

        def begin(connection: sqlite3.Connection) -> tuple[int, int, int, Warm]:
            end = end_of(connection, session_id, owner)
            if at is not None and at > end.number:
                raise CursorAhead(session_id, at, end.number)
            to = end.number if at is None else at
            warm = self._warm.get(end.key, to) or load_snapshot(connection, end.key, to)
            return end.key, to, end.size, fold_page(connection, end.key, to, warm)

        key, to, size, warm = await self._read(begin)
        while warm.number < to:  # only a long tail: its pages one by one, with room for other readers between
            further = await self._read(partial(fold_page, key=key, at=to, warm=warm))
            if further.number == warm.number:
                await self.get(session_id, owner=owner)  # erased meanwhile: this raises
                break
            warm = further
        if at is None:
            self._warm.put(key, warm, size)
            self._snapshotter.grown(key, to, size)
        return StateAt(warm.number, warm.state)

    async def check(self, session_id: str, *, owner: str | None = None, since: bytes | None = None) -> CheckReport:
        check_target(session_id, owner)
        check_digest("since", since)
        walk = Walk(session_id, owner, since)
        while await self._read(walk.page):
            pass
        return walk.report()
