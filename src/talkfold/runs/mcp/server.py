"""An MCP server as a source of tools: it keeps the list, makes the calls, and starts the server again when it died."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack, cast

import anyio
from anyio.abc import TaskGroup
from mcp import MCPError
from mcp.client.session import ElicitationFnT, ListRootsFnT, SamplingFnT
from mcp_types import CONNECTION_CLOSED

from ...codec import encode_json
from ...errors import InvalidArgument, TalkfoldError
from ...model import Json
from ..adapter import ToolCallRequest, ToolDescriptor
from ..guard import guarded
from ..output import ToolOutput, error_output
from ..signal import AbortSignal
from ..tool import ToolContext
from .confirm import ConfirmMcp, check_confirm, question
from .http import HttpTransport
from .link import Callbacks, Gone, Link, NotLookedAt, Transport, linked
from .listing import NAME, McpTool, tools_of
from .process import ProcessTransport
from .result import error_of, output_of_result

__all__ = ("McpOptions", "McpServer")

_log = logging.getLogger("talkfold.runs.mcp")

_MINUTE = 60.0
_LEAVE_SECONDS = 8.0  # more than ending a process that does not want to end takes


class McpOptions(TypedDict, total=False):
    """What every server may be given.

    ``name``: what texts call it. ``prefix``: put before the name of each of its tools. ``confirm``: which calls the
    person must agree to. ``timeout``: seconds for a call (none unless given). ``start_timeout``: seconds for the
    handshake and the list of tools (30). ``restarts``: how often within a minute a process is started again (3).
    ``sampling``, ``elicitation``, ``roots``: the SDK's callbacks for what the server may ask of its client.
    """

    name: str
    prefix: str
    confirm: ConfirmMcp | None
    timeout: float | None
    start_timeout: float
    restarts: int
    sampling: SamplingFnT | None
    elicitation: ElicitationFnT | None
    roots: ListRootsFnT | None


class _Attempt:
    """One try to connect: ``settled`` once there is a link, or a reason why there is none."""

    def __init__(self) -> None:
        self.settled = anyio.Event()
        self.link: Link | None = None
        self.why = ""

    def settle(self, why: str) -> None:
        """It is over, or never came to anything."""
        self.why = why
        self.settled.set()
        if self.link is not None:
            self.link.why = why
            self.link.lost.set()
            self.link.over.set()


class McpServer:
    """A server, from entering to leaving it; a ``ToolSource`` and ``Confirming``.

    Entering connects, shakes hands (protocol versions up to 2025-11-25) and reads the list of tools; it raises
    ConnectionError when that fails. From then on nothing is raised: a server that dies answers what runs with
    ``unavailable``, and the next call starts it again. Use it in the event loop in which it was entered.

    A result comes back with every field, block and key order that the server sent. What JSON lets a reader do is not
    undone: numbers are Python's (``1e2`` becomes ``100.0``), of two equal keys the last counts. The text of a result
    with ``isError`` gets ``Error [failed] `` in front, unless it begins with a code of ours. What stands around a
    result in its JSON-RPC message, and results with lone surrogates, cannot be kept.
    """

    def __init__(self, transport: Transport, **options: Unpack[McpOptions]) -> None:
        """For a transport of one's own; else see ``stdio`` and ``http``. Raises InvalidArgument for a bad option."""
        self._transport = transport
        self._name = options.get("name") or transport.name
        self._prefix = options.get("prefix", "")
        self._confirm: ConfirmMcp | None = options.get("confirm")
        self._timeout = options.get("timeout")
        self._start_timeout = options.get("start_timeout", 30.0)
        self._restarts = options.get("restarts", 3)
        self._callbacks = Callbacks(options.get("sampling"), options.get("elicitation"), options.get("roots"))
        if self._prefix and not NAME.fullmatch(self._prefix):
            raise InvalidArgument("prefix", f"{self._prefix!r} is not up to 64 letters, digits, _ and -")
        for what, seconds in (("timeout", self._timeout), ("start_timeout", self._start_timeout)):
            if seconds is not None and not (seconds > 0 and isfinite(seconds)):
                raise InvalidArgument(what, f"{seconds} is not above zero")
        check_confirm(self._confirm)
        self._tools: dict[str, McpTool] = {}
        self._group: TaskGroup | None = None
        self._started: deque[float] = deque()
        self._leaving = False
        self._attempt: _Attempt  # this and the next are of the event loop in which it is entered
        self._wanted: anyio.Event

    @classmethod
    def stdio(
        cls,
        command: str,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        **options: Unpack[McpOptions],
    ) -> Self:
        """A server that is started as a process. ``env`` comes on top of HOME, PATH and the like, which are all that
        is handed down; ``cwd`` is where it starts, this process's folder when ``None``."""
        return cls(ProcessTransport(command, args, env, cwd), **options)

    @classmethod
    def http(cls, url: str, *, headers: Mapping[str, str] | None = None, **options: Unpack[McpOptions]) -> Self:
        """A server that runs already, by the URL of its Streamable HTTP endpoint. ``headers`` go with each request.

        Raises InvalidArgument for what is no URL of http or https.
        """
        return cls(HttpTransport(url, headers), **options)

    def __repr__(self) -> str:
        return f"<McpServer {self._name!r}>"

    async def __aenter__(self) -> Self:
        if self._group is not None:
            raise InvalidArgument("server", f"{self._name} is entered already")
        self._attempt, self._wanted, self._leaving = _Attempt(), anyio.Event(), False
        self._started.clear()
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._own)
        try:
            await self._link()
        except Gone as gone:
            await self._leave()
            raise ConnectionError(f"{gone}. Check that it can be started and reached") from None
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    def descriptors(self) -> tuple[ToolDescriptor, ...]:
        """The tools that the server told of last."""
        return tuple(tool.descriptor for tool in self._tools.values())

    def confirmation(self, call: ToolCallRequest) -> str | None:
        """What to ask the person before this call. Nothing for one that would fail anyway."""
        tool = self._tools.get(call.name)
        if tool is None or tool.fault(_arguments(call)) is not None:
            return None
        return question(self._confirm, call, tool.annotations)

    async def call(self, call: ToolCallRequest, context: ToolContext) -> ToolOutput:
        """Make a call; never raises (see ``guarded``). On Stop, a timeout or a cancellation it comes back at once,
        and the server is sent ``notifications/cancelled``."""

        async def work(signal: AbortSignal) -> ToolOutput:
            return await self._call(call, ToolContext(context.call_id, signal, context.on_progress))

        return await guarded(call.name, work, signal=context.signal, timeout=self._timeout)

    async def _call(self, call: ToolCallRequest, context: ToolContext) -> ToolOutput:
        tool = self._tools.get(call.name)
        if tool is None:
            return error_output("not_found", f"MCP server {self._name} has no tool {call.name}")
        given = _arguments(call)
        try:
            encode_json(given, "the input")
        except TalkfoldError as error:
            return error_output("invalid_input", f"{call.name}: {error}")
        if (fault := tool.fault(given)) is not None:
            return error_output("invalid_input", f"{call.name}: {fault}")
        if not isinstance(given, dict):
            return error_output("invalid_input", f"{call.name}: expected an object")
        try:
            return await self._made(call.name, tool.name, cast("dict[str, Json]", given), context)
        except MCPError as error:
            return error_of(call.name, error.code, error.message)
        except Gone as error:
            return error_output("unavailable", f"{call.name}: {error}")
        except TalkfoldError as error:
            return error_output("failed", f"{call.name}: it ran, but its result cannot be kept: {error}")

    async def _made(self, name: str, theirs: str, given: dict[str, Json], context: ToolContext) -> ToolOutput:
        for _ in range(2):
            link = await self._link()
            try:
                return output_of_result(name, await link.call(theirs, given, context.report))
            except NotLookedAt:
                continue
            except Gone as gone:
                raise Gone(await link.reason(gone)) from None
        raise Gone(f"MCP server {self._name} forgets its sessions at once")

    # ---- the connection, owned by a task of its own ----------------------------------------------------------

    async def _link(self) -> Link:
        """The connection that works, made when there is none. Raises Gone."""
        while True:
            if self._group is None or self._leaving:
                raise Gone(f"MCP server {self._name} is not open")
            attempt = self._attempt
            if attempt.link is None or not attempt.link.lost.is_set():
                break
            await attempt.link.over.wait()
        self._wanted.set()
        await attempt.settled.wait()
        if attempt.link is None:
            raise Gone(attempt.why)
        return attempt.link

    async def _own(self) -> None:
        while not self._leaving:
            attempt, why = self._attempt, f"MCP server {self._name} was closed"
            try:
                why = self._too_often() or await self._serve(attempt)
            finally:
                self._attempt, self._wanted = _Attempt(), anyio.Event()
                attempt.settle(why)
            if not self._leaving:
                _log.warning("%s", why)
                await self._wanted.wait()

    def _too_often(self) -> str | None:
        """Why it is not started now: it was, more often than allowed."""
        now = anyio.current_time()
        while self._started and now - self._started[0] > _MINUTE:
            self._started.popleft()
        if self._transport.bounded and len(self._started) > self._restarts:
            wait = _MINUTE - (now - self._started[0])
            return f"MCP server {self._name} ended too often; it is started again in {wait:.0f} s at the earliest"
        self._started.append(now)
        return None

    async def _serve(self, attempt: _Attempt) -> str:
        """One connection, from its beginning to its end; returns why it ended."""
        cause = "it ended"
        try:
            async with linked(self._name, self._transport, self._callbacks, self._start_timeout) as (link, tools):
                self._tools = tools_of(tools, self._prefix)
                attempt.link = link
                attempt.settled.set()
                await self._follow(link)
        except Exception as error:
            cause = self._cause(error)
        if self._leaving:
            return f"MCP server {self._name} was closed"
        return f"MCP server {self._name} is gone: {'; '.join(filter(None, (cause, self._transport.story())))}"

    def _cause(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        if isinstance(error, TimeoutError):
            return f"it did not answer within {self._start_timeout:g} s"
        if isinstance(error, Gone) or (isinstance(error, MCPError) and error.code == CONNECTION_CLOSED):
            return "it ended"
        text = str(error)[:500]
        return f"{type(error).__name__}: {text}" if text else type(error).__name__

    async def _follow(self, link: Link) -> None:
        """Read the list of tools anew when the server says so, until the link is lost."""

        async def reading() -> None:
            while True:
                await link.changed.wait()
                link.changed = anyio.Event()
                try:
                    self._tools = tools_of(await link.tools(), self._prefix)
                except Gone:
                    pass  # then the list is read anyway, when there is a connection again
                except Exception as error:
                    _log.warning("the tools of %s cannot be listed: %s", self._name, self._cause(error))

        async with anyio.create_task_group() as group:
            group.start_soon(reading)
            await link.lost.wait()
            group.cancel_scope.cancel()

    async def _leave(self) -> None:
        group = self._group
        assert group is not None
        self._leaving = True
        self._wanted.set()
        link = self._attempt.link
        if link is None:
            group.cancel_scope.cancel()
        else:  # it says goodbye by itself, but not for ever
            link.lost.set()
            group.cancel_scope.deadline = anyio.current_time() + _LEAVE_SECONDS
        try:
            await group.__aexit__(None, None, None)
        finally:
            self._group = None


def _arguments(call: ToolCallRequest) -> Json:
    """Models write ``null`` for a tool without arguments."""
    return {} if call.input is None else call.input
