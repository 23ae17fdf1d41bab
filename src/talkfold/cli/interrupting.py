"""Commands that go on until Ctrl-C: it ends them, and is no error."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

__all__ = ("until_interrupted",)


@asynccontextmanager
async def until_interrupted() -> AsyncGenerator[None]:
    """The block ends with Ctrl-C, as if it had come to its end."""

    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_when_interrupted, tasks.cancel_scope)
        try:
            yield
        except Exception as error:  # it comes out as it is, in no group
            raised = error
        tasks.cancel_scope.cancel()
    if raised is not None:
        raise raised


async def _cancel_when_interrupted(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
