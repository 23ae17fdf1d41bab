"""talkfold itself, as a ``Store``: every append names the number that it expects to come after."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from talkfold._version import __version__
from talkfold.actions import SessionAction
from talkfold.codec import decode_action
from talkfold.errors import SessionExists
from talkfold.fold import fold
from talkfold.store import SessionStore, open_store

from .stores import Store

__all__ = ("TALKFOLD", "TalkfoldLog", "TalkfoldStore")


class TalkfoldLog:
    """A session, and the number of its newest action as this writer knows it."""

    def __init__(self, store: SessionStore, name: str, number: int) -> None:
        self._store = store
        self._name = name
        self._number = number

    async def append(self, items: Sequence[SessionAction]) -> None:
        self._number = (await self._store.append(self._name, items, expected=self._number)).last

    async def load(self) -> int:
        """Every action read, decoded and folded from the first one: no snapshot helps."""
        number, count = 0, 0
        state = fold(())
        while rows := await self._store.read(self._name, after=number, limit=10_000):
            state = fold((row.action for row in rows), state)
            number, count = rows[-1].number, count + len(rows)
        assert state.messages
        return count


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


def _prepare(bodies: Sequence[bytes]) -> list[SessionAction]:
    return [decode_action(body) for body in bodies]


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[TalkfoldStore]:
    async with open_store(str(folder / "talkfold.db")) as store:
        yield TalkfoldStore(store)


TALKFOLD = Store("talkfold", __version__, _prepare, _opened)
