"""What all tests share: one async backend, and how hard hypothesis tries."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("normal", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("normal"), max_examples=2000)
settings.load_profile("long" if os.environ.get("TALKFOLD_LONG") else "normal")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio: the SQLite driver knows no other."""
    return "asyncio"
