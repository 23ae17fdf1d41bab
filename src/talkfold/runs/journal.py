"""A run's hand on its log: what it writes, in order and by its lease, and what others write meanwhile.

Text does not wait for the disk: it is put down and goes into the next commit, together with all that came since. What
must be durable before something else happens (a call before its tool runs, a result before the agent goes on) waits
for that commit. One commit is under way at a time; what is put down while it is, is the next one.

Others write into the same log: somebody presses Stop, a client answers a call. Every commit tells where it landed, so
a gap before it shows that there are such rows; while the run is silent, the store tells that the log moved. Only
foreign rows are read, so following one's own log costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

import anyio
from anyio import CancelScope

from ..actions import SessionAction
from ..codec import encode_action
from ..errors import (
    CallNotWaiting,
    InvalidAction,
    InvalidJson,
    NotJsonValue,
    RedactionFailed,
    StoreBusy,
    TalkfoldError,
    TooDeep,
    TooLarge,
)
from ..log import Entry, Loggable, LoggedAction
from ..model import Json
from ..store.lease import Hold, Waiting
from ..store.protocol import SessionStore
from .held import HeldTexts
from .weight import weight

__all__ = ("UNSTORABLE", "Journal")

UNSTORABLE = (InvalidAction, InvalidJson, NotJsonValue, TooDeep, TooLarge)
"""What a store says of an action that no log takes: the fault of whoever made it, and nothing was written."""

_MOST_WAITING = 4_096
_MOST_TEXT = 1 << 20
"""How much may wait for the disk, in actions and in characters, before whoever writes is held back."""

_PAGE = 500
_TRIES = 2
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Journal:
    """The log of one session as one run sees it.

    ``heard`` is called with every row that somebody else wrote, in order; ``refused`` with an action of this run that
    no log takes. Both are called in the event loop and must not wait. ``failure`` is what the store raised; from then
    on nothing can be written. Once it is released nobody waits for it any more: an agent that was left to itself may
    still try.
    """

    def __init__(
        self,
        store: SessionStore,
        session_id: str,
        *,
        owner: str | None,
        hold: Hold,
        number: int,
        heard: Callable[[LoggedAction], object],
        refused: Callable[[SessionAction, TalkfoldError], object],
    ) -> None:
        self._store = store
        self._session_id = session_id
        self._owner = owner
        self._hold = hold
        self._heard = heard
        self._refused = refused
        self._held = None if store.redaction is None else HeldTexts(store.redaction)
        self._waiting: list[Loggable] = []
        self._text = 0
        self._put = 0
        self._committed = 0
        self._asked: dict[int, int] = {}  # positions whose number somebody wants
        self._seen = number  # up to here everything is known
        self._end = number  # where the log ends, as the store said last
        self._turn = anyio.Lock()
        self._work_to_do = anyio.Event()
        self._progress = anyio.Event()
        self._released = False
        self.failure: Exception | None = None

    # ---- writing ---------------------------------------------------------------------------------------

    def put(self, action: SessionAction, meta: Mapping[str, Json] | None = None) -> int:
        """Put an action down; it goes into the next commit. Returns its position for ``committed``.

        Where the store redacts, the end of a text waits for more of it. Raises RedactionFailed then.
        """
        if self._held is not None:
            for row in self._held.pass_on(action, meta):
                self._queue(row, _typed(row))
            return self._put
        return self._queue(action if meta is None else Entry(action, meta=dict(meta)), action)

    def _queue(self, row: Loggable, action: SessionAction) -> int:
        self._waiting.append(row)
        self._text += weight(action)
        self._put += 1
        if len(self._waiting) == 1:
            self._work_to_do.set()
        return self._put

    def _let_all_go(self) -> None:
        """No text goes on: put down what is held of them."""
        if self._held is not None:
            for row in self._held.end():
                self._queue(row, _typed(row))

    @property
    def crowded(self) -> bool:
        """Whether more waits for the disk than should: who writes next awaits ``room`` first."""
        return len(self._waiting) >= _MOST_WAITING or self._text >= _MOST_TEXT

    async def room(self) -> None:
        """Wait until the disk has caught up. Raises what the store raised."""
        while self.crowded and not self._released:
            await self._next_commit()

    async def commit(self, action: SessionAction, meta: Mapping[str, Json] | None = None) -> int | None:
        """Put an action down and wait until it is durable, with everything before it.

        Returns its number in the log; ``None`` when no log takes it (``refused`` was told), or when the log has been
        released. Raises what the store raised.
        """
        position = self.put(action, meta)
        self._asked[position] = 0
        try:
            while self._committed < position and not self._released:
                await self._next_commit()
            return self._asked[position] or None
        finally:
            del self._asked[position]

    async def flush(self) -> None:
        """Wait until all that was put down so far is durable. Raises what the store raised."""
        position = self._put
        while self._committed < position and not self._released:
            await self._next_commit()

    async def park(self, actions: Sequence[Loggable], waiting: Waiting, meta: Mapping[str, Json] | None = None) -> None:
        """Log actions and note in the lease the call that waits. Raises what the store raises."""
        async with self._alone():
            await self._write_waiting()
            park = partial(self._store.park, self._session_id, actions, hold=self._hold, waiting=waiting)
            last = await _patiently(partial(park, owner=self._owner, meta=meta))
            await self._landed(last - len(actions) + 1, last)

    async def answer(self, action: SessionAction, number: int, meta: Mapping[str, Json]) -> None:
        """Answer a parked call of this run oneself. Raises CallNotWaiting when somebody was quicker."""
        async with self._alone():
            await self._write_waiting()
            answer = partial(self._store.answer, self._session_id, [action], number=number, hold=self._hold)
            last = await _patiently(partial(answer, owner=self._owner, meta=meta))
            await self._landed(last, last)

    async def release(self, actions: Sequence[Loggable]) -> int:
        """Write what waits and the last actions, and give the lease back, in one commit. Returns the newest number.

        Where that fails, what waited is still there: ``left``.
        """
        async with self._alone():
            self._let_all_go()
            rows = [*self._waiting, *actions]
            release = partial(self._store.release, self._session_id, rows, hold=self._hold, owner=self._owner)
            last = await _patiently(release)
            self._waiting, self._text = [], 0
            self.let_go()
            try:
                await self._landed(last - len(rows) + 1, last)
            except Exception as error:  # the run is over, and well; only its reader misses what others wrote last
                _log.warning("the end of session %s cannot be read: %s", self._session_id, error)
            return last

    @property
    def left(self) -> list[Loggable]:
        """What was put down and is not in the log."""
        return list(self._waiting)

    def let_go(self) -> None:
        """Nobody waits for a commit any more: the log is given back, or lost."""
        self._released = True
        self._work_to_do.set()
        self._tell_progress()

    def weed(self) -> None:
        """Take out of what waits everything that no log takes (``refused`` is told): before the end is decided."""
        try:
            self._let_all_go()
        except RedactionFailed as error:
            self.fail(error)
        self._waiting = [row for row in self._waiting if self._is_storable(row)]

    def _is_storable(self, row: Loggable) -> bool:
        action = _typed(row)
        try:
            encode_action(action)
        except UNSTORABLE as error:
            self._refused(action, error)
            return False
        return True

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """One write at a time, whole: no cancellation cuts through a commit."""
        try:
            async with self._turn:
                if self.failure is not None:
                    raise self.failure
                with CancelScope(shield=True):
                    try:
                        yield
                    except (CallNotWaiting, *UNSTORABLE):
                        raise
                    except Exception as error:
                        self.fail(error)
                        raise
        finally:
            self._moved(self._end)  # what was told meanwhile

    def fail(self, error: Exception) -> None:
        """Write nothing more, for this reason; the first reason stays. After the release nothing fails any more."""
        if self.failure is None and not self._released:
            self.failure = error
        self._work_to_do.set()
        self._tell_progress()

    # ---- the one task that commits ---------------------------------------------------------------------

    async def work(self) -> None:
        """Commit what is put down and read what others wrote, until the log is let go or the store fails.

        What it raised is kept in ``failure``, and raised to everybody who waits for a commit.
        """
        try:
            async with self._store.watch(self._session_id, self._moved, owner=self._owner) as end:
                self._moved(end)
                while True:
                    await self._work_to_do.wait()
                    self._work_to_do = anyio.Event()
                    if self._released:
                        return
                    async with self._alone():
                        await self._write_waiting()
                        await self._hear_others(self._end)
        except Exception as error:
            self.fail(error)

    def _moved(self, end: int) -> None:
        self._end = end
        if (end > self._seen or end < 0) and not self._turn.locked():
            self._work_to_do.set()

    async def _write_waiting(self) -> None:
        while self._waiting:
            rows, self._waiting, self._text = self._waiting, [], 0
            try:
                await self._append(rows)
            except UNSTORABLE:
                for row in rows:
                    await self._append([row])
            except StoreBusy:
                self._waiting = [*rows, *self._waiting]
                raise
            self._tell_progress()

    async def _append(self, rows: list[Loggable]) -> None:
        try:
            appended = await _patiently(
                partial(self._store.append, self._session_id, rows, hold=self._hold, owner=self._owner)
            )
        except UNSTORABLE as error:
            if len(rows) > 1:
                raise
            self._committed += 1
            self._refused(_typed(rows[0]), error)
            return
        for position in self._asked:
            if self._committed < position <= self._committed + len(rows):
                self._asked[position] = appended.first + position - self._committed - 1
        self._committed += len(rows)
        await self._landed(appended.first, appended.last)

    async def _landed(self, first: int, last: int) -> None:
        """This run's rows ``first`` to ``last`` are in the log; what lies between them and ``seen`` is foreign."""
        await self._hear_others(first - 1)
        self._seen = last

    async def _hear_others(self, to: int) -> None:
        if to < 0:
            # Erased, or the store closed: the store says which.
            await self._store.get(self._session_id, owner=self._owner)
        while self._seen < to:
            page = await self._store.read(
                self._session_id, after=self._seen, limit=min(_PAGE, to - self._seen), owner=self._owner
            )
            for row in page:
                self._seen = row.number
                self._heard(row)

    # ---- waiting for it --------------------------------------------------------------------------------

    def _tell_progress(self) -> None:
        self._progress.set()
        self._progress = anyio.Event()

    async def _next_commit(self) -> None:
        if self.failure is not None:
            raise self.failure
        await self._progress.wait()
        if self.failure is not None:
            raise self.failure


async def _patiently(write: Callable[[], Awaitable[_T]]) -> _T:
    """Try a write again that the store was too busy for: nothing of it was written."""
    for _ in range(_TRIES - 1):
        with suppress(StoreBusy):
            return await write()
    return await write()


def _typed(row: Loggable) -> SessionAction:
    action = row.action if isinstance(row, Entry) else row
    assert not isinstance(action, bytes)  # only typed actions are ever put down
    return action
