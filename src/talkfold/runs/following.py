"""Following a run that somebody else plays: what a second opener does while the owner lives."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio

from ..actions import Finish, Part, RunError
from ..log import LoggedAction
from ..store.protocol import SessionStore

__all__ = ("follow", "is_end")

_LOOK_SECONDS = 0.5
"""How often to look whether the owner of a silent run still lives."""

_PAGE = 500


async def follow(
    store: SessionStore, session_id: str, *, after: int = 0, owner: str | None = None
) -> AsyncGenerator[LoggedAction]:
    """Every action after a number, and then what comes, until the run that lives now has ended.

    Without a living run it ends where the log ends. A run's last action is its ``finish`` or ``error``; when its
    process dies, following settles the session (once, whoever else does so too) and ends with that ``stop``. Close the
    iterator to leave earlier. Raises SessionNotFound, SessionErased, CursorAhead, StoreClosed.
    """
    run = await _living_run(store, session_id, owner)
    signs = _Signs()
    async with store.watch(session_id, signs.moved, owner=owner):
        while True:
            signs.clear()
            page = await store.read(session_id, after=after, limit=_PAGE, owner=owner)
            for row in page:
                yield row
                after = row.number
                if row.run == run and is_end(row):
                    return
            if page:
                continue
            if run is None:
                return
            if await signs.silent(_LOOK_SECONDS) and await _living_run(store, session_id, owner) != run:
                run = None  # its end, if somebody settled it, is read before following ends


def is_end(row: LoggedAction) -> bool:
    """Whether this is how a run ends: a ``finish`` or ``error`` of the top level."""
    action = row.action
    return type(action) is Part and action.within is None and type(action.part) in (Finish, RunError)


async def _living_run(store: SessionStore, session_id: str, owner: str | None) -> str | None:
    """The run that owns the session; one whose owner died is settled, and there is none."""
    lease = (await store.get(session_id, owner=owner)).lease
    if lease is None:
        lease = (await store.open_session(session_id, owner=owner)).session.lease
    return None if lease is None else lease.run


class _Signs:
    """Whether the log moved since one last looked."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def moved(self, number: int) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event = anyio.Event()

    @property
    def quiet(self) -> bool:
        return not self._event.is_set()

    async def silent(self, seconds: float) -> bool:
        """Wait until the log moves, for so many seconds at most; whether it did not."""
        with anyio.move_on_after(seconds):
            await self._event.wait()
        return self.quiet
