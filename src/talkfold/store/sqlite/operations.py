"""What can be done to the database: one function each, run inside a write transaction.

Each checks everything first and writes after that, so an operation that is refused leaves nothing behind in the
transaction that it shares with others.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...codec import decode_json
from ...errors import (
    CursorAhead,
    KeyReused,
    LeaseLost,
    SessionErased,
    SessionExists,
    SessionNotFound,
    StoreDamaged,
    VersionConflict,
)
from ...log import LoggedAction, chain_start
from ...model import Json
from ..entries import Batch, encode_metadata
from ..lease import Hold
from ..protocol import ABSENT, ANY, Appended, ExpectedVersion, Session
from .leases import held, take_over, touch
from .reading import MOST_MISSING, read_actions, session_of
from .transaction import Head, Transaction

__all__ = ("append", "create", "fork", "update")


def _insert_session(
    tx: Transaction,
    session_id: str,
    owner: str | None,
    title: str | None = None,
    metadata: bytes | None = None,
    forked_from: str | None = None,
    forked_at: int | None = None,
) -> int:
    key = tx.connection.execute(
        "INSERT INTO session (id, owner, title, metadata, created, forked_from, forked_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (session_id, owner, title, metadata and metadata.decode(), tx.now, forked_from, forked_at),
    ).lastrowid
    tx.connection.execute(
        "INSERT INTO head (session, number, hash, status, turns, size, updated) VALUES (?, 0, ?, 'idle', 0, 0, ?)",
        (key, chain_start(session_id), tx.now),
    )
    assert key is not None
    tx.added(session_id)
    return key


def _refuse_taken(tx: Transaction, session_id: str, owner: str | None) -> None:
    row = tx.connection.execute(
        "SELECT erased, erased_by FROM session WHERE id = ? AND ifnull(owner, '') = ifnull(?, '')",
        (session_id, owner),
    ).fetchone()
    if row is None:
        return
    if row[0] is not None:
        raise SessionErased(session_id, row[0], row[1])
    raise SessionExists(session_id)


def create(
    tx: Transaction,
    session_id: str,
    owner: str | None,
    title: str | None,
    metadata: bytes | None,
    batch: Batch | None,
) -> Session:
    _refuse_taken(tx, session_id, owner)
    key = _insert_session(tx, session_id, owner, title, metadata)
    if batch is not None:
        tx.log(tx.head_of(key), batch)
        tx.flush()
    return session_of(tx.connection, key, tx.moment)


def append(
    tx: Transaction,
    session_id: str,
    owner: str | None,
    batch: Batch,
    expected: ExpectedVersion,
    key: str | None,
    request: bytes | None,
    hold: Hold | None = None,
) -> Appended:
    head = _head_or_new(tx, session_id, owner, expected)
    if key is not None and head is not None:
        row = tx.connection.execute(
            "SELECT first, last, request FROM append_key WHERE session = ? AND key = ?", (head.key, key)
        ).fetchone()
        if row is not None:
            if row[2] != request:
                raise KeyReused(session_id, key)
            return Appended(row[0], row[1], repeated=True)
    if hold is not None:
        if head is None:
            raise LeaseLost(session_id, hold.run)
        held(session_id, head, hold)
    if head is not None:
        if expected is ABSENT:
            raise VersionConflict(session_id, "absent", head.number)
        if isinstance(expected, int) and expected != head.number:
            tx.flush()
            missing: tuple[LoggedAction, ...] = ()
            if expected < head.number:
                missing = read_actions(tx.connection, head.key, expected, MOST_MISSING)
            raise VersionConflict(session_id, expected, head.number, missing)
        if hold is None:
            take_over(tx, session_id, head, batch)
    else:
        head = tx.head_of(_insert_session(tx, session_id, owner))
    first, last = tx.log(head, batch)
    if head.lease is not None:
        touch(tx, head, batch, hold)
    if key is not None:
        tx.connection.execute(
            "INSERT INTO append_key (session, key, first, last, request) VALUES (?, ?, ?, ?, ?)",
            (head.key, key, first, last, request),
        )
    return Appended(first, last)


def _head_or_new(tx: Transaction, session_id: str, owner: str | None, expected: ExpectedVersion) -> Head | None:
    """The session's head, or ``None`` where the append may create it."""
    try:
        return tx.head(session_id, owner)
    except SessionNotFound:
        if expected is ANY or expected is ABSENT:
            return None
        raise


def update(
    tx: Transaction,
    session_id: str,
    owner: str | None,
    title: str | None,
    metadata: Mapping[str, Json] | None,
) -> Session:
    key = tx.head(session_id, owner).key
    if metadata is not None:
        stored = tx.connection.execute("SELECT metadata FROM session WHERE key = ?", (key,)).fetchone()[0]
        merged: dict[str, Json] = {**(decode_json(stored) if stored else {}), **metadata}
        kept = {name: value for name, value in merged.items() if value is not None}
        encoded = encode_metadata("metadata", kept) if kept else None
        tx.connection.execute("UPDATE session SET metadata = ? WHERE key = ?", (encoded and encoded.decode(), key))
    if title is not None:
        tx.connection.execute("UPDATE session SET title = ? WHERE key = ?", (title, key))
    tx.flush()
    return session_of(tx.connection, key, tx.moment)


def fork(
    tx: Transaction, session_id: str, owner: str | None, at: int | None, new_id: str, title: str | None
) -> Session:
    head = tx.head(session_id, owner)
    tx.flush()
    at = head.number if at is None else at
    if at > head.number:
        raise CursorAhead(session_id, at, head.number)
    source = session_of(tx.connection, head.key, tx.moment)
    _refuse_taken(tx, new_id, source.owner)
    metadata = encode_metadata("metadata", source.metadata)
    new_title = source.title if title is None else title
    copy = tx.head_of(_insert_session(tx, new_id, source.owner, new_title, metadata, session_id, at))
    for start in range(0, at, _PAGE):
        wanted = min(_PAGE, at - start)
        page = read_actions(tx.connection, head.key, start, wanted)
        if len(page) < wanted:
            raise StoreDamaged(f"the log of session {session_id!r} ends at {start + len(page)}; {at} was written")
        rows = [(row.time, row.run, row.actor, encode_metadata("meta", row.meta), row.body) for row in page]
        tx.log(copy, Batch(rows, [row.action for row in page], sum(len(row.body) for row in page)))
        tx.flush()
    return session_of(tx.connection, copy.key, tx.moment)


_PAGE = 5_000
