"""Reading the database: plain functions over a connection, for the reader's thread and inside transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...codec import decode_action, decode_actions, decode_json, iter_actions
from ...errors import StoreDamaged, TalkfoldError
from ...fold import fold
from ...log import LoggedAction
from ...model import Json, SessionState
from ..protocol import Session
from .lease_rows import LEASE_COLUMNS, Moment, lease_from
from .snapshots import Warm, WarmStates, load_snapshot
from .transaction import find_session

__all__ = (
    "MOST_MISSING",
    "SESSION_COLUMNS",
    "SESSION_TABLES",
    "End",
    "end_of",
    "fold_page",
    "read_actions",
    "read_session",
    "read_state",
    "reading",
    "session_from",
    "session_of",
    "unreadable",
)

MOST_MISSING = 1_000
"""How many actions a version conflict carries at most."""

_FOLD_PAGE = 40_000
"""Rows folded in one go: the tail after a snapshot, even of a log of a million actions, for every fold looks once
through the state that it begins with. A read transaction is never open for longer than such a page takes."""

SESSION_COLUMNS = (
    "s.id, h.status, h.number, h.hash, h.size, s.created, h.updated, s.owner, s.title, s.metadata,"
    f" s.forked_from, s.forked_at, {LEASE_COLUMNS}"
)

SESSION_TABLES = "session s JOIN head h ON h.session = s.key LEFT JOIN lease l ON l.session = s.key"

_ACTIONS = (
    "SELECT number, time, body, hash, run, actor, meta FROM action"
    " WHERE session = ? AND number > ? ORDER BY number LIMIT ?"
)


@contextmanager
def reading(connection: sqlite3.Connection) -> Generator[None]:
    """A short read transaction: everything inside sees one moment of the database."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def session_from(row: tuple[Any, ...], moment: Moment) -> Session:
    """A session from a row of ``SESSION_COLUMNS``, with the lease of a run that lives at this moment."""
    identity, status, number, digest, size, created, updated, owner, title, metadata, forked_from, forked_at, *lease = (
        row
    )
    return Session(
        identity,
        status,
        number,
        digest,
        size,
        created,
        updated,
        owner,
        title,
        _readable(metadata),
        forked_from,
        forked_at,
        moment.living(lease_from(tuple(lease))),
    )


def _readable(metadata: str | None) -> dict[str, Json] | None:
    # One bad row must not hide the others; the check tells of it.
    try:
        return None if metadata is None else decode_json(metadata)
    except TalkfoldError:
        return None


def read_session(connection: sqlite3.Connection, session_id: str, owner: str | None, moment: Moment) -> Session:
    """Raises SessionNotFound, SessionErased, AmbiguousSession."""
    return session_of(connection, find_session(connection, session_id, owner), moment)


def session_of(connection: sqlite3.Connection, key: int, moment: Moment) -> Session:
    """The session with this key. Raises StoreDamaged when nothing says where its log ends."""
    row = connection.execute(f"SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES} WHERE s.key = ?", (key,)).fetchone()
    if row is None:
        raise StoreDamaged(f"nothing says where the log of session {key} ends")
    return session_from(row, moment)


class End(NamedTuple):
    """Where a session's log ends: its key, newest number, and bytes."""

    key: int
    number: int
    size: int


def end_of(connection: sqlite3.Connection, session_id: str, owner: str | None) -> End:
    """Raises SessionNotFound, SessionErased, AmbiguousSession."""
    key = find_session(connection, session_id, owner)
    row = connection.execute("SELECT number, size FROM head WHERE session = ?", (key,)).fetchone()
    if row is None:
        raise StoreDamaged(f"nothing says where the log of session {key} ends")
    return End(key, *row)


def read_actions(connection: sqlite3.Connection, key: int, after: int, limit: int) -> tuple[LoggedAction, ...]:
    """Up to ``limit`` actions after a number, decoded."""
    rows = connection.execute(_ACTIONS, (key, after, limit)).fetchall()
    try:
        actions = decode_actions([row[2] for row in rows])
        return tuple(
            LoggedAction(number, time, action, body, link, run, actor, None if meta is None else decode_json(meta))
            for (number, time, body, link, run, actor, meta), action in zip(rows, actions, strict=True)
        )
    except TalkfoldError as error:
        raise _damaged([(row[0], row[2]) for row in rows], error) from error


def fold_page(connection: sqlite3.Connection, key: int, at: int, warm: Warm) -> Warm:
    """Fold up to ``_FOLD_PAGE`` more actions into a state, not beyond ``at``."""
    bodies = [
        row[0]
        for row in connection.execute(
            "SELECT body FROM action WHERE session = ? AND number > ? AND number <= ? ORDER BY number",
            (key, warm.number, min(at, warm.number + _FOLD_PAGE)),
        )
    ]
    try:
        return Warm(warm.number + len(bodies), fold(iter_actions(bodies), warm.state))
    except TalkfoldError as error:
        raise _damaged(enumerate(bodies, warm.number + 1), error) from error


def unreadable(rows: Iterable[tuple[int, bytes]]) -> tuple[int, TalkfoldError] | None:
    """The first of these actions (number, body) that cannot be read, and why."""
    for number, body in rows:
        try:
            decode_action(body, max_bytes=len(body))
        except TalkfoldError as error:
            return number, error
    return None


def _damaged(rows: Iterable[tuple[int, bytes]], error: TalkfoldError) -> TalkfoldError:
    # What is stored was checked before it was written: that it cannot be read is no fault of a caller's.
    found = unreadable(rows)
    return StoreDamaged(f"action {found[0]} cannot be read: {found[1]}" if found else str(error))


def read_state(connection: sqlite3.Connection, key: int, at: int, states: WarmStates) -> SessionState:
    """The state after the action ``at``, from a warm state or a snapshot and the tail after it."""
    warm = states.get(key, at) or load_snapshot(connection, key, at)
    while warm.number < at:
        further = fold_page(connection, key, at, warm)
        if further.number == warm.number:
            break
        warm = further
    return warm.state
