"""Between an event loop and threads, on asyncio and trio alike.

Two things are needed and neither backend-neutral library offers them: a call from any thread that does not wait
for the loop (Stop must never block whoever presses it), and a thread that can be left behind. A pool's worker that
hangs costs the pool a place and keeps the process from ending; a thread of its own does neither.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextvars import copy_context
from threading import Thread
from typing import Generic, TypeAlias, TypeVar, cast

import anyio
from msgspec import Struct

__all__ = ("Ended", "in_thread", "to_loop")

_T = TypeVar("_T")
_Post: TypeAlias = Callable[[Callable[[], object]], object]


class Ended(Struct, Generic[_T], frozen=True):
    """How a call ended: with a value, or with what it raised (whatever that was)."""

    value: _T | None = None
    error: BaseException | None = None


def to_loop(call: Callable[[], object]) -> Callable[[], None]:
    """The same call, made safe for every thread and every signal handler of the system.

    It runs soon in the loop that is running now, and never once that loop is over. Raises RuntimeError when no loop
    is running.
    """
    post = _poster()

    def anywhere() -> None:
        try:
            post(call)
        except RuntimeError:
            pass  # the loop is over, and with it whoever waited there

    return anywhere


def _poster() -> _Post:
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        if (trio := sys.modules.get("trio")) is None:
            raise
        return cast("_Post", trio.lowlevel.current_trio_token().run_sync_soon)


async def in_thread(call: Callable[[], _T], name: str) -> Ended[_T]:
    """Run a blocking call in a thread of its own, with this task's context variables, and say how it ended.

    When the waiting task is cancelled before the call ended, the thread is left to itself: nobody can end it, its end
    is not looked at, and it does not keep the process alive. Raises RuntimeError when no thread can be started.
    """
    finished = anyio.Event()
    tell = to_loop(finished.set)
    context = copy_context()
    ended: list[Ended[_T]] = []
    left: list[bool] = []

    def body() -> None:
        if left:
            return  # nobody waited any more before it began
        try:
            ended.append(Ended(value=context.run(call)))
        except BaseException as error:  # the thread has nobody else who could hear it
            ended.append(Ended(error=error))
        tell()

    Thread(target=body, name=name, daemon=True).start()
    try:
        await finished.wait()
    except anyio.get_cancelled_exc_class():
        left.append(True)
        if not ended:  # what has been done is told, even if the news of it came second
            raise
    return ended[0]
