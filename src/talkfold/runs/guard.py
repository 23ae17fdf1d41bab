"""One call, guarded: whatever becomes of it is an output.

The work runs in a task of its own, so that what it does to its task (leaving a scope open, cancelling itself,
setting context variables) stays there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import cast

import anyio
from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint

from .output import ToolErrorCode, ToolOutput, error_output
from .signal import AbortController, AbortSignal
from .threads import to_loop

__all__ = ("error_text", "failure", "guarded")

_log = logging.getLogger(__name__)
_MAX_REASON = 2_000


async def guarded(
    name: str,
    work: Callable[[AbortSignal], Awaitable[ToolOutput]],
    *,
    signal: AbortSignal,
    timeout: float | None = None,
) -> ToolOutput:
    """Await the work's output; a failure, a timeout (in seconds), an abort or a cancellation is an output as well.

    Never raises, with one exception: KeyboardInterrupt is the person's, and passes. When the caller itself is
    cancelled, the work is cancelled, the output says so, and the caller's next await raises the cancellation: it is
    put off by a step, never lost. The work gets a signal that is aborted whenever the call is given up. A result that
    was there when the abort came is the result: the tool did run.
    """
    ended: list[ToolOutput] = []
    given_up = AbortController()

    async def expire(seconds: float) -> None:
        await anyio.sleep(seconds)
        given_up.abort("timeout")  # first, as above
        late.cancel()

    async def alone() -> None:
        try:
            ended.append(await work(given_up.signal))
        except (get_cancelled_exc_class(), KeyboardInterrupt):
            raise
        except BaseException as error:
            if anyio.current_effective_deadline() != -inf:  # what is raised on the way out is not the cause
                ended.append(failure(name, error))

    stopped = anyio.CancelScope()
    late = anyio.CancelScope()
    cancel = to_loop(stopped.cancel)

    def give_up() -> None:
        given_up.abort(signal.reason or "aborted")  # first: the work may look at it while it is cancelled
        cancel()

    unsubscribe = signal.subscribe(give_up)
    try:
        await checkpoint()  # a caller that is cancelled already starts nothing
        with stopped, late:
            if not signal.aborted:
                async with anyio.create_task_group() as clock:
                    if timeout is not None:
                        clock.start_soon(expire, timeout)
                    async with anyio.create_task_group() as group:
                        group.start_soon(alone)
                    clock.cancel_scope.cancel()
    except get_cancelled_exc_class() as cancellation:
        given_up.abort("it was cancelled")
        _cancel_again(cancellation)
    except Exception as error:  # the work left its task in disorder, with a scope open
        if not ended:
            ended.append(failure(name, error))
    finally:
        unsubscribe()
    if ended:
        return ended[0]
    code, reason = _without_end(signal, late.cancel_called, timeout, given_up)
    return error_output(code, f"{name}: {reason}")


def _without_end(
    signal: AbortSignal, late: bool, timeout: float | None, given_up: AbortController
) -> tuple[ToolErrorCode, str]:
    if signal.aborted:
        return "cancelled", f"stopped ({signal.reason})"
    if late:
        return "timeout", f"no result within {timeout:g} s"
    if given_up.signal.aborted:
        return "cancelled", str(given_up.signal.reason)
    return "cancelled", "the tool cancelled itself"


def _cancel_again(cancellation: BaseException) -> None:
    """asyncio delivers a task's cancellation once; cancel scopes, which both libraries have, deliver it again."""
    if anyio.current_effective_deadline() == -inf:
        return
    with suppress(RuntimeError):  # no asyncio here
        if (task := asyncio.current_task()) is not None and task.cancelling():
            task.uncancel()  # the count of requests stays what it was: asyncio.timeout relies on it
            task.cancel(*cancellation.args)


def failure(name: str, error: BaseException) -> ToolOutput:
    """What a raised exception is to the model: the tool failed, or (what is no Exception) died."""
    _log.warning("tool %r raised", name, exc_info=error)
    if isinstance(error, get_cancelled_exc_class()):
        return error_output("cancelled", f"{name}: the tool cancelled itself")
    code: ToolErrorCode = "failed" if isinstance(error, Exception) else "unavailable"
    return error_output(code, f"{name}: {error_text(error)}")


def error_text(error: BaseException) -> str:
    """An exception in one line, of 2,000 characters at most: its kind and its text, of a group those of its members."""
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return "; ".join(map(error_text, inner))[:_MAX_REASON]
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be made)"
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__)[:_MAX_REASON]
