"""The SQLite store: the calls of the protocol, each one operation for the writer or some reads for the reader."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from ...errors import StoreUnavailable
from ...log import Loggable
from ...model import Json
from ...redaction import Redaction
from ..arguments import (
    check_expected,
    check_name,
    check_number,
    check_title,
    run_of,
)
from ..entries import encode_metadata, prepare
from ..lease import Hold
from ..migrate import apply_migrations
from ..protocol import (
    EXISTS,
    Appended,
    ExpectedVersion,
    Session,
)
from ..redacting import redacted_metadata, redacted_title
from . import operations
from .alive import AliveByte
from .calls import check_target
from .connection import Synchronous, connect_reader, connect_writer, refuse_foreign, refuse_no_file, sqlite_errors
from .filelock import FileLock
from .followers import Followers
from .indexer import Indexer
from .place import network_file_system, refuse_network
from .scrubber import Scrubber
from .scrubbing import left_unfinished
from .snapshotter import Snapshotter
from .thread import SqlThread, to_the_end
from .token_calls import TokenCalls
from .transaction import Transaction
from .writer import Writer

__all__ = ("SqliteStore",)


class SqliteStore(TokenCalls):
    """Sessions in one SQLite file. Open it with ``open_store``; any number of processes may.

    Implements ``SessionStore``, whose docstrings are the contract.
    """

    def __init__(
        self,
        path: str,
        *,
        writer: Writer,
        reader: SqlThread,
        alive: AliveByte,
        timeout: float,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        metadata_keys: Collection[str],
        redaction: Redaction | None,
        followers: Followers,
        snapshotter: Snapshotter,
        indexer: Indexer,
        scrubber: Scrubber,
    ) -> None:
        super().__init__(
            path,
            writer=writer,
            reader=reader,
            alive=alive,
            timeout=timeout,
            clock=clock,
            metadata_keys=metadata_keys,
            redaction=redaction,
            followers=followers,
            snapshotter=snapshotter,
            indexer=indexer,
            scrubber=scrubber,
        )
        self._new_id = new_id

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        migrate: bool,
        allow_network: bool,
        metadata_keys: Collection[str],
        redaction: Redaction | None,
        synchronous: Synchronous,
        timeout: float,
        clock: Callable[[], int],
        new_id: Callable[[], str],
    ) -> SqliteStore:
        """Open or make the file. Cancelled or failing half-way, it leaves nothing open."""
        path = _absolute(path)
        if not allow_network:
            refuse_network(path)
        refuse_no_file(path)
        refuse_foreign(path)
        try:
            lock = FileLock(f"{path}-lock", timeout)
            try:
                alive = AliveByte(f"{path}-lock", shared=network_file_system(path) is not None)
            except BaseException:
                lock.close()
                raise
        except OSError as error:
            raise StoreUnavailable(path, error.strerror or str(error)) from error

        left = False

        def connect() -> sqlite3.Connection:
            nonlocal left
            # Under the lock from the first byte on: a switch to WAL or a migration has no queue of its own.
            with sqlite_errors(path, timeout), lock:
                connection = connect_writer(path, timeout, synchronous)
                try:
                    apply_migrations(connection, migrate=migrate)
                    left = left_unfinished(connection)
                except BaseException:
                    connection.close()
                    raise
                return connection

        def connect_to_read() -> sqlite3.Connection:
            with sqlite_errors(path, timeout):
                return connect_reader(path, timeout)

        try:
            writing = await SqlThread.open(connect)
        except BaseException:
            alive.close()
            lock.close()
            raise

        def committed(moved: dict[int, tuple[int, int]]) -> None:
            for key, (number, size) in moved.items():
                followers.moved(key, number)
                snapshotter.grown(key, number, size)
                indexer.grown(key, number)

        writer = Writer(writing, lock, alive, clock=clock, path=path, committed=committed)
        try:
            reader = await SqlThread.open(connect_to_read)
        except BaseException:
            await writer.close()
            raise
        followers = Followers(reader)
        snapshotter = Snapshotter(reader, writer)
        indexer = Indexer(reader, writer)
        scrubber = Scrubber(writer)
        if left:
            scrubber.go_on()
        return cls(
            path,
            writer=writer,
            reader=reader,
            alive=alive,
            timeout=timeout,
            clock=clock,
            new_id=new_id,
            metadata_keys=metadata_keys,
            redaction=redaction,
            followers=followers,
            snapshotter=snapshotter,
            indexer=indexer,
            scrubber=scrubber,
        )

    async def close(self) -> None:
        """Answer those who wait, commit what is queued, close the file. Safe to call twice.

        A forked child has nothing to close: thread and connections are its parent's.
        """
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True

        async def close_all() -> None:
            await self._followers.close()
            await self._snapshotter.close()
            await self._indexer.close()
            await self._scrubber.close()
            await self._reader.close()
            await self._writer.close()

        await to_the_end(close_all())

    # ---- sessions --------------------------------------------------------------------------------------

    async def create(
        self,
        session_id: str | None = None,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        actions: Sequence[Loggable] = (),
    ) -> Session:
        check_name("session_id", session_id)
        check_name("owner", owner)
        check_title(title)
        encode_metadata("metadata", metadata)
        encoded = encode_metadata("metadata", redacted_metadata(self.redaction, metadata))
        return await self._write(
            partial(
                operations.create,
                session_id=self._new_id() if session_id is None else session_id,
                owner=owner,
                title=redacted_title(self.redaction, title),
                metadata=encoded,
                batch=prepare(actions, redaction=self.redaction) if actions else None,
            )
        )

    async def update(
        self,
        session_id: str,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Session:
        check_target(session_id, owner)
        check_title(title)
        encode_metadata("metadata", metadata)
        metadata, title = redacted_metadata(self.redaction, metadata), redacted_title(self.redaction, title)
        return await self._write(
            partial(operations.update, session_id=session_id, owner=owner, title=title, metadata=metadata)
        )

    async def fork(
        self,
        session_id: str,
        *,
        at: int | None = None,
        new_id: str | None = None,
        owner: str | None = None,
        title: str | None = None,
    ) -> Session:
        check_target(session_id, owner)
        check_name("new_id", new_id)
        check_title(title)
        if at is not None:
            check_number("at", at)
        return await self._write(
            partial(
                operations.fork,
                session_id=session_id,
                owner=owner,
                at=at,
                new_id=self._new_id() if new_id is None else new_id,
                title=redacted_title(self.redaction, title),
            )
        )

    # ---- the log ---------------------------------------------------------------------------------------

    async def append(
        self,
        session_id: str,
        actions: Sequence[Loggable],
        *,
        expected: ExpectedVersion = EXISTS,
        key: str | None = None,
        owner: str | None = None,
        run: str | None = None,
        actor: str | None = None,
        meta: Mapping[str, Json] | None = None,
        hold: Hold | None = None,
    ) -> Appended:
        check_target(session_id, owner)
        check_name("key", key)
        check_expected(expected)
        batch = prepare(actions, run=run_of(hold, run), actor=actor, meta=meta, redaction=self.redaction)
        request = None if key is None else batch.request()

        def operation(tx: Transaction) -> Appended:
            return operations.append(tx, session_id, owner, batch, expected, key, request, hold)

        return await self._writer.submit(operation)


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.path.realpath(path)  # by whatever link it is reached, one file has one lock
