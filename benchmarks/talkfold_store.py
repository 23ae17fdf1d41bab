"""talkfold itself, as a ``Store``: every append names the number that it expects to come after."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

from talkfold._version import __version__
from talkfold.actions import SessionAction
from talkfold.codec import decode_action
from talkfold.errors import SessionExists
from talkfold.store import SessionStore, open_store

from .stores import Store

__all__ = ("FILE", "TALKFOLD", "TalkfoldLog", "TalkfoldStore", "drop_snapshots")

FILE = "talkfold.db"


class TalkfoldLog:
    """A session, and the number of its newest action as this writer knows it."""

    def __init__(self, store: SessionStore, name: str, number: int) -> None:
        self._store = store
        self._name = name
        self._number = number

    async def append(self, items: Sequence[SessionAction]) -> None:
        self._number = (await self._store.append(self._name, items, expected=self._number)).last

    async def load(self) -> int:
        """The conversation's state; from the first action on when there are no snapshots."""
        return (await self._store.state(self._name)).number


class TalkfoldStore:
    """An open store; ``store`` is the real one."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    async def log(self, name: str) -> TalkfoldLog:
        try:
            session = await self.store.create(name)
        except SessionExists:
            session = await self.store.get(name)
        return TalkfoldLog(self.store, name, session.number)


def drop_snapshots(folder: Path) -> None:
    """Throw away every snapshot of a closed store: they are caches, and the next state is folded from the start."""
    with closing(sqlite3.connect(folder / FILE)) as connection, connection:
        connection.execute("DELETE FROM snapshot")


def _prepare(bodies: Sequence[bytes]) -> list[SessionAction]:
    return [decode_action(body) for body in bodies]


@asynccontextmanager
async def _opened(folder: Path) -> AsyncGenerator[TalkfoldStore]:
    async with open_store(folder / FILE) as store:
        yield TalkfoldStore(store)


TALKFOLD = Store("talkfold", f"talkfold {__version__}", _prepare, _opened)
