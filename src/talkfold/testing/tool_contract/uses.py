"""What an author tells the contract of a source of tools."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from ...runs import ToolCallRequest, ToolSource

__all__ = ("UsesTools", "given")


def given(call: ToolCallRequest | None, hook: str) -> ToolCallRequest:
    """The call; without it, the test is skipped and says which hook would run it."""
    if call is None:
        pytest.skip(f"{hook}() gives no call")
    return call


class UsesTools:
    """A group of tests that need a source. ``open`` is all that must be given.

    ``seconds`` is how long a call may take, ``soon`` how long one may go on when it is given up.
    """

    pytestmark: pytest.MarkDecorator = pytest.mark.anyio
    seconds: float = 10.0
    soon: float = 1.0

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    def open(self) -> AbstractAsyncContextManager[ToolSource]:
        """A source with at least one tool."""
        raise NotImplementedError

    def working(self) -> ToolCallRequest | None:
        """A call that gives a result, and that may be made several times, also at once."""
        return None

    def misfit(self) -> ToolCallRequest | None:
        """A call of a tool that there is, with an input that does not fit its schema."""
        return None

    def failing(self) -> ToolCallRequest | None:
        """A call that fits, and fails."""
        return None

    def slow(self) -> ToolCallRequest | None:
        """A call that would take longer than ``seconds``."""
        return None
