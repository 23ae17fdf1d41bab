"""One connection to a server, from its handshake to its end.

The SDK's task groups must be entered and left in one task, so ``Link.serve`` runs in a task of its owner's. Every
request runs in a task of the connection: whoever waits for one may be cancelled at any moment and is not held up by
the courtesy of telling the server.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, cast

import anyio
from anyio.abc import TaskGroup
from mcp import ClientSession, MCPError
from mcp.client.session import ElicitationFnT, ListRootsFnT, SamplingFnT
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    ListToolsRequest,
    ListToolsResult,
    LoggingMessageNotificationParams,
    PaginatedRequestParams,
    RequestParamsMeta,
    ToolListChangedNotification,
)
from msgspec import Struct

from ..._version import __version__
from ...model import Json
from .wire import Asked, Heard, Progress, Reading, Wire, Writing

__all__ = ("Callbacks", "Gone", "Link", "NotLookedAt", "Transport", "linked")

_log = logging.getLogger("talkfold.runs.mcp")

_LEVELS = {"debug": 10, "info": 20, "notice": 20, "warning": 30, "error": 40}  # what is worse is critical
_MAX_PAGES = 1_000
_MAX_LOG = 2_000


class Transport(Protocol):
    """How a server is reached. It may be opened again when it has been left; the texts are about the last time."""

    @property
    def bounded(self) -> bool:
        """Whether opening it costs something: then it is not opened again and again."""
        ...

    @property
    def name(self) -> str:
        """What texts call the server, when it gets no name."""
        ...

    def open(self) -> AbstractAsyncContextManager[tuple[Reading[Heard], Writing[SessionMessage]]]:
        """Reach it; leaving ends it and leaves nothing behind."""
        ...

    def story(self) -> str:
        """How it ended by itself, as far as that is known; else empty."""
        ...

    def refused(self, request_id: str) -> bool:
        """Whether the server did surely not even look at this request."""
        ...

    def remark(self, request_id: str) -> str:
        """What there is to say of the error that this request got besides; else empty."""
        ...


class Callbacks(Struct, frozen=True):
    """What answers the server's own requests; without one the server is told that it is not supported."""

    sampling: SamplingFnT | None = None
    elicitation: ElicitationFnT | None = None
    roots: ListRootsFnT | None = None


class Gone(Exception):
    """The connection ended before an answer came; the text says why, where that is known already."""


class NotLookedAt(Gone):
    """As Gone, and the server surely did nothing: the request may be made again."""


class Link:
    """A connection that works. ``lost`` is set when it ends or should; ``over`` when ``why`` is known."""

    def __init__(self, name: str, session: ClientSession, wire: Wire, transport: Transport, group: TaskGroup) -> None:
        self._name, self._session, self._wire, self._transport, self._group = name, session, wire, transport, group
        self.lost: anyio.Event = anyio.Event()
        self.over: anyio.Event = anyio.Event()
        self.why: str = ""
        self.changed: anyio.Event = anyio.Event()

    async def call(self, name: str, arguments: dict[str, Json], progress: Progress) -> dict[str, Json]:
        """The result of a tool, as it came. Raises MCPError for an error that the server answers; Gone."""
        asked = self._wire.ask("tools/call", progress)
        params = CallToolRequestParams(name=name, arguments=arguments, _meta=_token(asked))

        async def send() -> None:
            await self._session.send_request(CallToolRequest(params=params), CallToolResult)

        return await self._answer(asked, send)

    async def tools(self) -> list[object]:
        """The server's tools, all pages. Raises as ``call``."""
        found: list[object] = []
        cursors: set[str | None] = set()
        cursor: str | None = None
        while cursor not in cursors and len(cursors) < _MAX_PAGES:
            cursors.add(cursor)
            page = await self._page(cursor)
            tools, following = page.get("tools"), page.get("nextCursor")
            found += cast("list[object]", tools) if isinstance(tools, list) else []
            if not isinstance(following, str):
                return found
            cursor = following
        _log.warning("the list of tools of %s has no end: read %d pages of it", self._name, len(cursors))
        return found

    async def _page(self, cursor: str | None) -> dict[str, Json]:
        asked = self._wire.ask("tools/list", None)
        params = PaginatedRequestParams(cursor=cursor, _meta=_token(asked))

        async def send() -> None:
            await self._session.send_request(ListToolsRequest(params=params), ListToolsResult)

        return await self._answer(asked, send)

    async def _answer(self, asked: Asked, send: Callable[[], Any]) -> dict[str, Json]:
        done = anyio.Event()
        failed: list[Exception] = []
        scope = anyio.CancelScope()

        async def ask() -> None:
            try:
                with scope:
                    await send()
            except Exception as error:
                failed.append(error)
            finally:
                done.set()
                self._wire.forget(asked)

        if self.lost.is_set():
            self._wire.forget(asked)
            raise Gone
        self._group.start_soon(ask)
        try:
            await done.wait()
        finally:
            scope.cancel()
        if asked.result is not None:
            return asked.result
        request_id = asked.request_id or ""
        if self._transport.refused(request_id):
            self.lost.set()
            raise NotLookedAt("the server does not know this session any more")
        if not failed:
            self.lost.set()  # only the end of the connection ends a request without a word
            raise Gone
        if not asked.answered and isinstance(failed[0], MCPError) and failed[0].code == CONNECTION_CLOSED:
            raise Gone(failed[0].message)
        if isinstance(error := failed[0], MCPError) and (remark := self._transport.remark(request_id)):
            raise MCPError(error.code, f"{error.message} ({remark})", error.data)
        raise error

    async def reason(self, gone: Gone) -> str:
        """Why an answer never came. A lone one that broke off ends no connection, so it is not waited for long."""
        with anyio.move_on_after(None if self.lost.is_set() else 0.5):
            await self.over.wait()
        return self.why or f"MCP server {self._name}: its answer broke off ({gone})"


def _token(asked: Asked) -> RequestParamsMeta:
    return {"progress_token": asked.token}


@asynccontextmanager
async def linked(
    name: str, transport: Transport, callbacks: Callbacks, start_timeout: float
) -> AsyncGenerator[tuple[Link, list[object]], None]:
    """Connect, shake hands and list the tools. Raises what goes wrong (TimeoutError: no answer within
    ``start_timeout`` seconds), in exception groups."""
    async with transport.open() as (read, write):
        wire = Wire(read, write)
        changed: list[Callable[[], object]] = []

        async def heard(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                for each in changed:
                    each()

        async def logged(params: LoggingMessageNotificationParams) -> None:
            who = f"{name} {params.logger}" if params.logger else name
            _log.log(_LEVELS.get(params.level, 50), "%s: %s", who, str(params.data)[:_MAX_LOG])

        async with (
            ClientSession(
                wire.read,
                wire.write,
                sampling_callback=callbacks.sampling,
                elicitation_callback=callbacks.elicitation,
                list_roots_callback=callbacks.roots,
                logging_callback=logged,
                message_handler=heard,
                client_info=Implementation(name="talkfold", version=__version__),
            ) as session,
            anyio.create_task_group() as group,
        ):
            with anyio.fail_after(start_timeout):
                await session.initialize()
                link = Link(name, session, wire, transport, group)
                changed.append(lambda: link.changed.set())
                tools = await link.tools()

            async def ends() -> None:
                await wire.ended.wait()
                link.lost.set()

            group.start_soon(ends)
            try:
                yield link, tools
            finally:
                link.lost.set()
                group.cancel_scope.cancel()
