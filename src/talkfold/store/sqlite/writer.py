"""The one writer of a store: it takes what is queued and commits it together (group commit).

While a transaction is being written, others queue; when it is done, all of them go into the next one. Nobody
waits for company, and a hundred callers share one sync of the disk.

No task and no coroutine stands between a caller and the commit: callers await a plain future, so a caller that
is cancelled only stops listening. Its operation was whole before and stays whole.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from ...errors import ForkedProcess, StoreBusy, StoreClosed, TalkfoldError
from .alive import AliveByte
from .connection import sqlite_errors
from .filelock import FileLock
from .lease_rows import Moment
from .scrubbing import finish
from .thread import SqlThread, to_the_end
from .transaction import HeadCache, Transaction

__all__ = ("Operation", "Writer")

T = TypeVar("T")

Operation: TypeAlias = Callable[[Transaction], T]
"""What one caller wants done inside a transaction. It refuses (a TalkfoldError) before it writes anything; one that
fails later costs the whole group its transaction, and everybody in it is written alone."""

_Outcome: TypeAlias = tuple[Any, BaseException | None]


class Writer:
    """Owns the writing connection. ``committed`` is called in the event loop before the callers are answered, with
    the sessions whose log grew: key to (newest number, bytes)."""

    def __init__(
        self,
        thread: SqlThread,
        lock: FileLock,
        alive: AliveByte,
        *,
        clock: Callable[[], int],
        path: str,
        committed: Callable[[dict[int, tuple[int, int]]], None],
    ) -> None:
        self._thread = thread
        self._lock = lock
        self._alive = alive
        self._clock = clock
        self._path = path
        self._committed = committed
        self._cache = HeadCache()
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._queue: list[tuple[Operation[Any], asyncio.Future[Any]]] = []
        self._writing = False
        self._closed = False
        self._idle: asyncio.Future[None] | None = None
        self._scrubbing: asyncio.Future[bool] | None = None
        self._next_scrub: asyncio.Future[bool] | None = None

    def submit(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Queue an operation. The future has its result after the commit."""
        if self._closed:
            raise StoreClosed
        if os.getpid() != self._process:
            raise ForkedProcess(self._process, os.getpid())
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append((operation, future))
        if not self._writing:
            self._write_next()
        return future

    def _write_next(self) -> None:
        group, self._queue = self._queue, []
        self._writing = True
        self._thread.post(partial(self._write, group))

    # ---- in the writer's thread ------------------------------------------------------------------------

    def _write(self, group: list[tuple[Operation[Any], asyncio.Future[Any]]], connection: sqlite3.Connection) -> None:
        moved: dict[int, tuple[int, int]] = {}
        try:
            outcomes = self._commit([operation for operation, _ in group], connection, moved)
        except BaseException as error:
            outcomes = [(None, error)] * len(group)
        self._thread.call_back(self._answer, group, outcomes, moved)

    def _commit(
        self,
        operations: list[Operation[Any]],
        connection: sqlite3.Connection,
        moved: dict[int, tuple[int, int]],
    ) -> list[_Outcome]:
        try:
            with sqlite_errors(self._path, self._lock.timeout), self._lock:
                return self._transact(operations, connection, moved)
        except StoreBusy as error:
            return [(None, error)] * len(operations)  # nobody would fare better alone, only later
        except Exception as error:
            if len(operations) == 1:
                return [(None, error)]
        # One of them broke the transaction: each alone, so that only the culprit fails.
        return [self._commit([operation], connection, moved)[0] for operation in operations]

    def _transact(
        self,
        operations: list[Operation[Any]],
        connection: sqlite3.Connection,
        moved: dict[int, tuple[int, int]],
    ) -> list[_Outcome]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._cache.refresh(connection)
            transaction = Transaction(connection, self._cache, Moment(self._clock(), self._alive))
            outcomes: list[_Outcome] = []
            for operation in operations:
                before = transaction.written()
                try:
                    outcomes.append((operation(transaction), None))
                except TalkfoldError as error:
                    if transaction.written() != before:
                        raise  # it failed half-way: nothing of it may stay
                    outcomes.append((None, error))
            transaction.flush()
            connection.execute("COMMIT")
        except BaseException:
            self._cache.clear()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        moved.update((key, (head.number, head.size)) for key, head in transaction.moved.items())
        return outcomes

    # ---- in the event loop -----------------------------------------------------------------------------

    def _answer(
        self,
        group: list[tuple[Operation[Any], asyncio.Future[Any]]],
        outcomes: list[_Outcome],
        moved: dict[int, tuple[int, int]],
    ) -> None:
        if self._queue:
            self._write_next()  # the thread works on while the callers wake up
        else:
            self._writing = False
        if moved:
            self._committed(moved)
        for (_, future), (result, error) in zip(group, outcomes, strict=True):
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        if self._idle is not None and not self._writing:
            self._idle.set_result(None)
            self._idle = None

    async def scrub(self) -> bool:
        """Finish the erasures that are committed: leave no byte of them. False when a reader is in the way.

        Those who ask before it has begun share one.
        """
        if self._closed:
            raise StoreClosed
        if self._next_scrub is None:
            self._next_scrub = self._scrubbing = asyncio.ensure_future(self._thread.run(self._scrub))
        return await asyncio.shield(self._next_scrub)

    def _scrub(self, connection: sqlite3.Connection) -> bool:
        self._next_scrub = None  # whoever erases from now on needs another one
        with sqlite_errors(self._path, self._lock.timeout), self._lock:
            return finish(connection)

    async def close(self) -> None:
        """Commit what is queued, then close the connection; callers who still wait get their answers."""
        self._closed = True

        async def drain() -> None:
            if self._writing:
                self._idle = self._loop.create_future()
                await self._idle
            if self._scrubbing is not None:
                await asyncio.wait([self._scrubbing])

            def last_words(connection: sqlite3.Connection) -> None:
                # The last connection to close checkpoints, and no checkpoint happens outside the lock.
                with self._lock:
                    connection.close()

            try:
                await self._thread.run(last_words)
            finally:
                await self._thread.close()
                self._alive.close()
                self._lock.close()

        await to_the_end(drain())
