"""Snapshots: states to start folding from, small enough that they never weigh on the log.

A snapshot stores only the messages that differ from the snapshot before it (``base``): of a conversation that
grows, every message is stored about once. One is taken when at least ``SNAPSHOT_BYTES`` of log came after the last, and
when what it would store is at most half of that; so together they are at most half of the log, and reading a
state costs its own size and a tail in proportion to it, never the whole log. Each is a cache: any of them may be
dropped at any time, and one whose base is gone is passed over.
"""

from __future__ import annotations

import sqlite3
import sys
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from ...codec import encode_state, restore_state
from ...errors import TalkfoldError, TooDeep
from ...model import EMPTY_SESSION, AgentMessage, SessionState

__all__ = (
    "FOLD_VERSION",
    "SNAPSHOT_BYTES",
    "Snapshot",
    "Warm",
    "WarmStates",
    "load_snapshot",
    "make_snapshot",
)

FOLD_VERSION = 1
"""Goes up when the fold gives other states for old logs; snapshots of another version are passed over."""

SNAPSHOT_BYTES = 256 * 1024


class Snapshot(NamedTuple):
    """A row of the snapshot table."""

    session: int
    number: int
    fold: int
    base: int
    keep: int
    size: int
    state: bytes


class Warm(NamedTuple):
    """A state in memory, and the number of the last action in it."""

    number: int
    state: SessionState


class WarmStates:
    """The states that were read last, bounded by the bytes of the logs they came from. Any thread may ask."""

    def __init__(self, limit: int = 64 * 1024 * 1024) -> None:
        self._limit = limit
        self._lock = Lock()
        self._held = 0
        self._states: OrderedDict[int, tuple[Warm, int]] = OrderedDict()

    def get(self, key: int, at: int) -> Warm | None:
        """The warm state of a session unless it is newer than ``at``."""
        with self._lock:
            found = self._states.get(key)
            if found is None or found[0].number > at:
                return None
            self._states.move_to_end(key)
            return found[0]

    def put(self, key: int, warm: Warm, size: int) -> None:
        with self._lock:
            old = self._states.get(key)
            if old is not None and old[0].number > warm.number:
                return
            self._held += size - (old[1] if old else 0)
            self._states[key] = (warm, size)
            self._states.move_to_end(key)
            while self._held > self._limit and len(self._states) > 1:
                _, (_, freed) = self._states.popitem(last=False)
                self._held -= freed

    def drop(self, key: int) -> None:
        with self._lock:
            old = self._states.pop(key, None)
            self._held -= old[1] if old else 0


def load_snapshot(connection: sqlite3.Connection, key: int, at: int) -> Warm:
    """The newest whole snapshot at or before ``at``; the empty session at 0 when there is none."""
    rows: dict[int, tuple[int, int]] = {
        number: (base, keep)
        for number, base, keep in connection.execute(
            "SELECT number, base, keep FROM snapshot WHERE session = ? AND number <= ? AND fold = ?",
            (key, at, FOLD_VERSION),
        )
    }
    broken: set[int] = set()
    for newest in sorted(rows, reverse=True):
        chain = _chain(rows, newest)
        if chain is not None and broken.isdisjoint(link[0] for link in chain):
            state = _assemble(connection, key, chain, broken)
            if state is not None:
                return Warm(newest, state)
    return Warm(0, EMPTY_SESSION)


def _chain(rows: dict[int, tuple[int, int]], newest: int) -> list[tuple[int, int, int]] | None:
    """From newest to oldest: (number, messages to keep from it, messages kept before it). None when one is gone.

    A snapshot that contributes no message is left out.
    """
    chain: list[tuple[int, int, int]] = []
    number, wanted = newest, -1
    while number and wanted:
        if number not in rows:
            return None
        base, keep = rows[number]
        if base >= number or keep < 0:
            return None  # no snapshot builds on itself or on a later one: this row is damaged
        if wanted < 0 or wanted > keep:
            chain.append((number, wanted, keep))
            wanted = keep
        number = base
    return chain


def _assemble(
    connection: sqlite3.Connection, key: int, chain: list[tuple[int, int, int]], broken: set[int]
) -> SessionState | None:
    """The state of a chain. One that cannot be read is noted in ``broken``; the check reports it, a read goes on."""
    messages: list[AgentMessage] = []
    state = EMPTY_SESSION
    for number, wanted, keep in reversed(chain):
        body = connection.execute(
            "SELECT state FROM snapshot WHERE session = ? AND number = ?", (key, number)
        ).fetchone()[0]
        try:
            state = restore_state(body)
        except TalkfoldError:
            broken.add(number)
            return None
        if keep > len(messages):
            broken.add(number)
            return None
        del messages[keep:]
        messages.extend(state.messages if wanted < 0 else state.messages[: wanted - keep])
    return SessionState(tuple(messages), state.status, state.error)


def make_snapshot(
    session: int,
    number: int,
    state: SessionState,
    size: int,
    base: Snapshot | None,
    before: SessionState | None,
) -> Snapshot | None:
    """A snapshot of ``state``, storing what differs from ``before``, the state at ``base`` that it was folded from.

    ``size`` is the log's bytes through ``number``. ``None`` when it would be larger than half of the log since
    the base, or cannot be encoded.
    """
    keep = 0
    if base is not None and before is not None:
        # By identity: the fold shares what it does not touch, and equal values may differ on the wire.
        for old, new in zip(before.messages, state.messages, strict=False):
            if old is not new:
                break
            keep += 1
    try:
        body = encode_state(
            SessionState(state.messages[keep:], state.status, state.error),
            max_bytes=sys.maxsize,
            max_depth=sys.maxsize,
        )
    except TooDeep:
        return None
    since = size - (base.size if base else 0)
    if len(body) * 2 > since:
        return None
    return Snapshot(session, number, FOLD_VERSION, base.number if base else 0, keep, size, body)
