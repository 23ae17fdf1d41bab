"""A whole log for a pure function that reads rows one after the other: it never lies in memory as a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

from anyio import from_thread, to_thread

from ..errors import StoreDamaged
from ..log import LoggedAction
from ..store.protocol import Session, SessionStore
from .progress import Advance, progress

__all__ = ("fed", "told_if_long")

_Result = TypeVar("_Result")

_PAGE = 1000
_LONG = 20_000
"""From so many actions on, a person is shown how far it is."""


def told_if_long(total: int, what: str = "reading") -> AbstractContextManager[Advance]:
    """A progress bar as a context, with nothing to see where little is read."""
    return progress(what, total if total >= _LONG else 0)


async def fed(
    store: SessionStore,
    session: Session,
    read: Callable[[Iterable[LoggedAction]], _Result],
    *,
    last: int | None = None,
    advance: Advance = lambda _: None,
) -> _Result:
    """What ``read`` makes of a session's actions, from the first through number ``last`` (the head by default).

    It works in a thread of its own, and each page is read when it asks for it. ``advance`` is called with how many
    rows it has taken. Raises StoreDamaged where the log ends too early.
    """
    end = session.number if last is None else last

    def rows() -> Iterator[LoggedAction]:
        after = 0
        while after < end:
            ask = partial(store.read, session.id, after=after, limit=min(_PAGE, end - after), owner=session.owner)
            page = from_thread.run(ask)
            if not page:
                raise StoreDamaged(f"the log of session {session.id!r} ends at {after}; it should go on to {end}")
            yield from page
            after = page[-1].number
            from_thread.run_sync(advance, after)

    return await to_thread.run_sync(lambda: read(rows()), abandon_on_cancel=True)
