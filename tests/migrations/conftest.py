"""Fixtures of the migrations' tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's database is, or will be."""
    return tmp_path / "chat.db"
