"""What goes over the wire, seen between the SDK's session and its transport.

The session reads results into models that refuse what they do not know (a new kind of content block fails the whole
result) and drop unknown fields of known blocks. So the results of our requests are taken here, as the JSON objects
that came, and the session gets an empty one in their place. Progress is told from here too: in the order in which it
came, and before the result, which the session, with a task for each notification, cannot promise.

Our requests are known by the progress token that they carry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeGuard, TypeVar, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from msgspec import Struct

from ...model import Json

__all__ = ("Asked", "Heard", "Incoming", "Outgoing", "Progress", "Reading", "Wire", "Writing")

_T = TypeVar("_T", covariant=True)
_T_in = TypeVar("_T_in", contravariant=True)

Heard: TypeAlias = SessionMessage | Exception
Progress: TypeAlias = Callable[[float, float | None, str | None], object]

_EMPTY: Mapping[str, dict[str, Any]] = {"tools/call": {"content": []}, "tools/list": {"tools": []}}
"""What the session sees in the place of a result that is taken here: the least that it accepts."""

_BROKEN_OFF = "SSE stream "
"""How the SDK's answer in the place of one that broke off begins."""


class Reading(Protocol[_T]):
    """The end of a transport that is read from."""

    async def receive(self) -> _T:
        """The next item. Raises EndOfStream."""
        ...

    async def aclose(self) -> None:
        """Read no more."""
        ...


class Writing(Protocol[_T_in]):
    """The end of a transport that is written to."""

    async def send(self, item: _T_in, /) -> None:
        """Hand an item over to be sent."""
        ...

    async def aclose(self) -> None:
        """Send no more."""
        ...


class Asked(Struct, eq=False):
    """One request of ours: what comes back for it. ``answered``: an error came, and not from a lost connection."""

    token: str
    method: str
    progress: Progress | None = None
    request_id: str | None = None
    result: dict[str, Json] | None = None
    answered: bool = False


class Wire:
    """Both directions of one connection. ``ended`` is set when nothing more can come."""

    def __init__(self, read: Reading[Heard], write: Writing[SessionMessage]) -> None:
        self.ended: anyio.Event = anyio.Event()
        self.read: Incoming = Incoming(read, self)
        self.write: Outgoing = Outgoing(write, self)
        self._asked: dict[str, Asked] = {}
        self._sent: dict[str, Asked] = {}
        self._last = 0

    def ask(self, method: str, progress: Progress | None) -> Asked:
        """A new request, to be sent with its token in ``_meta.progressToken``. Must be given to ``forget``."""
        self._last += 1
        asked = Asked(f"talkfold-{self._last}", method, progress)
        self._asked[asked.token] = asked
        return asked

    def forget(self, asked: Asked) -> None:
        """Nobody waits for this request any more: what still comes for it is dropped."""
        del self._asked[asked.token]
        if asked.request_id is not None:
            self._sent.pop(asked.request_id, None)

    def sends(self, item: SessionMessage) -> None:
        """Look at what goes out."""
        message = item.message
        if isinstance(message, JSONRPCRequest) and (asked := self._by_token(_meta(message.params))) is not None:
            asked.request_id = str(message.id)
            self._sent[asked.request_id] = asked

    def hears(self, item: Heard) -> Heard | None:
        """What the session gets for what came; ``None``: it was for us alone."""
        if not isinstance(item, SessionMessage):
            return item
        message = item.message
        if isinstance(message, JSONRPCResponse) and (asked := self._sent.pop(str(message.id), None)) is not None:
            asked.result = message.result
            empty = JSONRPCResponse(jsonrpc="2.0", id=message.id, result=dict(_EMPTY[asked.method]))
            return replace(item, message=empty)
        if isinstance(message, JSONRPCError) and (asked := self._sent.pop(str(message.id), None)) is not None:
            asked.answered = not message.error.message.startswith(_BROKEN_OFF)
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/progress":
            params = message.params or {}
            if (asked := self._by_token(params)) is not None:
                _report(asked, params)
                return None
        return item

    def _by_token(self, holder: Mapping[str, Any]) -> Asked | None:
        token = holder.get("progressToken")
        return self._asked.get(token) if isinstance(token, str) else None


class Incoming:
    """The reading end that the session gets."""

    def __init__(self, inner: Reading[Heard], wire: Wire) -> None:
        self._inner, self._wire = inner, wire

    async def receive(self) -> Heard:
        """The next item that is the session's. Raises EndOfStream."""
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                self._wire.ended.set()
                raise
            if (heard := self._wire.hears(item)) is not None:
                return heard

    async def aclose(self) -> None:
        """Close the end of the transport."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Heard:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class Outgoing:
    """The writing end that the session gets."""

    def __init__(self, inner: Writing[SessionMessage], wire: Wire) -> None:
        self._inner, self._wire = inner, wire

    async def send(self, item: SessionMessage, /) -> None:
        """Hand a message over to be sent."""
        self._wire.sends(item)
        await self._inner.send(item)

    async def aclose(self) -> None:
        """Close the end of the transport."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def _meta(params: Mapping[str, Any] | None) -> Mapping[str, Any]:
    meta = (params or {}).get("_meta")
    return cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}


def _report(asked: Asked, params: Mapping[str, Any]) -> None:
    progress, total, message = (params.get(key) for key in ("progress", "total", "message"))
    if asked.progress is not None and _is_number(progress):
        asked.progress(progress, total if _is_number(total) else None, message if isinstance(message, str) else None)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
