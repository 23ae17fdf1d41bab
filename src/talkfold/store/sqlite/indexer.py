"""Keeps the search index behind the writer's back: appends never wait for it, a search waits until it is complete.

After a commit it waits for a quiet moment, or until much has come, so that a stream of small appends is indexed a
hundred at a time. Whatever it has not got to, it leaves to the next search.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from functools import partial

from ...errors import TalkfoldError
from ..search.answer import Indexing
from .reading import reading
from .search_rows import Step, apply_steps, behind, plan_steps
from .thread import SqlThread
from .writer import Writer

__all__ = ("LONGEST_SECONDS", "QUIET_SECONDS", "Indexer")

_LOG = logging.getLogger("talkfold.store")

QUIET_SECONDS = 0.25
"""How long nothing must come before what came is indexed."""

LONGEST_SECONDS = 2.0
"""How long what came waits at most, while more is coming."""

_MUCH = 5_000
"""How many actions are indexed without waiting for a quiet moment."""

_MOST_KEYS = 1_000


class Indexer:
    """Runs one task while there is something due, and none otherwise."""

    def __init__(self, reader: SqlThread, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer
        self._due: dict[int, int] = {}
        self._came = 0
        self._task: asyncio.Task[None] | None = None
        self._woken: asyncio.Event = asyncio.Event()
        self._closed = False

    def grown(self, key: int, number: int) -> None:
        """A log has this many actions now."""
        self._came += number - self._due.get(key, number - 1)
        self._due[key] = number
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._work())
        elif self._came >= _MUCH:
            self._woken.set()

    def forget(self, key: int) -> None:
        """A session is gone."""
        self._due.pop(key, None)

    async def _work(self) -> None:
        try:
            while self._due and await self._rest():
                wanted, self._due = self._due, dict[int, int]()
                self._came = 0
                try:
                    await self._reach(wanted)
                except (TalkfoldError, sqlite3.Error) as error:
                    # The next search does it, or says why it cannot be done.
                    _LOG.warning("the search index was not brought up to date: %s", error)
        finally:
            self._task = None

    async def _reach(self, wanted: dict[int, int]) -> None:
        """Index these sessions up to these numbers, or until the store closes."""
        while wanted and not self._closed:
            steps = {step.key: step for step in await self._step(list(wanted)[:_MOST_KEYS])}
            if not steps:
                return  # it is switched off
            wanted = {key: number for key, number in wanted.items() if _is_left(steps.get(key), number)}

    async def _rest(self) -> bool:
        """Until it is quiet, or much has come, or it took long enough; false: the store closes."""
        if not self._closed:
            self._woken.clear()
        waited, seen = 0.0, -1
        while waited < LONGEST_SECONDS and seen != self._came and not self._woken.is_set():
            seen = self._came
            try:
                await asyncio.wait_for(self._woken.wait(), QUIET_SECONDS)
            except TimeoutError:
                waited += QUIET_SECONDS
        return not self._closed

    async def _step(self, keys: Sequence[int]) -> list[Step]:
        """One step for as many of these sessions as one transaction takes; what was done."""
        steps = await self._reader.run(partial(_planned, keys=keys))
        if steps:
            await self._writer.submit(partial(apply_steps, steps=steps))
        return steps

    async def catch_up(self, owner: str | None, key: int | None, told: Indexing | None = None) -> None:
        """Index all that is committed now: of one session, of an owner's, or of all. Off, it does nothing."""
        look = partial(_behind, owner=owner, key=key)
        goal = await self._reader.run(look)
        left, stuck = dict(goal), set[int]()
        total, done = sum(number - indexed for indexed, number in goal.values()), 0
        while left:
            while left:
                steps = await self._step(list(left)[:_MOST_KEYS])
                if not steps:
                    return
                for step in steps:
                    indexed, number = left.pop(step.key)
                    done += max(0, min(step.now, number) - indexed)
                    if step.now == step.was:
                        stuck.add(step.key)  # a log that is cut off at its end has no more to give
                    elif step.now < number:
                        left[step.key] = (step.now, number)
                if told is not None:
                    told(min(done, total), total)
            # Another process may have been at the same sessions, or have switched off and on: look again.
            left = {
                key: (indexed, goal[key][1])
                for key, (indexed, _) in (await self._reader.run(look)).items()
                if key in goal and indexed < goal[key][1] and key not in stuck
            }

    async def close(self) -> None:
        """Finish the step in hand; the rest is done by the next search."""
        self._closed = True
        self._woken.set()
        if self._task is not None:
            await asyncio.wait([self._task])


def _is_left(step: Step | None, number: int) -> bool:
    return step is None or step.was < step.now < number


def _planned(connection: sqlite3.Connection, *, keys: Sequence[int]) -> list[Step]:
    with reading(connection):
        return plan_steps(connection, keys)


def _behind(connection: sqlite3.Connection, *, owner: str | None, key: int | None) -> dict[int, tuple[int, int]]:
    with reading(connection):
        return behind(connection, owner, key)
