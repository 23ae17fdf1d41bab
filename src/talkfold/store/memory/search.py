"""Searching in memory: every text is looked at. Slow and plain, which is what the other stores are compared with."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from ...errors import InvalidCursor, SearchIsOff
from ...redaction import Redaction
from ..arguments import MOST_HITS, check_kinds, check_limit, check_name
from ..search.answer import Indexing, SearchHit, SearchPage, hit_of
from ..search.query import Query, parse_query
from ..search.texts import SearchKind, Text
from .leases import MemoryLeases
from .records import Record
from .texts import Found

__all__ = ("MemorySearch",)


class MemorySearch(MemoryLeases):
    """Implements the part of ``SessionStore`` that searches, whose docstrings are the contract."""

    def __init__(self, clock: Callable[[], int], redaction: Redaction | None) -> None:
        super().__init__(clock, redaction)
        self._searched = True

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
        self._refuse_closed()
        asked = parse_query(query)
        check_name("owner", owner)
        check_name("session_id", session_id)
        check_kinds(kinds)
        check_limit(limit, MOST_HITS)
        if session_id is None:
            records = [each for each in self._in_order if owner is None or each.owner == owner]
        else:
            records = [self._find(session_id, owner)]
        if not self._searched:
            raise SearchIsOff
        before = None if cursor is None else _place_of(cursor)
        if told is not None:
            total = sum(len(each.log) - each.found.read for each in records)
            told(total, total)
        page: list[tuple[Record, Text]] = []
        for record, text in _texts(records, kinds, asked):
            if before is not None and (record.serial, text.first) >= before:
                continue
            if len(page) == limit:
                last, shown = page[-1]
                return SearchPage(_hits(page, asked), f"t{last.serial:x}.{shown.first:x}")
            page.append((record, text))
        return SearchPage(_hits(page, asked))

    async def set_search(self, on: bool, *, told: Indexing | None = None) -> None:
        self._refuse_closed()
        if not on:
            for record in self._in_order:
                record.found = Found()
        self._searched = on


def _texts(records: list[Record], kinds: Collection[SearchKind], asked: Query) -> Iterator[tuple[Record, Text]]:
    for record in reversed(records):
        for text in record.found.up_to(record.log):
            if (not kinds or text.kind in kinds) and asked.matches(text.words):
                yield record, text


def _hits(page: list[tuple[Record, Text]], asked: Query) -> tuple[SearchHit, ...]:
    return tuple(
        hit_of(
            record.id,
            record.owner,
            (text.first, text.last),
            text.kind,
            [row.action for row in record.log[text.first - 1 : text.last]],
            asked,
        )
        for record, text in page
    )


def _place_of(cursor: str) -> tuple[int, int]:
    found = re.fullmatch(r"t(0|[1-9a-f][0-9a-f]{0,7})\.([1-9a-f][0-9a-f]{0,7})", cursor)
    if found is None:
        raise InvalidCursor(cursor)
    return int(found[1], 16), int(found[2], 16)
