"""The SQLite store: the calls of the protocol, each one operation for the writer or some reads for the reader."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from ...errors import CursorAhead, ForkedProcess, StoreClosed, StoreUnavailable, TalkfoldError
from ...log import Loggable, LoggedAction
from ...model import Json, SessionStatus
from ..arguments import (
    MOST_ACTIONS,
    MOST_SESSIONS,
    check_expected,
    check_filters,
    check_limit,
    check_name,
    check_number,
    check_title,
)
from ..entries import encode_metadata, prepare
from ..migrate import apply_migrations
from ..protocol import (
    EXISTS,
    Appended,
    CheckReport,
    ExpectedVersion,
    OpenedSession,
    Page,
    Session,
    StateAt,
    Tombstone,
)
from . import operations
from .connection import Synchronous, connect_reader, connect_writer, refuse_foreign, refuse_no_file, sqlite_errors
from .filelock import FileLock
from .followers import Followers
from .listing import list_sessions
from .place import refuse_network
from .reading import end_of, fold_page, read_actions, read_session, reading
from .snapshots import Warm, WarmStates, load_snapshot
from .snapshotter import Snapshotter
from .thread import SqlThread, to_the_end
from .transaction import Transaction
from .verify import Walk
from .writer import Operation, Writer

__all__ = ("SqliteStore",)

T = TypeVar("T")

_LOG = logging.getLogger("talkfold.store")

_FOLLOW_PAGE = 500


class SqliteStore:
    """Sessions in one SQLite file. Open it with ``open_store``; any number of processes may.

    Implements ``SessionStore``, whose docstrings are the contract.
    """

    def __init__(
        self,
        path: str,
        *,
        writer: Writer,
        reader: SqlThread,
        timeout: float,
        new_id: Callable[[], str],
        metadata_keys: Collection[str],
        warm: WarmStates,
        followers: Followers,
        snapshotter: Snapshotter,
    ) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._timeout = timeout
        self._new_id = new_id
        self._metadata_keys = frozenset(metadata_keys)
        self._warm = warm
        self._followers = followers
        self._snapshotter = snapshotter
        self._process = os.getpid()
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        migrate: bool,
        allow_network: bool,
        metadata_keys: Collection[str],
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
        except OSError as error:
            raise StoreUnavailable(path, error.strerror or str(error)) from error

        def connect() -> sqlite3.Connection:
            # Under the lock from the first byte on: a switch to WAL or a migration has no queue of its own.
            with sqlite_errors(path, timeout), lock:
                connection = connect_writer(path, timeout, synchronous)
                try:
                    apply_migrations(connection, migrate=migrate)
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
            lock.close()
            raise
        warm = WarmStates()

        def committed(moved: dict[int, tuple[int, int]]) -> None:
            for key, (number, size) in moved.items():
                followers.moved(key, number)
                snapshotter.grown(key, number, size)

        writer = Writer(writing, lock, clock=clock, path=path, committed=committed)
        try:
            reader = await SqlThread.open(connect_to_read)
        except BaseException:
            await writer.close()
            raise
        followers = Followers(reader)
        snapshotter = Snapshotter(reader, writer)
        return cls(
            path,
            writer=writer,
            reader=reader,
            timeout=timeout,
            new_id=new_id,
            metadata_keys=metadata_keys,
            warm=warm,
            followers=followers,
            snapshotter=snapshotter,
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
        encoded = encode_metadata("metadata", metadata)
        return await self._write(
            partial(
                operations.create,
                session_id=self._new_id() if session_id is None else session_id,
                owner=owner,
                title=title,
                metadata=encoded,
                batch=prepare(actions) if actions else None,
            )
        )

    async def get(self, session_id: str, *, owner: str | None = None) -> Session:
        _check_target(session_id, owner)
        return await self._read(partial(read_session, session_id=session_id, owner=owner))

    async def list(
        self,
        *,
        owner: str | None = None,
        status: SessionStatus | None = None,
        title: str | None = None,
        metadata: Mapping[str, str | int | float | bool | None] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        check_name("owner", owner)
        check_filters(status, metadata, self._metadata_keys)
        check_title(title)
        check_limit(limit, MOST_SESSIONS)
        return await self._read(
            partial(
                list_sessions,
                owner=owner,
                status=status,
                title=title,
                metadata=metadata or {},
                limit=limit,
                cursor=cursor,
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
        _check_target(session_id, owner)
        check_title(title)
        encode_metadata("metadata", metadata)
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
        _check_target(session_id, owner)
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
                title=title,
            )
        )

    async def erase(self, session_id: str, *, owner: str | None = None, by: str | None = None) -> Tombstone:
        _check_target(session_id, owner)
        check_name("by", by)

        async def erase_all() -> Tombstone:
            key, tombstone = await self._write(partial(operations.erase, session_id=session_id, owner=owner, by=by))
            self._warm.drop(key)
            self._snapshotter.forget(key)
            self._followers.moved(key, -1)
            try:
                if not await self._writer.scrub():
                    _LOG.warning("a reader keeps the pages of erased session %s in the WAL until it ends", session_id)
            except TalkfoldError as error:
                _LOG.warning(
                    "traces of erased session %s stay in the file until the next erasure: %s", session_id, error
                )
            return tombstone

        return await to_the_end(erase_all())

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
    ) -> Appended:
        _check_target(session_id, owner)
        check_name("key", key)
        check_expected(expected)
        batch = prepare(actions, run=run, actor=actor, meta=meta)
        request = None if key is None else batch.request()

        def operation(tx: Transaction) -> Appended:
            return operations.append(tx, session_id, owner, batch, expected, key, request)

        return await self._writer.submit(operation)

    async def read(
        self, session_id: str, *, after: int = 0, limit: int = 1000, owner: str | None = None
    ) -> tuple[LoggedAction, ...]:
        _check_target(session_id, owner)
        check_number("after", after)
        check_limit(limit, MOST_ACTIONS)

        def page(connection: sqlite3.Connection) -> tuple[LoggedAction, ...]:
            end = end_of(connection, session_id, owner)
            if after > end.number:
                raise CursorAhead(session_id, after, end.number)
            return read_actions(connection, end.key, after, limit)

        return await self._read(page)

    async def subscribe(
        self, session_id: str, *, after: int = 0, owner: str | None = None
    ) -> AsyncGenerator[LoggedAction]:
        _check_target(session_id, owner)
        check_number("after", after)
        key = (await self._read(partial(end_of, session_id=session_id, owner=owner))).key
        while True:
            more = self._followers.wait(key, after)
            try:
                page = await self.read(session_id, after=after, limit=_FOLLOW_PAGE, owner=owner)
                if not page:
                    await more
            finally:
                self._followers.leave(key, more)
            for logged in page:
                yield logged
                after = logged.number

    # ---- states ----------------------------------------------------------------------------------------

    async def state(self, session_id: str, *, at: int | None = None, owner: str | None = None) -> StateAt:
        _check_target(session_id, owner)
        if at is not None:
            check_number("at", at)

        def begin(connection: sqlite3.Connection) -> tuple[int, int, int, Warm]:
            end = end_of(connection, session_id, owner)
            if at is not None and at > end.number:
                raise CursorAhead(session_id, at, end.number)
            to = end.number if at is None else at
            warm = self._warm.get(end.key, to) or load_snapshot(connection, end.key, to)
            return end.key, to, end.size, fold_page(connection, end.key, to, warm)

        key, to, size, warm = await self._read(begin)
        while warm.number < to:  # only a long tail: its pages one by one, with room for other readers between
            further = await self._read(partial(fold_page, key=key, at=to, warm=warm))
            if further.number == warm.number:
                await self.get(session_id, owner=owner)  # erased meanwhile: this raises
                break
            warm = further
        if at is None:
            self._warm.put(key, warm, size)
            self._snapshotter.grown(key, to, size)
        return StateAt(warm.number, warm.state)

    async def open_session(self, session_id: str, *, owner: str | None = None, cause: str = "reload") -> OpenedSession:
        _check_target(session_id, owner)
        session, state, settled = await self._write(
            partial(operations.settle, session_id=session_id, owner=owner, cause=cause, warm=self._warm)
        )
        return OpenedSession(session, state, settled)

    async def check(self, session_id: str, *, owner: str | None = None) -> CheckReport:
        _check_target(session_id, owner)
        walk = Walk(session_id, owner)
        while await self._read(walk.page):
            pass
        return walk.report()

    # ---- how it gets there -----------------------------------------------------------------------------

    async def _write(self, operation: Operation[T]) -> T:
        return await self._writer.submit(operation)

    async def _read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        self._refuse_closed()

        def translated(connection: sqlite3.Connection) -> T:
            with sqlite_errors(self.path, self._timeout), reading(connection):
                return function(connection)

        return await self._reader.run(translated)

    def _refuse_closed(self) -> None:
        if os.getpid() != self._process:
            raise ForkedProcess(self._process, os.getpid())
        if self._closed:
            raise StoreClosed


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.path.realpath(path)  # by whatever link it is reached, one file has one lock


def _check_target(session_id: str, owner: str | None) -> None:
    check_name("session_id", session_id)
    check_name("owner", owner)
