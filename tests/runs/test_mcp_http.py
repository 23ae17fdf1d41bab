"""MCP servers behind a URL: real ones that the SDK makes, and listeners that answer as no server should.

On asyncio only: on trio, the SDK's HTTP client leaves its generators to the garbage collector, with a warning.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic, sleep

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.lowlevel import checkpoint
from mcp_cases import SERVERS, call, children, names, threads, wait_until, watched

from talkfold.runs import ToolProgress
from talkfold.runs.mcp import McpServer


class Web:
    """A server in a process of its own, at an address that stays when it is started again."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *args: str) -> None:
        self.end()
        command = [sys.executable, str(SERVERS / "sdk.py"), str(self.port), *args]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert wait_until(self._answers, 15)

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 0.2).close()
        except OSError:
            sleep(0.02)
            return False
        return True


@pytest.fixture(scope="module")
def lasting() -> Iterator[Web]:
    """One for the tests that do not end it."""
    web = Web()
    web.start()
    yield web
    web.end()


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    web.start()
    yield web
    web.end()


@pytest.fixture(autouse=True)
async def nothing_is_left_behind(lasting: Web) -> AsyncIterator[None]:
    before = children(), threads(), len(asyncio.all_tasks())
    yield
    await checkpoint()
    assert len(asyncio.all_tasks()) <= before[2], "a task is left"
    assert wait_until(lambda: threads() <= before[1]), "a thread is left"


SUM = {"a": 1, "b": 2}


@asynccontextmanager
async def listening(answer: Callable[[bytes], bytes | None]) -> AsyncIterator[str]:
    """An address where each request gets this answer; ``None``: none, ever."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            while (said := answer(await stream.receive())) is not None:
                await stream.send(said)
            await anyio.sleep_forever()

    async def guarded(stream: SocketStream) -> None:
        try:
            await serve(stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, guarded)
        port = listener.extra(SocketAttribute.local_port)
        yield f"http://name:password@127.0.0.1:{port}/mcp?key=secret"
        group.cancel_scope.cancel()


class TestOnAsyncio:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_tools_results_and_headers(self, lasting: Web) -> None:
        async with McpServer.http(lasting.url, headers={"x-key": "k1"}, prefix="shop_") as server:
            assert names(server)[:2] == ["shop_add", "shop_fail"]
            assert (await call(server, "shop_add", SUM)).structured_content == {"result": 3}
            assert (await call(server, "shop_fail")).text.startswith("Error [failed] ")
            assert (await call(server, "shop_header")).text == "k1"
            assert (await call(server, "shop_add", {"a": "x"})).text.startswith("Error [invalid_input] ")
            assert len((await call(server, "shop_long", {"n": 6 * 2**20})).text) == 6 * 2**20

    async def test_the_list_is_read_anew_when_it_changes(self, web: Web) -> None:
        async with McpServer.http(web.url) as server:
            assert (await call(server, "grow")).text == "grown"
            with anyio.fail_after(5):
                while "grown" not in names(server):  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            assert (await call(server, "grown")).text == "new"

    async def test_progress_comes_in_order(self, lasting: Web) -> None:
        seen: list[ToolProgress] = []
        async with McpServer.http(lasting.url) as server:
            assert (await call(server, "count", {"to": 20}, watched(seen))).text == "counted"
        assert [each.progress for each in seen] == list(range(1, 21))

    async def test_a_call_that_is_given_up_ends_on_the_server(self, lasting: Web, tmp_path: Path) -> None:
        path = tmp_path / "file"
        async with McpServer.http(lasting.url, timeout=0.8) as server:
            start = monotonic()
            assert (await call(server, "wait", {"path": str(path)})).text.startswith("Error [timeout] wait: ")
            assert monotonic() - start < 2
            assert (await call(server, "add", SUM)).text == "3"
            assert wait_until(path.exists)

    async def test_a_server_that_answers_without_a_stream(self) -> None:
        web = Web()
        web.start("json")
        try:
            async with McpServer.http(web.url) as server:
                assert (await call(server, "add", SUM)).text == "3"
                assert (await call(server, "die")).text.startswith(
                    f"Error [unavailable] die: MCP server {web.url} is gone"
                )
        finally:
            web.end()

    async def test_a_server_that_dies_is_connected_to_again(self, web: Web) -> None:
        async with McpServer.http(web.url, name="shop") as server:
            output = await call(server, "die")
            assert output.text.startswith("Error [unavailable] die: MCP server shop")
            for _ in range(2):
                start = monotonic()
                output = await call(server, "add", SUM)
                assert output.text.startswith("Error [unavailable] add: MCP server shop is gone: ConnectError")
                assert monotonic() - start < 1
            assert names(server)[0] == "add"
            web.start()
            assert (await call(server, "add", SUM)).text == "3"

    async def test_a_server_that_was_started_anew_gets_a_new_session(self, web: Web) -> None:
        async with McpServer.http(web.url) as server:
            assert (await call(server, "add", SUM)).text == "3"
            web.end()
            web.start()
            assert (await call(server, "add", SUM)).text == "3"

    async def test_calls_that_run_when_the_server_is_killed(self, web: Web, tmp_path: Path) -> None:
        texts: list[str] = []

        async def calling() -> None:
            texts.append((await call(server, "wait", {"path": str(tmp_path / "file")})).text)

        async with McpServer.http(web.url) as server, anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(calling)
            await anyio.sleep(0.3)
            web.end()
        assert len(texts) == 3
        assert all(text.startswith(f"Error [unavailable] wait: MCP server {web.url}") for text in texts)

    async def test_leaving_and_cancelling_are_clean(self, lasting: Web, tmp_path: Path) -> None:
        with anyio.move_on_after(5) as scope:
            async with McpServer.http(lasting.url) as server, anyio.create_task_group() as group:
                group.start_soon(call, server, "wait", {"path": str(tmp_path / "file")})
                await anyio.sleep(0.2)
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        async with McpServer.http(lasting.url) as server:
            pass
        assert (await call(server, "add", SUM)).text.endswith("is not open")

    @pytest.mark.parametrize(
        ("status", "what"),
        [
            ("401 Unauthorized", "HTTP status 401"),
            ("503 Service Unavailable", "HTTP status 503"),
            ("500 Internal Server Error", "HTTP status 500"),
            (None, "it did not answer within 0.4 s"),
        ],
    )
    async def test_entering_a_server_that_answers_badly(self, status: str | None, what: str) -> None:
        answer = None if status is None else f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode()
        async with listening(lambda request: answer) as url:
            with pytest.raises(ConnectionError) as caught:
                async with McpServer.http(url, headers={"x-key": "hidden"}, start_timeout=10 if status else 0.4):
                    pass
        assert what in str(caught.value)
        assert not {"password", "secret", "hidden"} & set(str(caught.value).replace("=", " ").replace(":", " ").split())

    async def test_entering_a_server_that_is_not_there(self) -> None:
        with pytest.raises(ConnectionError, match="ConnectError"):
            async with McpServer.http(Web().url):
                pass
