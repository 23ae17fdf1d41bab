"""Fixtures of the tests of live runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from talkfold.store import SessionStore, open_store

_BACKENDS = ("asyncio", "trio")
_STORES = (("memory", "asyncio"), ("memory", "trio"), ("sqlite", "asyncio"))  # SQLite's driver needs asyncio


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What needs no database driver runs on both backends; what needs a store, on each kind of store."""
    if "store_kind" in metafunc.fixturenames:
        ids = [f"{kind}-{backend}" for kind, backend in _STORES]
        metafunc.parametrize(("store_kind", "anyio_backend"), _STORES, ids=ids, indirect=["anyio_backend"])
    elif "anyio_backend" in metafunc.fixturenames and not _chosen(metafunc):
        metafunc.parametrize("anyio_backend", _BACKENDS, indirect=True)


def _chosen(metafunc: pytest.Metafunc) -> bool:
    """Whether a test, or its class, names its backend."""
    marks = metafunc.definition.iter_markers("parametrize")
    return hasattr(metafunc.cls, "anyio_backend") or any("anyio_backend" in mark.args[0] for mark in marks)


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(store_kind: str, anyio_backend: str, tmp_path: Path) -> AsyncGenerator[SessionStore]:
    """A store of each kind."""
    async with open_store("memory:" if store_kind == "memory" else tmp_path / "chat.db") as opened:
        yield opened
