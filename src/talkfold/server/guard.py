"""Whom the server talks to: the hosts that it answers for, and the pages that may ask.

Both are looked at before anything else. A page on any name that resolves to this machine reaches a server on loopback
(DNS rebinding); its requests name that host. And a page of another origin may send simple requests anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from ..errors import InvalidArgument, TalkfoldError
from .problems import problem
from .refusals import HostNotAllowed, OriginNotAllowed

__all__ = ("Guard",)

_SAFE: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
_REQUEST_HEADERS: Final = "authorization, content-type, if-match, if-none-match, idempotency-key, last-event-id"
_EXPOSED: Final = "etag, location, retry-after, x-request-id"


class Guard:
    """The allow-lists. Raises InvalidArgument for a host or an origin that is none."""

    def __init__(self, hosts: Sequence[str], origins: Sequence[str]) -> None:
        for host in hosts:
            if not host or "/" in host or host != host.strip():
                raise InvalidArgument("hosts", f"{host!r} is no host name")
        for origin in origins:
            if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
                raise InvalidArgument("origins", f"{origin!r} is no origin such as https://chat.example")
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    def look_at(self, scope: Scope) -> Response | None:
        """The refusal of a request, or the answer to a page's question whether it may ask; else nothing."""
        headers = Headers(scope=scope)
        request_id = cast("str", scope["state"]["request_id"])
        error = self._refusal(headers)
        if error is not None:
            return problem(error, request_id)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers and "origin" in headers:
            allowed = {
                "Access-Control-Allow-Methods": _METHODS,
                "Access-Control-Allow-Headers": _REQUEST_HEADERS,
                "Access-Control-Max-Age": "600",
            }
            return Response(None, 204, allowed)
        return None

    def _refusal(self, headers: Headers) -> TalkfoldError | None:
        given = headers.getlist("host")
        host = given[0].strip().lower() if len(given) == 1 else ""
        if not self._is_served(host):
            return HostNotAllowed(", ".join(given))
        origin = headers.get("origin")
        if origin is not None and not self._may_ask(origin.lower(), host):
            return OriginNotAllowed(origin)
        return None

    def _is_served(self, host: str) -> bool:
        return "*" in self._hosts or host in self._hosts or _without_port(host) in self._hosts

    def _may_ask(self, origin: str, host: str) -> bool:
        return origin in self._origins or origin in (f"http://{host}", f"https://{host}")

    def headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """What every answer says besides: to browsers, that it is not to be guessed at or embedded."""
        origin = Headers(scope=scope).get("origin")
        if origin is None or origin.lower() not in self._origins:
            return list(_SAFE)
        return [
            *_SAFE[:-1],
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _EXPOSED.encode()),
            (b"vary", b"Origin"),
        ]


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and port.isascii() else host
