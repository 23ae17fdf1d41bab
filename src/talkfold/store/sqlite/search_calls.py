"""The calls of the SQLite store that search."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from ...errors import StoreDamaged
from ..arguments import MOST_HITS, check_kinds, check_limit, check_name
from ..search.answer import Indexing, SearchPage
from ..search.query import parse_query
from ..search.texts import SearchKind
from .connection import sqlite_errors
from .read_calls import ReadCalls
from .reading import end_of
from .search_pages import search_page
from .search_rows import mend, switch

__all__ = ("SearchCalls",)


class SearchCalls(ReadCalls):
    """Implements the part of ``SessionStore`` that searches, whose docstrings are the contract."""

    async def search(
        self,
        query: str,
        *,
        owner: str | None = None,
        session_id: str | None = None,
        kinds: Collection[SearchKind] = (),
        limit: int = 20,
        cursor: str | None = None,
        told: Indexing | None = None,
    ) -> SearchPage:
        asked = parse_query(query)
        check_name("owner", owner)
        check_name("session_id", session_id)
        check_kinds(kinds)
        check_limit(limit, MOST_HITS)
        key = None
        if session_id is not None:
            key = (await self._read(partial(end_of, session_id=session_id, owner=owner))).key
        self._refuse_closed()
        page = partial(search_page, query=asked, owner=owner, key=key, kinds=tuple(kinds), limit=limit, cursor=cursor)
        try:
            await self._catch_up(owner, key, told)
            return await self._read(page)
        except StoreDamaged:
            if not await self._write(mend):
                raise
            await self._catch_up(owner, key, told)
            return await self._read(page)

    async def set_search(self, on: bool, *, told: Indexing | None = None) -> None:
        changed = await self._write(partial(switch, on=on))
        if on and changed:
            await self._catch_up(None, None, told)

    async def _catch_up(self, owner: str | None, key: int | None, told: Indexing | None) -> None:
        with sqlite_errors(self.path, self._timeout):
            await self._indexer.catch_up(owner, key, told)
