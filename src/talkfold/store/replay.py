"""A session's log, played back from its store: the state at any number, and steps forward and back.

The state at a number comes from the store's snapshots. For steps, a window of the log around the position is in memory
and with it the state that it begins with, so a step costs about one action; when the position leaves the window,
another one is read. However long the log is, no more of it is read than that.
"""

from __future__ import annotations

from ..actions import SessionAction
from ..audit.marks import Marker, Marks
from ..audit.trail import NEAR, Known, Trail
from ..errors import InvalidArgument, StoreDamaged
from ..fold import fold
from ..model import EMPTY_SESSION, SessionState
from .protocol import Session, SessionStore

__all__ = ("StoreReplay",)

_REACH = 2048
_REACH_BYTES = 2**21
_LEAST = 64
_PAGE = 1000


class StoreReplay:
    """A log with a position, which is 0 at first, before all actions. ``last`` is its last number.

    ``session`` is the session as ``store.get`` gave it: what is logged later is not part of this replay. One replay
    must not be used by two tasks at once. ``reach`` is how many actions the window reaches in each direction, at most;
    fewer where they are large. Every method that waits raises what the store's ``read`` and ``state`` do.
    """

    def __init__(self, store: SessionStore, session: Session, *, reach: int = _REACH) -> None:
        if reach < 1:
            raise InvalidArgument("reach", "a window has at least one action")
        self._store, self._session = store, session
        self.last: int = session.number
        row_bytes = session.size // max(session.number, 1) + 1
        self._reach = min(max(_REACH_BYTES // row_bytes, _LEAST), reach)
        self._trail = Trail()
        self._begin: Known = (0, EMPTY_SESSION)
        self._window: list[SessionAction] = []
        self._marks: Marks | None = None

    @property
    def number(self) -> int:
        """The position: how many actions have been applied."""
        return self._trail.number

    @property
    def state(self) -> SessionState:
        """The state at the position."""
        return self._trail.state

    async def state_at(self, number: int) -> SessionState:
        """The state after so many actions; the position stays. Raises InvalidArgument like ``seek``."""
        if not 0 <= number <= self.last:
            raise InvalidArgument("number", f"{number} is not between 0 and {self.last}")
        known = self._nearest(number)
        return await self._stored(number) if known is None else fold(self._actions(known[0], number), known[1])

    async def seek(self, number: int) -> SessionState:
        """Go to a number; the state there. Raises InvalidArgument for one that the log does not have."""
        state = await self.state_at(number)
        self._trail.arrive(number, state)
        return state

    async def step(self, by: int = 1) -> SessionState:
        """Go so many actions forward, or back, but not beyond the ends of the log; the state there."""
        number = min(max(self.number + by, 0), self.last)
        if abs(number - self.number) > NEAR:
            return await self.seek(number)
        known = self._nearest(number)
        if known is None:
            known = await self._move(number)
        return self._trail.walk(known, number, self._actions)

    async def marks(self) -> Marks:
        """Where in the log something happened. The whole log is read for that, page by page, when first asked."""
        if self._marks is None:
            marker = Marker()
            after = 0
            while after < self.last:
                limit = min(_PAGE, self.last - after)
                rows = await self._store.read(self._session.id, after=after, limit=limit, owner=self._session.owner)
                if not rows:
                    raise self._cut_short(after)
                for row in rows:
                    marker.feed(row)
                after = rows[-1].number
            self._marks = Marks(marker.marks)
        return self._marks

    # ---- the window ----

    def _nearest(self, number: int) -> Known | None:
        """A state from which the actions to that number are in memory; None: another window is needed."""
        known = self._trail.nearest(number)
        if known is not None and known[0] == number:
            return known
        begin = self._begin[0]
        if not begin <= number <= begin + len(self._window):
            return None
        return known if known is not None and known[0] > begin else self._begin

    def _actions(self, after: int, through: int) -> list[SessionAction]:
        begin = self._begin[0]
        return self._window[after - begin : through - begin]

    async def _move(self, number: int) -> Known:
        """Read the window around a number, and give the state that it begins with."""
        if number > self.number:  # on from here, where the state is known
            begin = (self.number, self.state)
        else:
            at = max(number - self._reach, 0)
            begin = (at, await self._stored(at))
        through = min(number + self._reach, self.last)
        window: list[SessionAction] = []
        while (after := begin[0] + len(window)) < through:
            limit = min(_PAGE, through - after)
            rows = await self._store.read(self._session.id, after=after, limit=limit, owner=self._session.owner)
            if not rows:
                raise self._cut_short(after)
            window += (row.action for row in rows)
        self._begin, self._window = begin, window
        return begin

    async def _stored(self, number: int) -> SessionState:
        if number == 0:
            return EMPTY_SESSION
        return (await self._store.state(self._session.id, at=number, owner=self._session.owner)).state

    def _cut_short(self, number: int) -> StoreDamaged:
        return StoreDamaged(f"the log of {self._session.id} ends with action {number}, and should with {self.last}")
