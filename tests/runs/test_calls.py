"""A call never raises: every way in which a tool can end is an output."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from talkfold import ToolError, session_reducer
from talkfold.actions import MessageStart, Part, Send, ToolCall
from talkfold.model import EMPTY_SESSION, ToolPart
from talkfold.runs import (
    AbortController,
    Tool,
    Toolbox,
    ToolCallRequest,
    ToolContext,
    ToolOutput,
    ToolProgress,
    tool,
    tool_outcome,
)

each_kind = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def made(is_async: bool, work: Callable[[], Any], **options: Any) -> Tool[..., Any]:
    """A tool named ``it`` around the work, as a sync or an async function."""

    def it() -> Any:
        return work()

    async def it_async() -> Any:
        await checkpoint()
        return work()

    return tool(name="it", **options)(it_async if is_async else it)


async def call(one: Tool[..., Any], given: Any = None, context: ToolContext | None = None) -> ToolOutput:
    """Call the only tool of a box, and never wait for ever."""
    with anyio.fail_after(20):
        return await Toolbox(one).call(ToolCallRequest("c1", one.name, {} if given is None else given), context)


def raising(error: BaseException) -> Callable[[], Any]:
    def work() -> Any:
        raise error

    return work


@dataclass
class Basket:
    total: int


@each_kind
@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("two mugs", "two mugs", None),
        (None, "", None),
        (Basket(25), '{"total":25}', {"total": 25}),
        ({"content": [{"type": "text", "text": "MCP"}], "x": 1}, "MCP", None),
        (ToolOutput({"content": [{"type": "text", "text": "own"}]}), "own", None),
    ],
)
async def test_what_a_tool_returns(is_async: bool, value: Any, text: str, structured: Any) -> None:
    output = await call(made(is_async, lambda: value))
    assert (output.text, output.is_error) == (text, False)
    assert output.raw.get("structuredContent") == structured


async def test_an_output_with_an_error_of_its_own_is_handed_on() -> None:
    raw = {"content": [{"type": "text", "text": "sold out"}], "isError": True}
    assert (await call(made(False, lambda: raw))).raw == raw


# ---- every error code ---------------------------------------------------------------------------------------


async def test_not_found_says_what_there_is() -> None:
    box = Toolbox(made(False, lambda: None))
    output = await box.call(ToolCallRequest("c1", "pay", {}))
    assert (output.is_error, output.text) == (True, "Error [not_found] there is no tool pay; the tools are: it")
    near = await box.call(ToolCallRequest("c1", "itt", {}))
    assert near.text == "Error [not_found] there is no tool itt; did you mean it?"
    empty = await Toolbox().call(ToolCallRequest("c1", "pay", {}))
    assert empty.text == "Error [not_found] there is no tool pay; the tools are: none"


@each_kind
async def test_invalid_input_does_not_run_the_tool(is_async: bool) -> None:
    ran = list[str]()
    output = await call(made(is_async, lambda: ran.append("ran")), {"extra": 1})
    assert output.is_error
    assert output.text.startswith("Error [invalid_input] it: extra: no such argument.")
    assert ran == []


@each_kind
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("the card was refused"), "Error [failed] it: ValueError: the card was refused"),
        (LookupError(), "Error [failed] it: LookupError"),
        (ExceptionGroup("two", [ValueError("a"), OSError("b")]), "Error [failed] it: ValueError: a; OSError: b"),
        (SystemExit(3), "Error [unavailable] it: SystemExit: 3"),
        (GeneratorExit(), "Error [unavailable] it: GeneratorExit"),
    ],
)
async def test_a_tool_that_raises_failed_and_one_that_dies_is_gone(
    is_async: bool, error: BaseException, text: str
) -> None:
    output = await call(made(is_async, raising(error)))
    assert (output.is_error, output.text) == (True, text)


@each_kind
async def test_an_error_whose_text_cannot_be_made(is_async: bool) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert (await call(made(is_async, raising(Broken())))).text.startswith("Error [failed] it: Broken")


async def test_an_error_is_never_longer_than_a_model_can_use() -> None:
    assert len((await call(made(False, raising(ValueError("x" * 10**6))))).text) < 3_000


async def test_an_interrupt_in_a_thread_is_no_persons() -> None:
    assert (await call(made(False, raising(KeyboardInterrupt())))).text == "Error [unavailable] it: KeyboardInterrupt"


def test_the_persons_interrupt_passes(anyio_backend: str) -> None:
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as caught:
        anyio.run(call, made(True, raising(KeyboardInterrupt())), backend=anyio_backend)
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, KeyboardInterrupt)


async def test_a_failure_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "talkfold"):
        await call(made(False, raising(ValueError("no"))))
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ValueError]


@each_kind
@pytest.mark.parametrize("value", [math.nan, object(), b"x", {1: 2}, "x" * (16 * 2**20)])
async def test_a_result_that_cannot_be_kept_is_a_failure_that_says_so(is_async: bool, value: object) -> None:
    output = await call(made(is_async, lambda: value))
    assert output.is_error
    assert output.text.startswith("Error [failed] it: it ran, but its result cannot be kept: ")


async def test_a_result_that_breaks_while_it_is_read() -> None:
    class Breaking(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("no items")

        def __iter__(self) -> Any:
            raise RuntimeError("no keys")

    class Dying:
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise SystemExit(1)

    for value in (Breaking(a=1), Dying()):
        assert isinstance(await call(made(False, lambda value=value: value)), ToolOutput)


# ---- timeouts and cancellation ---------------------------------------------------------------------------------


class Slow:
    """A tool that waits until it is let go, sync or async, and what became of it."""

    def __init__(self, is_async: bool, **options: Any) -> None:
        self.started, self.cancelled, self.go = threading.Event(), threading.Event(), threading.Event()
        self.signal: Any = None

        def slow(context: ToolContext) -> str:
            self.signal = context.signal
            self.started.set()
            self.go.wait(30)
            return "late"

        async def slow_async(context: ToolContext) -> str:
            self.signal = context.signal
            self.started.set()
            try:
                await anyio.sleep(30)
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
            return "late"

        self.is_async = is_async
        self.tool: Tool[..., Any] = tool(name="slow", **options)(slow_async if is_async else slow)

    async def has_started(self) -> None:
        assert await anyio.to_thread.run_sync(self.started.wait, 20)

    def given_up(self, reason: str) -> None:
        """The tool was told; an async one was cancelled as well."""
        assert self.signal.reason == reason
        assert self.cancelled.is_set() is self.is_async
        self.go.set()


@each_kind
async def test_a_timeout(is_async: bool) -> None:
    slow = Slow(is_async, timeout=0.05)
    output = await call(slow.tool)
    assert (output.is_error, output.text) == (True, "Error [timeout] slow: no result within 0.05 s")
    slow.given_up("timeout")


@each_kind
async def test_a_tool_within_its_time(is_async: bool) -> None:
    assert (await call(made(is_async, lambda: "in time", timeout=20))).text == "in time"


@each_kind
async def test_stopped_before_it_starts_it_never_runs(is_async: bool) -> None:
    controller, ran = AbortController(), list[str]()
    controller.abort("stop")
    output = await call(made(is_async, lambda: ran.append("ran")), context=ToolContext("c1", controller.signal))
    assert (output.is_error, output.text) == (True, "Error [cancelled] it: stopped (stop)")
    assert ran == []


async def _abort_here(controller: AbortController) -> None:
    controller.abort("stop")


async def _abort_in_a_thread(controller: AbortController) -> None:
    thread = threading.Thread(target=controller.abort, args=("stop",))
    thread.start()


@each_kind
@pytest.mark.parametrize("abort", [_abort_here, _abort_in_a_thread])
async def test_stopped_while_it_runs(is_async: bool, abort: Callable[[AbortController], Awaitable[None]]) -> None:
    slow, controller, outputs = Slow(is_async), AbortController(), list[ToolOutput]()

    async def calling() -> None:
        outputs.append(await call(slow.tool, context=ToolContext("c1", controller.signal)))

    async with anyio.create_task_group() as group:
        group.start_soon(calling)
        await slow.has_started()
        await abort(controller)
    assert (outputs[0].is_error, outputs[0].text) == (True, "Error [cancelled] slow: stopped (stop)")
    slow.given_up("stop")


async def test_stopped_after_an_async_tool_ended_the_result_is_the_truth() -> None:
    controller = AbortController()

    def work() -> str:
        controller.abort("stop")
        return "it did run"

    output = await call(made(True, work), context=ToolContext("c1", controller.signal))
    assert (output.is_error, output.text) == (False, "it did run")


@pytest.mark.parametrize("stop_comes_first", [False, True])
async def test_stopped_while_a_sync_tool_ends_the_result_is_the_truth(stop_comes_first: bool) -> None:
    """Its thread has ended when the loop hears of both, in either order."""
    slow, controller, outputs = Slow(False), AbortController(), list[ToolOutput]()

    async def calling() -> None:
        outputs.append(await call(slow.tool, context=ToolContext("c1", controller.signal)))

    async with anyio.create_task_group() as group:
        group.start_soon(calling)
        await slow.has_started()
        if stop_comes_first:
            controller.abort("stop")
        slow.go.set()
        for thread in threading.enumerate():
            if thread.name == "talkfold tool slow":
                thread.join(20)  # the loop stands still meanwhile
        controller.abort("stop")
    assert (outputs[0].is_error, outputs[0].text) == (False, "late")


async def test_a_stopped_call_is_shown_as_cancelled() -> None:
    controller = AbortController()
    controller.abort("stop")
    part = tool_outcome("c1", await call(made(False, lambda: None), context=ToolContext("c1", controller.signal)))
    assert isinstance(part, ToolError)
    state = EMPTY_SESSION
    for action in (Send("u", "x"), Part(MessageStart("a")), Part(ToolCall("a", "c1", "it", {})), Part(part)):
        state = session_reducer(state, action)
    shown = state.messages[-1].parts[0]
    assert isinstance(shown, ToolPart)
    assert shown.state == "cancelled"


@each_kind
async def test_a_cancelled_caller_gets_the_output_and_then_its_cancellation(is_async: bool) -> None:
    slow, seen = Slow(is_async), list[str]()

    async def calling() -> None:
        seen.append((await call(slow.tool)).text)
        await checkpoint()
        seen.append("went on")

    async with anyio.create_task_group() as group:
        group.start_soon(calling)
        await slow.has_started()
        group.cancel_scope.cancel()
    assert seen == ["Error [cancelled] slow: it was cancelled"]
    slow.given_up("it was cancelled")


@each_kind
async def test_a_caller_that_was_cancelled_before_starts_nothing(is_async: bool) -> None:
    ran = list[str]()
    box = Toolbox(made(is_async, lambda: ran.append("ran")))
    with anyio.CancelScope() as scope:
        scope.cancel()
        output = await box.call(ToolCallRequest("c1", "it", {}))
        assert output.text == "Error [cancelled] it: it was cancelled"
        await checkpoint()
        ran.append("went on")
    assert scope.cancelled_caught
    assert ran == []


@each_kind
async def test_nothing_of_a_cancellation_is_left_behind_its_scope(is_async: bool) -> None:
    slow = Slow(is_async)
    with anyio.move_on_after(0.05):
        assert (await Toolbox(slow.tool).call(ToolCallRequest("c1", "slow", {}))).is_error
    await anyio.sleep(0.01)  # would raise
    slow.given_up("it was cancelled")


@each_kind
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_cancelled_by_asyncio_itself_loses_nothing(is_async: bool) -> None:
    slow, seen = Slow(is_async), list[Any]()

    async def calling() -> None:
        seen.append((await Toolbox(slow.tool).call(ToolCallRequest("c1", "slow", {}))).text)
        seen.append("still here")
        await asyncio.sleep(0)
        seen.append("went on")

    task = asyncio.create_task(calling())
    await slow.has_started()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["Error [cancelled] slow: it was cancelled", "still here"]
    assert task.cancelled()
    assert task.cancelling() == 1
    slow.given_up("it was cancelled")


@each_kind
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_timeout_of_asyncio_still_ends_as_a_timeout(is_async: bool) -> None:
    slow = Slow(is_async)

    async def within_time() -> None:
        async with asyncio.timeout(0.05):
            await Toolbox(slow.tool).call(ToolCallRequest("c1", "slow", {}))
            await asyncio.sleep(20)

    with pytest.raises(TimeoutError):
        await within_time()
    slow.given_up("it was cancelled")
    await asyncio.sleep(0)  # nothing of the cancellation is left


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_that_cancels_itself_cancels_nobody_else(is_async: bool) -> None:
    def work() -> None:
        raise asyncio.CancelledError

    output = await call(made(is_async, work))
    assert output.text == "Error [cancelled] it: the tool cancelled itself"

    async def own_task() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(20)

    assert (await call(tool(own_task))).text == "Error [cancelled] own_task: the tool cancelled itself"
    await asyncio.sleep(0)


async def test_what_is_raised_on_the_way_out_is_not_the_cause() -> None:
    @tool(timeout=0.05)
    async def stubborn() -> None:
        try:
            await anyio.sleep(20)
        finally:
            raise ValueError("while cleaning up")

    assert (await call(stubborn)).text == "Error [timeout] stubborn: no result within 0.05 s"


async def test_a_tool_that_ends_in_spite_of_its_timeout_did_run() -> None:
    @tool(timeout=0.05)
    async def paying() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.1)
        return "paid"

    assert (await call(paying)).text == "paid"


async def test_many_hanging_threads_keep_no_other_call_waiting() -> None:
    """More than any thread pool would hold."""
    slow = Slow(False, timeout=0.2)
    try:
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(call, slow.tool)
        assert (await call(made(False, lambda: "runs"))).text == "runs"
    finally:
        slow.go.set()


# ---- what a tool knows and leaves behind -------------------------------------------------------------------------


async def test_a_sync_tool_runs_beside_the_loop_an_async_one_in_it() -> None:
    here = str(threading.get_ident())
    assert (await call(made(True, lambda: str(threading.get_ident())))).text == here
    assert (await call(made(False, lambda: str(threading.get_ident())))).text != here


async def test_a_plain_function_around_an_async_one() -> None:
    async def inside() -> str:
        await checkpoint()
        return "awaited"

    assert (await call(made(False, inside))).text == "awaited"


VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


@each_kind
async def test_context_variables_go_in_and_do_not_come_out(is_async: bool) -> None:
    def work() -> str:
        before = VARIABLE.get()
        VARIABLE.set("tool")
        return before

    VARIABLE.set("caller")
    assert (await call(made(is_async, work))).text == "caller"
    assert VARIABLE.get() == "caller"


@each_kind
async def test_the_context_tells_the_call_and_takes_progress(is_async: bool) -> None:
    def report(context: ToolContext) -> str:
        context.report(1, total=4, message="one of four")
        context.report(0.5)
        return context.call_id

    async def report_async(context: ToolContext) -> str:
        return report(context)

    heard = list[ToolProgress]()
    context = ToolContext("c7", AbortController().signal, heard.append)
    output = await call(tool(report_async) if is_async else tool(report), context=context)
    assert output.text == "c7"
    assert heard == [ToolProgress("c7", 1, 4, "one of four"), ToolProgress("c7", 0.5)]


async def test_progress_harms_no_tool() -> None:
    def broken(progress: ToolProgress) -> None:
        raise RuntimeError("nobody listens")

    @tool
    def working(context: ToolContext) -> str:
        context.report(1)
        return "done"

    assert (await call(working, context=ToolContext("c1", AbortController().signal, broken))).text == "done"
    assert (await call(working)).text == "done"


async def test_a_call_that_was_given_up_reports_no_more() -> None:
    heard, go, done = list[ToolProgress](), threading.Event(), threading.Event()

    @tool(timeout=0.05)
    def late(context: ToolContext) -> None:
        go.wait(30)
        context.report(1)
        done.set()

    assert (await call(late, context=ToolContext("c1", AbortController().signal, heard.append))).is_error
    go.set()
    await anyio.to_thread.run_sync(done.wait, 20)
    assert heard == []


async def test_a_finished_call_leaves_no_listener_at_the_signal() -> None:
    controller = AbortController()
    for is_async in (False, True):
        await call(made(is_async, lambda: None), context=ToolContext("c1", controller.signal))
    assert controller.signal._listeners == {}
