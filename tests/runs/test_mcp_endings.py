"""Calls of MCP servers that are given up, every way in which a server dies, and what is left of it: nothing.

On asyncio and trio; what takes seconds, on asyncio only.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from mcp_cases import alive, call, children, heard, names, raw, request, threads, wait_until

from talkfold import InvalidArgument
from talkfold.runs import (
    AbortController,
    Toolbox,
    ToolContext,
)
from talkfold.runs.mcp import McpServer


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before = children(), threads()
    yield
    assert wait_until(lambda: children() <= before[0]), "a child process is left"
    assert wait_until(lambda: threads() <= before[1]), "a thread is left"


@pytest.fixture
async def server(anyio_backend_name: str) -> AsyncIterator[McpServer]:
    async with raw() as opened:
        yield opened
    if anyio_backend_name == "asyncio":  # trio has no tasks without a parent
        await checkpoint()
        assert len(asyncio.all_tasks()) <= 2


# ---- giving up -------------------------------------------------------------------------------------------------


def cancelled_ids(log: Path) -> list[Any]:
    wait_until(lambda: heard(log, "notifications/cancelled"))
    return [each["params"]["requestId"] for each in heard(log, "notifications/cancelled")]


async def test_a_timeout_is_told_to_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with raw(f"log={log}", timeout=0.5) as server:
        output = await call(server, "deaf")
        assert output.text == "Error [timeout] deaf: no result within 0.5 s"
        assert not (await call(server, "echo")).is_error
    assert cancelled_ids(log) == [heard(log, "tools/call")[0]["id"]]


@pytest.mark.parametrize("boxed", [True, False])
async def test_stop_comes_back_at_once_and_is_told_to_the_server(tmp_path: Path, boxed: bool) -> None:
    log, stop = tmp_path / "log", AbortController()
    until_it_works = ToolContext("c1", stop.signal, lambda progress: stop.abort("stop"))
    async with raw(f"log={log}") as server:
        source, start = Toolbox(server) if boxed else server, monotonic()
        output = await source.call(request("busy"), until_it_works)
        assert output.text == "Error [cancelled] busy: stopped (stop)"
        assert monotonic() - start < 1
        assert not (await call(server, "echo")).is_error
    assert cancelled_ids(log) == [heard(log, "tools/call")[0]["id"]]


async def test_a_cancelled_caller_is_not_held_up_and_the_server_hears_of_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with raw(f"log={log}") as server:
        with anyio.CancelScope() as scope:
            until_it_works = ToolContext("c1", AbortController().signal, lambda progress: scope.cancel())
            await call(server, "busy", context=until_it_works)
            await checkpoint()
        assert scope.cancelled_caught
        assert not (await call(server, "echo")).is_error
    assert cancelled_ids(log) == [heard(log, "tools/call")[0]["id"]]


async def test_a_server_that_reads_nothing_holds_nobody_up() -> None:
    async with raw(timeout=0.5) as server:
        pid = int((await call(server, "pid")).text)
        start = monotonic()
        assert (await call(server, "asleep")).text.startswith("Error [timeout] asleep: ")
        assert (await call(server, "echo", {"long": "x" * 2**22})).text.startswith("Error [timeout] echo: ")
        with anyio.move_on_after(0.1):
            await call(server, "echo", {"long": "x" * 2**22})
            await checkpoint()
    assert monotonic() - start < 4
    assert not alive(pid)


# ---- servers that die ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("die", "exit code 3; its last words: the disk is full | giving up"),
        ("killed", "ended by SIGKILL"),
        ("orphan", "exit code 4"),
        ("close_stdout", "is gone"),
    ],
)
async def test_a_server_that_dies_in_a_call_is_started_again(server: McpServer, name: str, what: str) -> None:
    before = (await call(server, "pid")).text
    with anyio.fail_after(8):
        output = await call(server, name)
    assert output.text.startswith(f"Error [unavailable] {name}: MCP server python")
    assert "raw.py" in output.text
    assert what in output.text
    assert names(server)[0] == "echo"
    after = (await call(server, "pid")).text
    assert after.isdigit()
    assert after != before
    assert not alive(int(before))


async def test_all_calls_that_run_come_back_when_it_dies(server: McpServer) -> None:
    texts: list[str] = []

    async def calling() -> None:
        texts.append((await call(server, "deaf")).text)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(calling)
        await anyio.sleep(0.1)
        await call(server, "die")
    assert len(texts) == 5
    assert all(text.startswith("Error [unavailable] deaf: ") and "exit code 3" in text for text in texts)


async def test_a_server_that_dies_between_calls_is_started_by_the_next(server: McpServer) -> None:
    pid = int((await call(server, "pid")).text)
    os.kill(pid, signal.SIGKILL)
    await anyio.sleep(0.3)
    assert (await call(server, "pid")).text.isdigit()


async def test_it_is_not_started_again_and_again() -> None:
    async with raw(restarts=2) as server:
        for _ in range(3):
            assert "exit code 3" in (await call(server, "die")).text
        start = monotonic()
        output = await call(server, "echo")
        assert output.text.startswith("Error [unavailable] echo: MCP server python raw.py ended too often")
        assert monotonic() - start < 1


async def test_a_server_that_cannot_start_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with raw("crash_later", f"log={log}", name="weather") as server:
        await call(server, "die")
        output = await call(server, "echo")
        assert output.text.startswith("Error [unavailable] echo: MCP server weather is gone: it ended; exit code 1")
        assert "no licence any more" in output.text


@pytest.mark.parametrize(
    ("modes", "what"),
    [
        (["crash"], "exit code 1; its last words: no licence"),
        (["silent"], "it did not answer within 0.3 s"),
        (["noise"], "it did not answer within 0.3 s"),
        (["die_listing"], "exit code 5"),
        (["old"], "1999-01-01"),
    ],
)
async def test_entering_a_server_that_does_not_start(modes: list[str], what: str) -> None:
    start = monotonic()
    with pytest.raises(ConnectionError, match="MCP server weather is gone") as caught:
        async with raw(*modes, name="weather", start_timeout=0.3 if what.startswith("it did") else 10):
            pass
    assert what in str(caught.value)
    assert monotonic() - start < 3


async def test_a_command_that_is_not_there() -> None:
    with pytest.raises(ConnectionError, match="FileNotFoundError"):
        async with McpServer.stdio("/no/such/command"):
            pass


async def test_a_greeting_on_stdout_harms_nothing() -> None:
    async with raw("chatty") as server:
        assert not (await call(server, "echo")).is_error


# ---- the end ---------------------------------------------------------------------------------------------------


async def test_calls_that_run_when_it_is_left_come_back() -> None:
    texts: list[str] = []
    server = raw()

    async def calling() -> None:
        texts.append((await call(server, "deaf")).text)

    async with anyio.create_task_group() as group:
        async with server:
            group.start_soon(calling)
            await anyio.sleep(0.1)
    assert texts == ["Error [unavailable] deaf: MCP server python raw.py was closed"]
    assert (await call(server, "echo")).text == "Error [unavailable] echo: MCP server python raw.py is not open"
    async with server:
        assert not (await call(server, "echo")).is_error
        with pytest.raises(InvalidArgument):
            await server.__aenter__()


async def test_cancelling_the_scope_around_is_clean() -> None:
    pids: list[int] = []
    with anyio.move_on_after(10) as scope:
        async with raw() as server, anyio.create_task_group() as group:
            pids.append(int((await call(server, "pid")).text))
            group.start_soon(call, server, "deaf")
            await anyio.sleep(0.05)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert not alive(pids[0])


async def test_cancelling_the_start_is_clean() -> None:
    with anyio.move_on_after(0.2) as scope:
        async with raw("silent"):
            pass
    assert scope.cancelled_caught


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(LookupError, match="mine"):
        async with raw():
            raise LookupError("mine")


# ---- on asyncio only: what takes seconds, or is about asyncio itself ---------------------------------------------


class TestOnAsyncio:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_a_message_without_an_end_is_not_read_for_ever(self) -> None:
        async with raw() as server:
            assert "a message of more than 67108864 bytes" in (await call(server, "endless")).text
            assert not (await call(server, "echo")).is_error

    @pytest.mark.parametrize(("mode", "seconds"), [("", 2.0), ("lingers", 3.0), ("stubborn", 5.0)])
    async def test_leaving_ends_the_process(self, mode: str, seconds: float) -> None:
        async with raw(mode) as server:
            pid = int((await call(server, "pid")).text)
            start = monotonic()
        assert monotonic() - start < seconds
        assert not alive(pid)

    async def test_cancelling_the_task_around_is_clean(self) -> None:
        pids: list[int] = []

        async def using() -> None:
            async with raw() as server:
                pids.append(int((await call(server, "pid")).text))
                await asyncio.sleep(60)

        task = asyncio.create_task(using())
        while not pids:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(pids[0])
