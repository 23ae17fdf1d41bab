"""Waking those who follow a log. A wake-up is only a hint: a follower then reads what is after its cursor."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from .thread import SqlThread

__all__ = (
    "POLL_SECONDS",
    "Followers",
    "Watcher",
)

POLL_SECONDS = 0.005
"""How often to look whether another process has written, while somebody follows."""

_LOG = logging.getLogger("talkfold.store")

_Ends: TypeAlias = "dict[int, int]"
"""Where sessions end: key to number, -1 for an erased one."""


class Watcher:
    """Somebody who is told of every move of one session. Silent until it begins."""

    def __init__(self, key: int, told: Callable[[int], object]) -> None:
        self.key = key
        self._told = told
        self._number = 0
        self._begun = False

    def begin(self, number: int) -> int:
        """Tell everything after this number, or after a newer one that came meanwhile; gives that one."""
        self._begun = True
        self._number = number if 0 <= self._number < number else self._number
        return self._number

    def moved(self, number: int) -> None:
        """A session ends at ``number`` now (-1: it is erased). What is older than the last word is no news."""
        if self._number < 0 or 0 <= number <= self._number:
            return
        self._number = number
        if self._begun:
            self.say()

    def say(self) -> None:
        """Say the last word (again): look!"""
        try:
            self._told(self._number)
        except Exception:
            # Those who wrote still wait for their answers, and other watchers for their word.
            _LOG.exception("a watcher failed at %d; the others are told all the same", self._number)


class Followers:
    """Everybody who waits for more of a session, by the session's key: once (``wait``) or on and on (``watch``).

    Commits of this process wake by name. Those of others show in ``data_version``, which one task polls for all
    (a counter in shared memory: microseconds), for as long as anybody waits.
    """

    def __init__(self, reader: SqlThread) -> None:
        self._reader = reader
        self._waiting: dict[int, dict[asyncio.Future[None], int]] = {}
        self._watching: dict[int, dict[Watcher, None]] = {}
        self._poller: asyncio.Task[None] | None = None
        self._version = -1
        self._failing = False
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
        self._look_out()
        return future

    def leave(self, key: int, future: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(future, None)
            if not waiting:
                del self._waiting[key]

    def watch(self, key: int, told: Callable[[int], object]) -> Watcher:
        """Somebody who will be told of every move, until ``unwatch``. Then read, and begin with that number."""
        watcher = Watcher(key, told)
        if not self.closed:  # who reads after that finds the store closed
            self._watching.setdefault(key, {})[watcher] = None
            self._look_out()
        return watcher

    def unwatch(self, watcher: Watcher) -> None:
        watching = self._watching.get(watcher.key)
        if watching is not None:
            watching.pop(watcher, None)
            if not watching:
                del self._watching[watcher.key]

    def moved(self, key: int, number: int) -> None:
        """A session ends at ``number`` now (-1: it is erased)."""
        for future, after in list(self._waiting.get(key, {}).items()):
            if number != after:
                self.leave(key, future)
                if not future.done():
                    future.set_result(None)
        if key in self._watching:
            for watcher in tuple(self._watching[key]):
                watcher.moved(number)

    def _look_out(self) -> None:
        if self._poller is None:
            self._poller = asyncio.get_running_loop().create_task(self._poll())

    async def _poll(self) -> None:
        try:
            while (self._waiting or self._watching) and not self.closed:
                look = partial(_ends, keys=[*self._waiting.keys() | self._watching.keys()], known=self._version)
                try:
                    self._version, ends = await self._reader.run(look)
                    self._failing = False
                except sqlite3.Error:
                    ends = {}
                    self._fail()
                for key, number in ends.items():
                    self.moved(key, number)
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._poller = None

    def _fail(self) -> None:
        """Nobody can look: whoever follows reads for itself, and gets the error with its name."""
        for key, waiting in list(self._waiting.items()):
            for future in list(waiting):
                self.leave(key, future)
                if not future.done():
                    future.set_result(None)
        if not self._failing:
            self._failing = True
            for watching in list(self._watching.values()):
                for watcher in tuple(watching):
                    watcher.say()

    async def close(self) -> None:
        """Wake everybody; they find the store closed."""
        self.closed = True
        for key in [*self._waiting.keys() | self._watching.keys()]:
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
