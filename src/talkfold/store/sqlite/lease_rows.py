"""Leases as rows: reading and writing them, and telling at one moment which of them are of living runs."""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from msgspec import MsgspecError, convert, to_builtins

from ...codec import decode_json, encode_json
from ...errors import TalkfoldError
from ..lease import Lease, Waiting
from .alive import AliveByte

__all__ = ("LEASE_COLUMNS", "Moment", "NotedLease", "drop_lease", "lease_from", "put_lease", "waiting_from")

LEASE_COLUMNS = "l.run, l.holder, l.since, l.expires, l.waiting, l.alive"


class NotedLease(NamedTuple):
    """A lease as it is stored, of a living run or a dead one. ``alive`` is the byte of the process that holds it."""

    lease: Lease
    alive: int | None


class Moment(NamedTuple):
    """When, and by whose eyes, it is asked which runs live. ``now`` is in milliseconds since 1970."""

    now: int
    alive: AliveByte

    def living(self, noted: NotedLease | None) -> Lease | None:
        """The lease if its run lives: it is not over, and its process is there."""
        if noted is None or self.now >= noted.lease.expires or not self.alive.lives(noted.alive):
            return None
        return noted.lease


def lease_from(row: tuple[Any, ...]) -> NotedLease | None:
    """A lease from a row of ``LEASE_COLUMNS``, which are all NULL where there is none."""
    run, holder, since, expires, waiting, alive = row
    return None if run is None else NotedLease(Lease(run, holder, since, expires, waiting_from(waiting)), alive)


def waiting_from(waiting: str | None) -> Waiting | None:
    """The call that a run waits for, from its column."""
    # A row that somebody spoilt must not hide the session: nobody can answer the call, but anybody can stop it.
    try:
        return None if waiting is None else convert(decode_json(waiting), Waiting)
    except (MsgspecError, TalkfoldError):
        return None


def put_lease(connection: sqlite3.Connection, key: int, noted: NotedLease) -> None:
    """Note who runs the session with this key from now on."""
    lease, alive = noted
    # By the exact path: a prompt may quote half a surrogate pair from what the model sent.
    waiting = None if lease.waiting is None else encode_json(to_builtins(lease.waiting), "waiting").decode()
    connection.execute(
        "INSERT OR REPLACE INTO lease (session, run, holder, since, expires, waiting, alive)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key, lease.run, lease.holder, lease.since, lease.expires, waiting, alive),
    )


def drop_lease(connection: sqlite3.Connection, key: int) -> None:
    """Nobody runs the session with this key any more."""
    connection.execute("DELETE FROM lease WHERE session = ?", (key,))
