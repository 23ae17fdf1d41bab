"""The project's own sources of tools pass the contract of tools; careless ones do not."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import pytest
from mcp_cases import SERVERS

from talkfold.model import Json
from talkfold.runs import (
    ClientTools,
    Toolbox,
    ToolCallRequest,
    ToolContext,
    ToolDescriptor,
    ToolOutput,
    ToolSource,
    error_output,
    output_of,
    tool,
)
from talkfold.runs.mcp import McpServer
from talkfold.testing.tool_contract import ToolContract


class OnBoth(ToolContract):
    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


@tool(confirm=lambda given: f"Add {given['a']} and {given['b']}?")
def add(a: int, b: int, context: ToolContext) -> int:
    """Add two numbers."""
    context.report(1, total=1)
    return a + b


@tool
def broken() -> None:
    """Fail."""
    raise RuntimeError("it broke")


@tool
async def sleep() -> None:
    """Sleep."""
    await anyio.sleep(30)


class TestToolbox(OnBoth):
    @asynccontextmanager
    async def open(self) -> AsyncGenerator[ToolSource]:
        yield Toolbox(add, broken, sleep)

    def working(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "add", {"a": 1, "b": 2})

    def misfit(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "add", {"a": "one", "b": 2})

    def failing(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "broken", {})

    def slow(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "sleep", {})


class TestClientTools(OnBoth):
    """Outside a run nobody parks a call, so each of them fails."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[ToolSource]:
        yield ClientTools([add.descriptor])

    def failing(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "add", {"a": 1, "b": 2})


class TestMcpServer(ToolContract):
    def open(self) -> AbstractAsyncContextManager[ToolSource]:
        return McpServer.stdio(sys.executable, str(SERVERS / "raw.py"))

    def working(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "echo", {"n": 1})

    def misfit(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "echo", {"n": "one"})

    def failing(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "failed", {})

    def slow(self) -> ToolCallRequest:
        return ToolCallRequest("c1", "deaf", {})


# ---- the contract finds what is wrong ------------------------------------------------------------------------------


class Careless:
    """A source that does one thing wrong."""

    def __init__(
        self,
        *,
        name: str = "add",
        schema: dict[str, Json] | None = None,
        answer: Callable[[], Awaitable[ToolOutput]] | None = None,
    ) -> None:
        self._tools = [ToolDescriptor(name, "Add.", {"type": "object"} if schema is None else schema)]
        self._answer = answer

    def descriptors(self) -> Sequence[ToolDescriptor]:
        return self._tools

    async def call(self, call: ToolCallRequest, context: ToolContext) -> ToolOutput:
        return output_of(3) if self._answer is None else await self._answer()


async def holds_on() -> ToolOutput:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(1)
    return output_of(3)


async def fails() -> ToolOutput:
    return error_output("failed", "add: no")


@pytest.mark.parametrize(
    ("source", "test"),
    [
        (Careless(name="add two"), ToolContract.test_its_tools_have_names_that_every_provider_takes),
        (Careless(name="delegate_to_x"), ToolContract.test_its_tools_have_names_that_every_provider_takes),
        (Careless(schema={}), ToolContract.test_its_inputs_are_objects),
        (Careless(answer=fails), ToolContract.test_a_call_gives_an_output),
        (Careless(), ToolContract.test_an_input_that_does_not_fit),
        (Careless(), ToolContract.test_an_input_that_is_no_object),
        (Careless(answer=holds_on), ToolContract.test_a_cancelled_call_ends),
        (Careless(answer=holds_on), ToolContract.test_stop_ends_a_call),
    ],
)
async def test_a_careless_source_fails(source: Careless, test: Callable[[ToolContract], Awaitable[None]]) -> None:
    class Contract(ToolContract):
        soon = 0.3

        @asynccontextmanager
        async def open(self) -> AsyncGenerator[ToolSource]:
            yield source

        def working(self) -> ToolCallRequest:
            return ToolCallRequest("c1", "add", {})

        misfit = slow = working

    with pytest.raises((AssertionError, TimeoutError)):
        await test(Contract())
