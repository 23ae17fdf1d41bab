"""Picking the sessions that a rule of retention is over for: by the reader in pages, and again by the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..retention import Expired, Retention, latest
from .erasing import erase_session
from .lease_rows import LEASE_COLUMNS, Moment, lease_from
from .transaction import Transaction

__all__ = ("Due", "batches", "due_page", "erase_due")

_PAGE = 2_000
_MOST_SESSIONS = 100
_MOST_BYTES = 4 * 1024 * 1024
"""What is erased in one transaction at most, unless one session alone is more: others who write wait for it."""


class Due(NamedTuple):
    """A session that is over, and its key."""

    key: int
    session: Expired


def due_page(connection: sqlite3.Connection, *, rule: Retention, moment: Moment, after: int) -> tuple[list[Due], int]:
    """The sessions that are over among the next ones after a key, and the last key seen; 0 when there are no more."""
    where, values = _where(rule, moment.now)
    rows = connection.execute(f"{_DUE} WHERE {where} AND s.key > ? ORDER BY s.key LIMIT ?", (*values, after, _PAGE))
    found = rows.fetchall()
    due = [Due(row[0], Expired(*row[1:7])) for row in found if moment.living(lease_from(row[7:])) is None]
    return due, found[-1][0] if len(found) == _PAGE else 0


def erase_due(tx: Transaction, *, rule: Retention, keys: Sequence[int], by: str | None) -> list[Due]:
    """Erase those of these sessions that are over even now: what was written to meanwhile, or runs, stays."""
    tx.flush()
    where, values = _where(rule, tx.now)
    erased: list[Due] = []
    for key in keys:
        row = tx.connection.execute(f"{_DUE} WHERE {where} AND s.key = ?", (*values, key)).fetchone()
        if row is not None and tx.moment.living(lease_from(row[7:])) is None:
            erase_session(tx, key, by)
            erased.append(Due(key, Expired(*row[1:7])))
    return erased


def batches(due: Sequence[Due]) -> Iterator[list[int]]:
    """The keys in groups that one transaction erases quickly."""
    batch: list[int] = []
    held = 0
    for each in due:
        if batch and (len(batch) == _MOST_SESSIONS or held + each.session.size > _MOST_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(each.key)
        held += each.session.size
    if batch:
        yield batch


_DUE = (
    f"SELECT s.key, s.id, h.status, h.number, h.size, h.updated, s.owner, {LEASE_COLUMNS}"
    " FROM session s JOIN head h ON h.session = s.key LEFT JOIN lease l ON l.session = s.key"
)


def _where(rule: Retention, now: int) -> tuple[str, list[object]]:
    where, values = ["s.erased IS NULL", "h.updated <= ?"], list[object]([latest(rule, now)])
    if rule.owner is not None:
        where.append("s.owner = ?")
        values.append(rule.owner)
    if rule.statuses:
        where.append(f"h.status IN ({', '.join('?' * len(rule.statuses))})")
        values += rule.statuses
    return " AND ".join(where), values
