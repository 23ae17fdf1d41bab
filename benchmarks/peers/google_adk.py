"""google-adk: ``SqliteSessionService`` and ``DatabaseSessionService`` (SQLAlchemy on aiosqlite).

Both append one event at a time and read the session's row first; the database stays in SQLite's default
journal mode with synchronous=FULL, which is how these services open it.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

from google.adk.events import Event
from google.adk.sessions import BaseSessionService, DatabaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, Part

from ..stores import Store

__all__ = ("STORES",)

APP, USER = "bench", "person"


class _Log:
    def __init__(self, service: BaseSessionService, session: Session) -> None:
        self._service = service
        self._session = session

    async def append(self, items: Sequence[Event]) -> None:
        for event in items:
            await self._service.append_event(self._session, event)

    async def load(self) -> int:
        found = await self._service.get_session(app_name=APP, user_id=USER, session_id=self._session.id)
        assert found is not None
        return len(found.events)


class _Service:
    def __init__(self, service: BaseSessionService) -> None:
        self._service = service

    async def log(self, name: str) -> _Log:
        nothing = GetSessionConfig(num_recent_events=0)
        found = await self._service.get_session(app_name=APP, user_id=USER, session_id=name, config=nothing)
        if found is None:
            found = await self._service.create_session(app_name=APP, user_id=USER, session_id=name)
        return _Log(self._service, found)


def _prepare(bodies: Sequence[bytes]) -> list[Event]:
    """One event for each action, with the action's JSON as its text."""
    return [
        Event(
            author="agent",
            invocation_id="run-1",
            content=Content(role="model", parts=[Part(text=body.decode())]),
        )
        for body in bodies
    ]


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncGenerator[_Service]:
    yield _Service(SqliteSessionService(str(folder / "sqlite.db")))


@asynccontextmanager
async def _database(folder: Path) -> AsyncGenerator[_Service]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{folder / 'database.db'}")
        try:
            yield _Service(service)
        finally:
            await service.close()


_store = partial(Store, version=f"google-adk {version('google-adk')}", prepare=_prepare, batches=False)

STORES = (
    _store(name="google-adk SqliteSessionService", opened=_sqlite, every=4),
    _store(name="google-adk DatabaseSessionService", opened=_database, every=10),
)
