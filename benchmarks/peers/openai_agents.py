"""OpenAI Agents SDK: ``SQLiteSession``. One object a session, a connection per worker thread, WAL, FULL."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agents.memory import SQLiteSession

from ..stores import Store

__all__ = ("STORES",)


class _Log:
    def __init__(self, session: SQLiteSession) -> None:
        self._session = session

    async def append(self, items: Sequence[Any]) -> None:
        await self._session.add_items(list(items))

    async def load(self) -> int:
        return len(await self._session.get_items())


class _Sessions:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[SQLiteSession] = []

    async def log(self, name: str) -> _Log:
        session = SQLiteSession(name, self._path)
        self._open.append(session)
        return _Log(session)

    def close(self) -> None:
        for session in self._open:
            session.close()


def _prepare(bodies: Sequence[bytes]) -> list[Any]:
    """Its items are plain dicts that it turns into JSON itself: the action's own dict, so the same JSON."""
    return [json.loads(body) for body in bodies]


@asynccontextmanager
async def _opened(folder: Path) -> AsyncGenerator[_Sessions]:
    sessions = _Sessions(folder / "sessions.db")
    try:
        yield sessions
    finally:
        sessions.close()


STORES = (Store("OpenAI Agents SQLiteSession", f"openai-agents {version('openai-agents')}", _prepare, _opened),)
