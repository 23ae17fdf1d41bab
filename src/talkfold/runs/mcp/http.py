"""A server behind a URL: the SDK's Streamable HTTP transport with a client that tells more of what went wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from ...errors import InvalidArgument
from .process import MAX_MESSAGE_BYTES
from .wire import Heard, Reading, Writing

__all__ = ("HttpTransport",)

_CONNECT_SECONDS = 30.0
_GOODBYE_SECONDS = 2.0  # a server that does not even answer to the end of its session is left to itself
_NOBODY_THERE = frozenset({502, 503, 504})
_SESSION = "mcp-session-id"


class HttpTransport:
    """Connects each time it is opened. ``headers`` go with every request; nothing of them is ever in a text."""

    bounded: bool = False

    def __init__(self, url: str, headers: Mapping[str, str] | None) -> None:
        try:
            parsed = httpx2.URL(url)
        except (httpx2.InvalidURL, ValueError):
            parsed = httpx2.URL("")
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InvalidArgument("url", "it is no URL of http or https")
        self._url, self._headers = url, dict(headers or {})
        self._status: int | None = None
        self._answered: dict[str, int] = {}
        self._forgotten: set[str] = set()

    @property
    def name(self) -> str:
        """Where it is, without names, passwords and queries."""
        url = httpx2.URL(self._url)
        return str(url.copy_with(userinfo=b"", query=None, fragment=None))

    def story(self) -> str:
        """The status that the last request got, when it was an error."""
        return "" if self._status is None else f"HTTP status {self._status}"

    def refused(self, request_id: str) -> bool:
        """Whether the server did not even look at this request, since it does not know the session any more."""
        return request_id in self._forgotten

    def remark(self, request_id: str) -> str:
        """The status that this request got, when it was an error; is said once."""
        status = self._answered.pop(request_id, None)
        return "" if status is None else f"HTTP status {status}"

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[tuple[Reading[Heard], Writing[SessionMessage]], None]:
        """Connect; on the way out, end the session. A server that is not there ends the block with httpx2's error."""
        self._status = None
        self._answered.clear()
        self._forgotten.clear()
        # An answer takes as long as its tool: how long that may be is the caller's to say.
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        hooks = {"response": [self._look]}
        async with httpx2.AsyncClient(headers=self._headers, timeout=timeout, event_hooks=hooks) as http:
            streams = streamable_http_client(self._url, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES)
            with anyio.CancelScope() as goodbye:
                async with streams as (read, write):
                    try:
                        yield read, write
                    finally:
                        goodbye.deadline = anyio.current_time() + _GOODBYE_SECONDS

    async def _look(self, response: httpx2.Response) -> None:
        if response.request.method != "POST":
            return
        status = response.status_code
        self._status = status if status >= 400 else None
        if status in _NOBODY_THERE:
            raise ConnectionError("a proxy is there, but no server behind it")
        if status >= 400:
            with suppress(ValueError, AttributeError, httpx2.StreamError):
                request_id = str(json.loads(response.request.content).get("id"))
                self._answered[request_id] = status
                if status == 404 and _SESSION in response.request.headers:
                    self._forgotten.add(request_id)
