"""Opening a store by its location."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from typing import get_args

from ..errors import InvalidArgument
from ..redaction import Redaction
from .arguments import check_name, check_time
from .memory.store import MemoryStore
from .protocol import SessionStore
from .sqlite.connection import Synchronous
from .sqlite.store import SqliteStore

__all__ = (
    "MEMORY",
    "open_store",
)

MEMORY = "memory:"


def _now() -> int:
    return time.time_ns() // 1_000_000


def _random_id() -> str:
    return str(uuid.uuid4())


@asynccontextmanager
async def open_store(
    location: str | os.PathLike[str],
    *,
    migrate: bool = True,
    allow_network: bool = False,
    metadata_keys: Collection[str] = (),
    synchronous: Synchronous = "FULL",
    timeout: float = 10.0,
    redact: Redaction | None = None,
    clock: Callable[[], int] = _now,
    new_id: Callable[[], str] = _random_id,
) -> AsyncGenerator[SessionStore]:
    """Open the sessions at ``location``: the path of an SQLite file (made when missing), or ``"memory:"``.

    - ``migrate``: bring an older database up to date; false: raise DatabaseTooOld.
    - ``allow_network``: open a file on a network file system all the same.
    - ``metadata_keys``: the metadata keys that ``list`` may filter by.
    - ``synchronous``: ``"FULL"`` syncs the disk before an append returns. ``"NORMAL"`` may lose the last appends when
      the power fails (never when the process is killed).
    - ``timeout``: seconds to wait for another process that writes, before StoreBusy.
    - ``redact``: what is taken out of everything that is written through this store, and of nothing that is there.
    - ``clock`` gives milliseconds since 1970, ``new_id`` the ids of new sessions.

    Raises InvalidArgument, StoreUnavailable, NetworkFileSystem, ForeignDatabase, DatabaseTooNew, DatabaseTooOld,
    MigrationChanged, MigrationMissing, StoreBusy, StoreDamaged.
    """
    for key in metadata_keys:
        if not re.fullmatch(r"[A-Za-z0-9_.:-]+", key):
            raise InvalidArgument("metadata_keys", f"{key!r} may have only letters, digits and _ . : -")
    if synchronous not in get_args(Synchronous):
        raise InvalidArgument("synchronous", f"{synchronous!r} is none of {', '.join(get_args(Synchronous))}")
    if not timeout > 0:
        raise InvalidArgument("timeout", f"seconds are needed, not {timeout!r}")
    if redact is not None and not isinstance(redact, Redaction):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("redact", f"a Redaction is needed, not {type(redact).__name__}")
    place = _place(location)
    if place == MEMORY:
        memory = MemoryStore(
            metadata_keys=metadata_keys, redaction=redact, clock=_checked_clock(clock), new_id=_checked_ids(new_id)
        )
        try:
            yield memory
        finally:
            await memory.close()
        return
    store = await SqliteStore.open(
        place,
        migrate=migrate,
        allow_network=allow_network,
        metadata_keys=metadata_keys,
        synchronous=synchronous,
        timeout=timeout,
        redaction=redact,
        clock=_checked_clock(clock),
        new_id=_checked_ids(new_id),
    )
    try:
        yield store
    finally:
        await store.close()


def _place(location: str | os.PathLike[str]) -> str:
    place = os.fspath(location)
    if not isinstance(place, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidArgument("location", f"a path as text is needed, not {type(place).__name__}")
    if place == ":memory:":
        raise InvalidArgument("location", f"':memory:' would be a file here; {MEMORY!r} is the store in memory")
    if not place or "://" in place or "\0" in place:
        raise InvalidArgument("location", f"{place!r} is neither a path nor {MEMORY!r}")
    try:
        place.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("location", f"{place!r} is no UTF-8 path, which SQLite needs") from None
    return place


def _checked_clock(clock: Callable[[], int]) -> Callable[[], int]:
    def checked() -> int:
        now = clock()
        check_time(now)
        return now

    return checked


def _checked_ids(new_id: Callable[[], str]) -> Callable[[], str]:
    def checked() -> str:
        made = new_id()
        if made is None:  # pyright: ignore[reportUnnecessaryComparison] - callers may be untyped
            raise InvalidArgument("new_id", "it made no id")
        check_name("new_id", made)
        return made

    return checked
