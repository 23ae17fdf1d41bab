"""Fixtures of the tests of live runs."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Nothing here needs a database driver, so everything runs on both."""
    return str(request.param)
