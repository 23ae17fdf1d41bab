"""One SQLite connection in a thread of its own, where whole functions run one at a time.

This is the only place that touches aiosqlite's inside. Its public API makes one thread hop for every statement;
an append needs several statements and must not be interrupted between them, so a function runs there whole:
one hop (about 20 µs) a transaction. aiosqlite has no public call for that, hence ``_tx``, ``_thread`` and
``_connection`` here, a pinned version range, and a test that notices when an upgrade changes them.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Any, TypeVar

import aiosqlite
from anyio import CancelScope

__all__ = ("SqlThread", "to_the_end")

T = TypeVar("T")


async def to_the_end(work: Awaitable[T]) -> T:
    """Await ``work`` to its end even when cancelled meanwhile; then let the cancellation go on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError as error:
                cancelled = error
            except Exception:
                break  # raised again by task.result() below
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # the cancellation wins; say that this error was seen
        raise cancelled
    return task.result()


class SqlThread:
    """A connection and its thread. Opening and closing are safe against cancellation: no thread, file handle or
    lock is left behind. The thread is a daemon, so a store that nobody closed cannot keep the interpreter
    from ending."""

    def __init__(self, inner: aiosqlite.Connection, connection: sqlite3.Connection) -> None:
        self._inner = inner
        self._queue: SimpleQueue[tuple[asyncio.Future[Any] | None, Callable[[], object]]] = inner._tx  # pyright: ignore
        self._connection = connection
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, connect: Callable[[], sqlite3.Connection]) -> SqlThread:
        """Start a thread and run ``connect`` in it. What ``connect`` raises is raised here."""
        opened: list[sqlite3.Connection] = []

        def connector() -> sqlite3.Connection:
            opened.append(connect())
            return opened[0]

        inner = aiosqlite.Connection(connector, iter_chunk_size=64)
        inner._thread.daemon = True  # pyright: ignore[reportPrivateUsage]

        async def start() -> aiosqlite.Connection:
            return await inner

        try:
            await to_the_end(start())
        except asyncio.CancelledError:
            if opened:
                await to_the_end(cls(inner, opened[0]).close())
            raise
        except BaseException:
            # aiosqlite tells its thread to end and does not wait: the thread would find the loop closed, and say so.
            await to_the_end(asyncio.to_thread(inner._thread.join))  # pyright: ignore[reportPrivateUsage]
            raise
        return cls(inner, opened[0])

    def post(self, function: Callable[[sqlite3.Connection], None]) -> None:
        """Queue a function that reports for itself and never raises."""
        connection = self._connection
        self._queue.put_nowait((None, lambda: function(connection)))

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in the thread. Cancelled or not, it runs to its end."""
        future: asyncio.Future[T] = self._loop.create_future()
        connection = self._connection
        self._queue.put_nowait((future, lambda: function(connection)))
        return await future

    def call_back(self, function: Callable[..., object], *arguments: Any) -> None:
        """From the thread: call a function in the event loop. Nobody listens once the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    async def close(self) -> None:
        """Run what is queued, close the connection, end the thread."""
        await to_the_end(self._inner.close())
