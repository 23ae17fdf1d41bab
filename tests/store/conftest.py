"""Fixtures of the store's tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's database is, or will be."""
    return tmp_path / "chat.db"


@pytest.fixture(autouse=True)
def _nothing_left_open() -> Iterator[None]:
    """No test here may leave a thread or a file handle of a store behind."""
    before = set(threading.enumerate())
    yield
    loops = ("asyncio", "Trio")  # threads that an event loop keeps for its own use
    left = [thread for thread in threading.enumerate() if thread not in before and not thread.name.startswith(loops)]
    for thread in left:
        thread.join(5)
    assert not [thread for thread in left if thread.is_alive()]
