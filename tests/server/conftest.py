"""Fixtures of the tests of the server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
from server_world import SHOP, by_token, client_of

from talkfold.server import app
from talkfold.store import SessionStore, open_store


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[SessionStore]:
    async with open_store("memory:" if request.param == "memory" else tmp_path / "chat.db") as opened:
        yield opened


@pytest.fixture
async def api(store: SessionStore) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of everybody's sessions, as on loopback."""
    async with app(store, agents={"shop": SHOP}) as application, client_of(application) as client:
        yield client


@pytest.fixture
async def shared(store: SessionStore) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of a server with tokens; each request brings its own (``bearer``)."""
    async with (
        app(store, agents={"shop": SHOP}, authenticate=by_token) as application,
        client_of(application) as client,
    ):
        yield client
