"""Searching in the index: the query in FTS5's language, a cursor that holds still, and hits made from the log."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from ...codec import decode_action
from ...errors import InvalidCursor, SearchIsOff, StoreDamaged
from ..search.answer import SearchHit, SearchPage, hit_of
from ..search.query import Query
from ..search.texts import SEARCH_KINDS, SearchKind
from .reading import read_actions
from .search_rows import is_off, kind_mark, owner_mark, rows_of

__all__ = ("search_page",)

_KINDS: dict[str, SearchKind] = {kind_mark(kind): kind for kind in SEARCH_KINDS}

_SQL = (
    "SELECT search.rowid, search.marks, search.last, s.id, s.owner FROM search"
    " JOIN session s ON s.key = search.rowid >> 32"
    " WHERE search MATCH ? AND search.rowid BETWEEN ? AND ? AND s.erased IS NULL AND (? IS NULL OR s.owner = ?)"
    " ORDER BY search.rowid DESC LIMIT ?"
)


def search_page(
    connection: sqlite3.Connection,
    query: Query,
    *,
    owner: str | None,
    key: int | None,
    kinds: Sequence[SearchKind],
    limit: int,
    cursor: str | None,
) -> SearchPage:
    """One page, newest session first. A cursor is the rowid of the last text shown. Raises SearchIsOff."""
    if is_off(connection):
        raise SearchIsOff
    low, high = (0, 2**63 - 1) if key is None else rows_of(key)
    if cursor is not None:
        high = min(high, _row_of(cursor) - 1)
    rows = connection.execute(_SQL, (_expression(query, owner, kinds), low, high, owner, owner, limit + 1)).fetchall()
    hits = tuple(_hit(connection, row, query) for row in rows[:limit])
    return SearchPage(hits, f"f{rows[limit - 1][0]:x}" if len(rows) > limit else None)


def _expression(query: Query, owner: str | None, kinds: Sequence[SearchKind]) -> str:
    """The query for FTS5. Only letters and digits come from outside, and they stand in quotation marks."""
    terms = [f'"{" ".join(term.words)}"{" *" if term.prefix else ""}' for term in query.terms]
    narrowed = [f"words : ({' AND '.join(terms)})"]
    if owner is not None:
        narrowed.append(f"marks : {owner_mark(owner)}")
    if kinds:
        marks = " OR ".join(kind_mark(kind) for kind in dict.fromkeys(kinds))
        narrowed.append(f"marks : ({marks})")
    return " AND ".join(narrowed)


def _hit(connection: sqlite3.Connection, row: tuple[int, str, int, str, str | None], query: Query) -> SearchHit:
    rowid, marks, last, session_id, owner = row
    key, first = rowid >> 32, rowid & 0xFFFFFFFF
    kind = _KINDS[marks.partition(" ")[2]]
    if kind == "text-delta":
        actions = [row.action for row in read_actions(connection, key, first - 1, last - first + 1)]
    else:
        body = connection.execute("SELECT body FROM action WHERE session = ? AND number = ?", (key, first)).fetchone()
        actions = [] if body is None else [decode_action(body[0], max_bytes=len(body[0]))]
    if not actions:
        raise StoreDamaged(f"action {first} of session {session_id!r} is gone")
    return hit_of(session_id, owner, (first, last), kind, actions, query)


def _row_of(cursor: str) -> int:
    # Only as it was given out, and never more than a rowid can be.
    if re.fullmatch(r"f[1-9a-f][0-9a-f]{0,14}", cursor):
        return int(cursor[1:], 16)
    raise InvalidCursor(cursor)
