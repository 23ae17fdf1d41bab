"""Listing sessions: filters as bound parameters, and a cursor that stays good while others write."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from ...codec import encode_json
from ...errors import InvalidCursor
from ...model import SessionStatus
from ..protocol import Page
from .lease_rows import Moment
from .reading import SESSION_COLUMNS, SESSION_TABLES, session_from

__all__ = ("list_sessions",)


def list_sessions(
    connection: sqlite3.Connection,
    *,
    owner: str | None,
    status: SessionStatus | None,
    title: str | None,
    metadata: Mapping[str, str | int | float | bool | None],
    limit: int,
    cursor: str | None,
    moment: Moment,
) -> Page:
    """One page, newest session first. A cursor is the key of the last session shown: keys never change."""
    where, values = ["s.erased IS NULL"], list[object]()
    if owner is not None:
        where.append("s.owner = ?")
        values.append(owner)
    if status is not None:
        where.append("h.status = ?")
        values.append(status)
    if title is not None:
        where.append("instr(lower(s.title), lower(?)) > 0")
        values.append(title)
    for key, value in metadata.items():
        # `->` gives JSON text, so 1, true and "1" stay three different values.
        path = f'$."{key}"'
        if value is None:
            where.append("CASE WHEN json_valid(s.metadata) THEN s.metadata -> ? END IS NULL")
            values.append(path)
        else:
            where.append("CASE WHEN json_valid(s.metadata) THEN s.metadata -> ? END = ?")
            values += (path, encode_json(value, "metadata").decode())
    if cursor is not None:
        where.append("s.key < ?")
        values.append(_key_of(cursor))
    with _any_text(connection):
        rows = connection.execute(
            f"SELECT {SESSION_COLUMNS}, s.key FROM {SESSION_TABLES}"
            f" WHERE {' AND '.join(where)} ORDER BY s.key DESC LIMIT ?",
            (*values, limit + 1),
        ).fetchall()
    page = rows[:limit]
    more = f"k{page[-1][-1]:x}" if len(rows) > limit else None
    return Page(tuple(session_from(row[:-1], moment) for row in page), more)


@contextmanager
def _any_text(connection: sqlite3.Connection) -> Generator[None]:
    """Read texts that are no UTF-8 as far as that goes: one bad row must not hide the others."""
    connection.text_factory = _decoded
    try:
        yield
    finally:
        connection.text_factory = str


def _decoded(stored: bytes) -> str:
    return stored.decode(errors="replace")


def _key_of(cursor: str) -> int:
    # Only as it was given out, and never more than a key can be.
    if re.fullmatch(r"k[1-9a-f][0-9a-f]{0,14}", cursor):
        return int(cursor[1:], 16)
    raise InvalidCursor(cursor)
