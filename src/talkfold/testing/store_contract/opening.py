"""How the contract gets its store, and small things that its tests say often."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import cast

import pytest

from ...errors import TalkfoldError
from ...log import LoggedAction
from ...store.protocol import SessionStore
from .clock import Clock

__all__ = ("METADATA_KEYS", "UsesStore", "bodies", "error_of", "follow", "numbers")

METADATA_KEYS = ("project", "stars")
"""The metadata keys by which the contract lists sessions: a store must be opened for them."""


class UsesStore:
    """A group of tests that need a store."""

    pytestmark: pytest.MarkDecorator = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @cached_property
    def clock(self) -> Clock:
        """The clock of this test's store."""
        return Clock()

    def open(self) -> AbstractAsyncContextManager[SessionStore]:
        """A new, empty store, opened with ``metadata_keys=METADATA_KEYS`` and ``clock=self.clock``."""
        raise NotImplementedError


async def error_of(call: Awaitable[object]) -> TalkfoldError:
    """The error that a call must raise."""
    try:
        answer = await call
    except TalkfoldError as error:
        return error
    pytest.fail(f"an error was due, not {answer!r}")


def follow(
    store: SessionStore, session_id: str, *, after: int = 0, owner: str | None = None
) -> AsyncGenerator[LoggedAction]:
    """A subscription as what it is: an iterator that can be closed."""
    return cast("AsyncGenerator[LoggedAction]", store.subscribe(session_id, after=after, owner=owner))


def numbers(logged: Iterable[LoggedAction]) -> list[int]:
    """The numbers of logged actions, in order."""
    return [row.number for row in logged]


def bodies(logged: Iterable[LoggedAction]) -> list[bytes]:
    """The bodies of logged actions, in order."""
    return [row.body for row in logged]
