"""From ``--db`` and an id on the command line to an open store and a session."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ..errors import DatabaseNotFound, InvalidArgument, SessionNotFound, StoreDamaged, StoreUnavailable
from ..log import LoggedAction
from ..redaction import Redaction
from ..store import open_store
from ..store.protocol import Session, SessionStore
from .options import Where

__all__ = ("all_sessions", "database_path", "find", "opened", "read_log")

_PAGE = 1000


def database_path(where: Where) -> Path:
    """The database file: ``--db``, else ``TALKFOLD_DB``, else the platform's folder for user data."""
    if where.db is not None:
        return Path(where.db)
    from platformdirs import user_data_path

    return user_data_path("talkfold", appauthor=False) / "chat.db"


@asynccontextmanager
async def opened(
    where: Where,
    *,
    create: bool = False,
    metadata_keys: Sequence[str] = (),
    redact: Redaction | None = None,
) -> AsyncGenerator[SessionStore]:
    """The store that the person named.

    Only ``create`` makes a new file or brings an old one up to date; else DatabaseNotFound and DatabaseTooOld
    say what to do.
    """
    path = database_path(where)
    if create and where.db is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"the folder for it cannot be made ({error.strerror}); name a database with --db"
            raise StoreUnavailable(os.fspath(path), reason) from error
    elif not create and not path.exists():
        raise DatabaseNotFound(os.fspath(path))
    async with open_store(
        path,
        migrate=create,
        allow_network=where.allow_network_file_system,
        metadata_keys=metadata_keys,
        redact=redact,
    ) as store:
        yield store


async def all_sessions(store: SessionStore, where: Where) -> AsyncIterator[Session]:
    """Every session, newest first, read in pages."""
    cursor: str | None = None
    while True:
        page = await store.list(owner=where.owner, limit=_PAGE, cursor=cursor)
        for session in page.sessions:
            yield session
        cursor = page.next
        if cursor is None:
            return


async def find(store: SessionStore, given: str, where: Where) -> Session:
    """The session with this id, else the only one whose id begins so.

    Raises SessionNotFound, and InvalidArgument when several ids begin so.
    """
    try:
        return await store.get(given, owner=where.owner)
    except SessionNotFound:
        found = [each async for each in all_sessions(store, where) if given and each.id.startswith(given)]
    if not found:
        raise SessionNotFound(given)
    if len(found) > 1:
        ids = ", ".join(each.id for each in found[:5]) + (", …" if len(found) > 5 else "")
        raise InvalidArgument("ID", f"{len(found)} sessions begin with {given!r}: {ids}")
    return found[0]


async def read_log(
    store: SessionStore, session: Session, first: int = 1, last: int | None = None
) -> AsyncIterator[LoggedAction]:
    """A session's actions from number ``first`` through ``last`` (the head by default), read in pages."""
    after = first - 1
    end = session.number if last is None else last
    while after < end:
        page = await store.read(session.id, after=after, limit=min(_PAGE, end - after), owner=session.owner)
        if not page:
            raise StoreDamaged(f"the log of session {session.id!r} ends at {after}; it should go on to {end}")
        for logged in page:
            yield logged
            after = logged.number
