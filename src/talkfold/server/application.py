"""The ASGI application: each request is named, guarded, routed, understood and answered, whatever happens."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType, TracebackType
from typing import Final, Self, TypeAlias, cast
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..errors import InvalidArgument, TalkfoldError
from ..store.arguments import check_name
from ..store.protocol import SessionStore
from .access import TRUSTED, Authenticate, Caller, allow
from .agents import Agent
from .bodies import read_body
from .endpoint import Call, Endpoint
from .guard import Guard
from .limits import Limits
from .problems import internal_problem, problem
from .refusals import MethodNotAllowed, NoSuchPath
from .resources import Resources
from .table import ENDPOINTS

__all__ = ("Application", "app")

_LOG: Final = logging.getLogger("talkfold.server")
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def app(
    store: SessionStore,
    *,
    agents: Mapping[str, Agent] = MappingProxyType({}),
    authenticate: Authenticate = lambda _: TRUSTED,
    hosts: Sequence[str] = ("localhost", "127.0.0.1", "[::1]"),
    origins: Sequence[str] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Application:
    """The sessions of an open store, over HTTP, as an ASGI application to be served or mounted.

    - ``agents``: what ``POST …/runs`` may start, by name.
    - ``authenticate``: from a request to who asks (``Caller``). Without one, everybody who reaches the application is
      the trusted side: serve it on loopback only.
    - ``hosts``: the host names that requests may be meant for, ``*`` for any. A page on another name that resolves to
      this machine (DNS rebinding) gets nothing.
    - ``origins``: the origins whose pages may ask (CORS); none by default, and pages of the server's own always.
    - ``limits``: what one caller may ask for.

    Use it as ``async with`` where it is mounted: then streams and runs end with the block.
    """
    return Application(Resources(store, authenticate=authenticate, limits=limits, agents=agents), Guard(hosts, origins))


class Application:
    """An ASGI application; made by ``app``."""

    def __init__(self, resources: Resources, guard: Guard, endpoints: Sequence[Endpoint] = ENDPOINTS) -> None:
        self._resources = resources
        self._guard = guard
        self._starlette = Starlette(
            routes=[
                Route(path, _dispatch(resources, methods), methods=list(methods))
                for path, methods in _by_path(endpoints).items()
            ],
            exception_handlers={HTTPException: _http_exception},
        )
        self._starlette.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._starlette(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket
            await send({"type": "websocket.close", "code": 1000})
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope = {**scope, "state": {**scope.get("state", {}), "request_id": request_id}, "path": _path(scope)}
        begun = False

        async def answer(message: dict[str, object]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = cast("list[tuple[bytes, bytes]]", message.setdefault("headers", []))
                headers += [(b"x-request-id", request_id.encode()), *self._guard.headers(scope)]
            await send(message)

        try:
            refused = self._guard.look_at(scope)
            await (self._starlette if refused is None else refused)(scope, receive, cast("Send", answer))
        except ClientDisconnect:
            pass
        except Exception:
            _LOG.exception("request %s failed", request_id)
            if not begun:
                await internal_problem(request_id)(scope, receive, cast("Send", answer))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._resources.close()


_SLASH = re.compile("%(2f|25)", re.IGNORECASE)


def _path(scope: Scope) -> str:
    """The path with each escaped slash still escaped, so that an id that holds one is a single segment."""
    raw = cast("bytes | None", scope.get("raw_path"))
    if not raw or b"%" not in raw:
        return cast("str", scope["path"])
    kept = _SLASH.sub(lambda found: f"%25{found[1]}", raw.partition(b"?")[0].decode("latin-1"))
    return unquote(kept, errors="replace")


_Methods: TypeAlias = Mapping[str, Endpoint]


def _by_path(endpoints: Sequence[Endpoint]) -> dict[str, _Methods]:
    table: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        table.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return dict(table)


def _dispatch(resources: Resources, methods: _Methods) -> Callable[[Request], Awaitable[Response]]:
    async def dispatch(request: Request) -> Response:
        request_id = cast("str", request.state.request_id)
        try:
            return await _handle(resources, methods["GET" if request.method == "HEAD" else request.method], request)
        except TalkfoldError as error:
            if error.http_status >= 500:
                _LOG.warning("request %s: %s", request_id, error)
            return problem(error, request_id)

    return dispatch


async def _handle(resources: Resources, endpoint: Endpoint, request: Request) -> Response:
    given = request.query_params.multi_items()
    if endpoint.scope is None:
        caller, owner = Caller(None), None
    else:
        caller = await resources.caller(request)
        resources.rates.take((caller.owner, caller.name))
        allow(caller, endpoint.scope)
        owner, given = _owner(caller, given)
    segments = {name: unquote(value) for name, value in request.path_params.items()}
    for name, value in segments.items():
        check_name(name, value)
    request.scope["path_params"] = segments
    query = endpoint.read_query(given)
    body = await read_body(request, endpoint, resources.limits)
    return await endpoint.handler(Call(resources, request, caller, owner, query, body))


def _owner(caller: Caller, given: list[tuple[str, str]]) -> tuple[str | None, list[tuple[str, str]]]:
    """Whose sessions are meant, and the other parameters. Only the trusted side may say whose."""
    owners = [value for name, value in given if name == "owner"]
    if not owners:
        return caller.owner, given
    if caller.owner is not None or len(owners) > 1:
        reason = "it is given twice" if len(owners) > 1 else "the token says whose sessions are meant"
        raise InvalidArgument("owner", reason)
    check_name("owner", owners[0])
    return owners[0], [(name, value) for name, value in given if name != "owner"]


async def _http_exception(request: Request, error: Exception) -> Response:
    """What the router itself refuses: a path that is nowhere, a method that a path does not have."""
    assert isinstance(error, HTTPException)
    request_id = cast("str", request.state.request_id)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "")
        return problem(MethodNotAllowed(request.method, allowed.split(", ")), request_id)
    return problem(NoSuchPath(request.url.path), request_id)
