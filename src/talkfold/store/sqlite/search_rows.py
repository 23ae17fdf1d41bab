"""The search index in its tables: what of a log it lacks, how that gets in, and how a session gets out again.

Reading a log and cutting it into texts is done with the reader's connection; the writer only takes finished rows, and
takes them only if the index still stands where it stood when they were made. So any number of processes may index one
file, a crash leaves at worst something to do again, and a session that was erased meanwhile does not come back.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from ...actions import SessionAction
from ...codec import decode_action, decode_actions
from ...errors import TalkfoldError
from ..search.texts import SearchKind, Stream, Text, Texts
from .reading import unreadable
from .transaction import Transaction

__all__ = (
    "MOST_ACTIONS",
    "Step",
    "apply_steps",
    "behind",
    "forget_session",
    "is_off",
    "kind_mark",
    "mend",
    "merge",
    "owner_mark",
    "plan_steps",
    "rows_of",
    "switch",
)

MOST_ACTIONS = 2_000
"""How many actions are read in one go, and written in one transaction: milliseconds, so that nobody waits for it."""

_MOST_BYTES = 4 * 1024 * 1024

_EMPTY = (
    "DROP TABLE search",
    "CREATE VIRTUAL TABLE search USING fts5 (words, marks, last UNINDEXED, tokenize = 'ascii', columnsize = 0)",
    "DELETE FROM search_progress",
)


def owner_mark(owner: str | None) -> str:
    """The word in the index that says whose session a text is in."""
    return "nobody" if owner is None else f"o{sha256(owner.encode()).hexdigest()[:32]}"


def kind_mark(kind: SearchKind) -> str:
    """The word in the index that says what kind of text it is."""
    return f"k{kind.replace('-', '').lower()}"


def rows_of(key: int) -> tuple[int, int]:
    """The lowest and the highest rowid that a text of this session can have."""
    return key << 32, (key + 1 << 32) - 1


def is_off(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM search_switch").fetchone() is not None


def behind(connection: sqlite3.Connection, owner: str | None, key: int | None) -> dict[int, tuple[int, int]]:
    """The sessions whose log goes on after what is indexed, newest first: key to (indexed, newest number)."""
    where, values = "h.hash <> x''", list[object]()
    if key is not None:
        where, values = f"{where} AND h.session = ?", [key]
    elif owner is not None:
        where, values = f"{where} AND h.session IN (SELECT key FROM session WHERE owner = ?)", [owner]
    return {
        row[0]: (row[1], row[2])
        for row in connection.execute(
            "SELECT h.session, ifnull(p.indexed, 0), h.number FROM head h"
            " LEFT JOIN search_progress p ON p.session = h.session"
            f" WHERE h.number > ifnull(p.indexed, 0) AND {where} ORDER BY h.session DESC",
            values,
        )
    }


class Step(NamedTuple):
    """What one session's index needs to come from ``was`` to ``now``; the same where there is nothing to do."""

    key: int
    was: int
    now: int
    texts: tuple[Text, ...]
    streams: str | None


def plan_steps(connection: sqlite3.Connection, keys: Sequence[int]) -> list[Step]:
    """The next steps of the first of these sessions: as many as one transaction should take; none when it is off.

    Call it in a read transaction.
    """
    steps: list[Step] = []
    if is_off(connection):
        return steps
    actions, size = MOST_ACTIONS, _MOST_BYTES
    for key in keys:
        row = connection.execute("SELECT indexed, streams FROM search_progress WHERE session = ?", (key,)).fetchone()
        was, noted = row or (0, None)
        bodies: list[bytes] = []
        for (body,) in connection.execute(
            "SELECT body FROM action WHERE session = ? AND number > ? ORDER BY number LIMIT ?", (key, was, actions)
        ):
            bodies.append(body)
            size -= len(body)
            if size <= 0:
                break
        steps.append(_step(connection, key, was, noted, bodies) if bodies else Step(key, was, was, (), None))
        actions -= max(1, len(bodies))
        if actions <= 0 or size <= 0:
            break
    return steps


def _step(connection: sqlite3.Connection, key: int, was: int, noted: str | None, bodies: list[bytes]) -> Step:
    texts = Texts((stream, _words(connection, key, stream)) for stream in _streams(noted))
    for number, action in _readable(was + 1, bodies):
        texts.add(number, action)
    streams = texts.streams()
    return Step(
        key,
        was,
        was + len(bodies),
        (*texts.finished, *texts.unfinished()),
        json.dumps(streams, separators=(",", ":")) if streams else None,
    )


def _readable(first: int, bodies: list[bytes]) -> Iterator[tuple[int, SessionAction]]:
    try:
        yield from enumerate(decode_actions(bodies), first)
    except TalkfoldError:
        # What cannot be read is passed over, as `check` will tell: it must not hide the rest.
        for number, body in enumerate(bodies, first):
            if unreadable([(number, body)]) is None:
                yield number, decode_action(body, max_bytes=len(body))


def _streams(noted: str | None) -> list[Stream]:
    return [Stream(*each) for each in json.loads(noted)] if noted else []


def _words(connection: sqlite3.Connection, key: int, stream: Stream) -> str:
    row = connection.execute("SELECT words FROM search WHERE rowid = ?", (rows_of(key)[0] | stream.first,)).fetchone()
    return "" if row is None else str(row[0])


def apply_steps(tx: Transaction, steps: Sequence[Step]) -> None:
    """Put the steps into the index; one that does not go on from where the index stands is left out."""
    connection = tx.connection
    if is_off(connection):
        return
    for step in steps:
        row = connection.execute(
            "SELECT ifnull(p.indexed, 0), s.owner FROM session s LEFT JOIN search_progress p ON p.session = s.key"
            " WHERE s.key = ? AND s.erased IS NULL",
            (step.key,),
        ).fetchone()
        if row is None or row[0] != step.was or step.now == step.was:
            continue
        owner, base = owner_mark(row[1]), rows_of(step.key)[0]
        connection.executemany(
            "INSERT OR REPLACE INTO search (rowid, words, marks, last) VALUES (?, ?, ?, ?)",
            [(base | it.first, it.words, f"{owner} {kind_mark(it.kind)}", it.last) for it in step.texts],
        )
        connection.execute(
            "INSERT OR REPLACE INTO search_progress (session, indexed, streams) VALUES (?, ?, ?)",
            (step.key, step.now, step.streams),
        )


def forget_session(tx: Transaction, key: int) -> None:
    """Take a session out of the index. Its words stay in older segments until they are merged.

    A damaged index is emptied: it can be made again, and nothing may keep a session from being erased.
    """
    try:
        tx.connection.execute("DELETE FROM search WHERE rowid BETWEEN ? AND ?", rows_of(key))
        tx.connection.execute("DELETE FROM search_progress WHERE session = ?", (key,))
    except sqlite3.DatabaseError as error:
        _empty_damaged(tx.connection, error)


def merge(connection: sqlite3.Connection) -> None:
    """Leave no word in the index of texts that were taken out of it. Outside of a transaction: it makes its own."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        try:
            connection.execute("INSERT INTO search (search) VALUES ('optimize')")
        except sqlite3.DatabaseError as error:
            _empty_damaged(connection, error)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def mend(tx: Transaction) -> bool:
    """Empty the index if it is damaged, so that it is made again. Whether it was."""
    try:
        tx.connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        _empty_damaged(tx.connection, error)
        return True
    return False


def _empty_damaged(connection: sqlite3.Connection, error: sqlite3.DatabaseError) -> None:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
        raise error
    for statement in _EMPTY:
        connection.execute(statement)


def switch(tx: Transaction, on: bool) -> bool:
    """Say in the database whether there is a search; off, the index is empty. Whether that changed anything."""
    connection = tx.connection
    if is_off(connection) is not on:
        return False
    if on:
        connection.execute("DELETE FROM search_switch")
        return True
    connection.execute("INSERT INTO search_switch (off) VALUES (1)")
    for statement in _EMPTY:
        connection.execute(statement)
    return True
