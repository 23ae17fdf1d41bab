"""Takes snapshots behind the writer's back: after a commit, when a log has grown enough since its last one."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import OrderedDict
from functools import partial
from typing import NamedTuple

from ...errors import TalkfoldError
from ...model import SessionState
from .reading import fold_page, reading
from .snapshots import FOLD_VERSION, SNAPSHOT_BYTES, Snapshot, Warm, load_snapshot, make_snapshot
from .thread import SqlThread
from .transaction import Transaction
from .writer import Writer

__all__ = (
    "Snapshotter",
    "put_snapshot",
)

_LOG = logging.getLogger("talkfold.store")
_MOST_KNOWN = 1_000
_MOST_HELD = 32 * 1024 * 1024
"""Of how many bytes of log the states are kept, so that the next snapshot need not read the last one."""


class _Last(NamedTuple):
    """A session's newest snapshot, its state (where it is kept), and the size of the log at which to look again."""

    snapshot: Snapshot | None
    state: SessionState | None
    due: int


def _due(size: int) -> int:
    """When to take the next snapshot. A long log may have a longer tail: reading its state takes longer anyway."""
    return size + max(SNAPSHOT_BYTES, size // 32)


def put_snapshot(tx: Transaction, snapshot: Snapshot) -> None:
    tx.connection.execute(
        "INSERT OR REPLACE INTO snapshot (session, number, fold, base, keep, size, state)"
        " SELECT ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM session WHERE key = ? AND erased IS NULL)",
        (*snapshot, snapshot.session),
    )


class Snapshotter:
    """Runs one small task while there is something due, and none otherwise."""

    def __init__(self, reader: SqlThread, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer
        self._last: OrderedDict[int, _Last] = OrderedDict()
        self._held = 0
        self._due: dict[int, tuple[int, int]] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def grown(self, key: int, number: int, size: int) -> None:
        """A log has this many actions and bytes now."""
        last = self._last.get(key)
        if size < (last.due if last else SNAPSHOT_BYTES) or self._closed:
            return
        self._due[key] = (number, size)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    def forget(self, key: int) -> None:
        self._held -= _weight(self._last.pop(key, None))
        self._due.pop(key, None)

    async def _work(self) -> None:
        try:
            while self._due and not self._closed:
                key, (number, size) = self._due.popitem()
                try:
                    await self._take(key, number, size)
                except (TalkfoldError, sqlite3.Error) as error:
                    # A snapshot is a cache: without it reads are slower, not wrong.
                    _LOG.warning("no snapshot of session %d at %d: %s", key, number, error)
                    self._remember(key, _Last(None, None, size + SNAPSHOT_BYTES))
        finally:
            self._task = None

    async def _take(self, key: int, number: int, size: int) -> None:
        last = self._last.get(key)
        if last is None or (last.snapshot is not None and last.state is None):
            last = await self._reader.run(partial(_newest, key=key, at=number))
        if size < last.due:
            self._remember(key, last)
            return
        warm = Warm(last.snapshot.number, last.state) if last.snapshot and last.state else None
        if warm is None:
            warm = await self._reader.run(partial(load_snapshot, key=key, at=0))
        while warm.number < number:
            further = await self._reader.run(partial(fold_page, key=key, at=number, warm=warm))
            if further.number == warm.number:
                return  # erased meanwhile
            warm = further
        made = make_snapshot(key, number, warm.state, size, last.snapshot, last.state)
        if made is None:
            grown = size - (last.snapshot.size if last.snapshot else 0)
            self._remember(key, last._replace(due=size + grown))
            return
        await self._writer.submit(partial(put_snapshot, snapshot=made))
        self._remember(key, _Last(made, warm.state, _due(size)))

    def _remember(self, key: int, last: _Last) -> None:
        self._held += _weight(last) - _weight(self._last.get(key))
        self._last[key] = last
        self._last.move_to_end(key)
        while len(self._last) > _MOST_KNOWN:
            self._held -= _weight(self._last.popitem(last=False)[1])
        for oldest, kept in self._last.items():
            if self._held <= _MOST_HELD:
                break
            self._held -= _weight(kept)
            self._last[oldest] = kept._replace(state=None)

    async def close(self) -> None:
        """Finish the snapshot in hand and take no more."""
        self._closed = True
        if self._task is not None:
            await asyncio.wait([self._task])


def _weight(last: _Last | None) -> int:
    """The bytes of the log whose state is kept."""
    return last.snapshot.size if last is not None and last.snapshot is not None and last.state is not None else 0


def _newest(connection: sqlite3.Connection, *, key: int, at: int) -> _Last:
    with reading(connection):
        warm = load_snapshot(connection, key, at)
        row = connection.execute(
            "SELECT session, number, fold, base, keep, size, x'' FROM snapshot"
            " WHERE session = ? AND number = ? AND fold = ?",
            (key, warm.number, FOLD_VERSION),
        ).fetchone()
    if row is None:
        return _Last(None, None, SNAPSHOT_BYTES)
    snapshot = Snapshot(*row)
    return _Last(snapshot, warm.state, _due(snapshot.size))
