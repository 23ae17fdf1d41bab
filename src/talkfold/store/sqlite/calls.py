"""What every call of the SQLite store needs: the writer, the reader, and a look at the clock."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection
from typing import TypeVar

from ...errors import ForkedProcess, StoreClosed
from ...redaction import Redaction
from ..arguments import check_name
from .alive import AliveByte
from .connection import sqlite_errors
from .followers import Followers
from .indexer import Indexer
from .lease_rows import Moment
from .reading import reading
from .scrubber import Scrubber
from .snapshots import WarmStates
from .snapshotter import Snapshotter
from .thread import SqlThread
from .writer import Operation, Writer

__all__ = ("Calls", "check_target")

T = TypeVar("T")


class Calls:
    """An open database file, and the two ways to it: operations in the writer's thread, reads in the reader's."""

    def __init__(
        self,
        path: str,
        *,
        writer: Writer,
        reader: SqlThread,
        alive: AliveByte,
        timeout: float,
        clock: Callable[[], int],
        metadata_keys: Collection[str],
        redaction: Redaction | None,
        followers: Followers,
        snapshotter: Snapshotter,
        indexer: Indexer,
        scrubber: Scrubber,
    ) -> None:
        self.path = path
        self.redaction: Redaction | None = redaction
        self._writer = writer
        self._reader = reader
        self._alive = alive
        self._timeout = timeout
        self._clock = clock
        self._metadata_keys = frozenset(metadata_keys)
        self._warm = WarmStates()
        self._followers = followers
        self._snapshotter = snapshotter
        self._indexer = indexer
        self._scrubber = scrubber
        self._process = os.getpid()
        self._closed = False

    async def _write(self, operation: Operation[T]) -> T:
        return await self._writer.submit(operation)

    async def _read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        self._refuse_closed()

        def translated(connection: sqlite3.Connection) -> T:
            with sqlite_errors(self.path, self._timeout), reading(connection):
                return function(connection)

        return await self._reader.run(translated)

    def _moment(self) -> Moment:
        return Moment(self._clock(), self._alive)

    def _refuse_closed(self) -> None:
        if os.getpid() != self._process:
            raise ForkedProcess(self._process, os.getpid())
        if self._closed:
            raise StoreClosed


def check_target(session_id: str, owner: str | None) -> None:
    check_name("session_id", session_id)
    check_name("owner", owner)
