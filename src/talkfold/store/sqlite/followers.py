"""Waking those who follow a log. A wake-up is only a hint: a follower then reads what is after its cursor."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from functools import partial
from typing import TypeAlias

from .thread import SqlThread

__all__ = (
    "POLL_SECONDS",
    "Followers",
)

POLL_SECONDS = 0.005
"""How often to look whether another process has written, while somebody follows."""

_Ends: TypeAlias = "dict[int, int]"
"""Where sessions end: key to number, -1 for an erased one."""


class Followers:
    """Everybody who waits for more of a session, by the session's key.

    Commits of this process wake by name. Those of others show in ``data_version``, which one task polls for all
    (a counter in shared memory: microseconds), for as long as anybody waits.
    """

    def __init__(self, reader: SqlThread) -> None:
        self._reader = reader
        self._waiting: dict[int, dict[asyncio.Future[None], int]] = {}
        self._poller: asyncio.Task[None] | None = None
        self._version = -1
        self.closed: bool = False

    def wait(self, key: int, after: int) -> asyncio.Future[None]:
        """A future that is done when the session may have more than ``after``, or is erased, or the store closes.

        Ask before reading: what is written between the two is then never missed.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.closed:
            future.set_result(None)
            return future
        self._waiting.setdefault(key, {})[future] = after
        if self._poller is None:
            self._poller = asyncio.get_running_loop().create_task(self._poll())
        return future

    def leave(self, key: int, future: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(future, None)
            if not waiting:
                del self._waiting[key]

    def moved(self, key: int, number: int) -> None:
        """A session ends at ``number`` now (-1: it is erased)."""
        for future, after in list(self._waiting.get(key, {}).items()):
            if number != after:
                self.leave(key, future)
                if not future.done():
                    future.set_result(None)

    async def _poll(self) -> None:
        try:
            while self._waiting and not self.closed:
                look = partial(_ends, keys=list(self._waiting), known=self._version)
                try:
                    self._version, ends = await self._reader.run(look)
                except sqlite3.Error:
                    ends = dict.fromkeys(self._waiting, -1)  # they read, and get the error with its name
                for key, number in ends.items():
                    self.moved(key, number)
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._poller = None

    async def close(self) -> None:
        """Wake everybody; they find the store closed."""
        self.closed = True
        for key in list(self._waiting):
            self.moved(key, -1)
        if self._poller is not None:
            await asyncio.wait([self._poller])


def _ends(connection: sqlite3.Connection, *, keys: list[int], known: int) -> tuple[int, _Ends]:
    version = int(connection.execute("PRAGMA data_version").fetchone()[0])
    if version == known:
        return version, {}
    ends: _Ends = dict(
        connection.execute(
            "SELECT session, iif(hash = x'', -1, number) FROM head WHERE session IN (SELECT value FROM json_each(?))",
            (json.dumps(keys),),
        ).fetchall()
    )
    return version, ends
