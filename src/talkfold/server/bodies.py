"""Reading what a request carries: within its limits, in time, and as what the endpoint takes."""

from __future__ import annotations

from functools import cache
from typing import Any

import anyio
import msgspec
from msgspec import Struct
from starlette.requests import Request

from ..codec import MAX_DEPTH, decode_batch, decode_batch_lines
from ..codec.text import checked, decoded
from ..errors import InvalidArgument, TooLarge
from .endpoint import ACTIONS, LINES, Endpoint
from .limits import Limits
from .refusals import InvalidHeader, RequestTooSlow, UnsupportedMedia

__all__ = ("read_body",)

_JSON = ("application/json",)
_NDJSON = ("application/x-ndjson", "application/jsonl")
_TAKEN = {ACTIONS: (*_JSON, *_NDJSON), LINES: _NDJSON}


async def read_body(request: Request, endpoint: Endpoint, limits: Limits) -> Any:
    """The body as the endpoint takes it; ``None`` when it takes none, or none came and none is needed.

    Raises UnsupportedMedia, InvalidHeader, TooLarge, RequestTooSlow, InvalidArgument (too many actions), and what the
    codec raises.
    """
    if endpoint.body is None:
        return None
    most = limits.import_bytes if endpoint.body is LINES else limits.body_bytes
    if (declared := _declared(request)) is not None and declared > most:
        raise TooLarge("body", declared, most)
    if endpoint.optional_body and not declared and "transfer-encoding" not in request.headers:
        return None
    kind = _media(request, endpoint)
    data = await _received(request, most, limits.body_seconds)
    if endpoint.body is LINES:
        return data
    if endpoint.body is ACTIONS:
        entries = decode_batch_lines(data, max_bytes=most) if kind in _NDJSON else decode_batch(data, max_bytes=most)
        if len(entries) > limits.batch_actions:
            reason = f"{len(entries):,} actions are too many for one request; the limit is {limits.batch_actions:,}"
            raise InvalidArgument("actions", reason)
        return entries
    return decoded(_decoder(endpoint.body), checked(data, "body", most, MAX_DEPTH), "body", MAX_DEPTH)


@cache
def _decoder(kind: type[Struct]) -> msgspec.json.Decoder[Struct]:
    return msgspec.json.Decoder(kind)


def _declared(request: Request) -> int | None:
    given = request.headers.get("content-length")
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal()):
        raise InvalidHeader("Content-Length", "it is no number")
    return int(given)


def _media(request: Request, endpoint: Endpoint) -> str:
    """The body's media type. A page of another origin cannot send any of these without being asked first (CORS)."""
    taken = _JSON if isinstance(endpoint.body, type) else _TAKEN[endpoint.body or ACTIONS]
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise UnsupportedMedia(f"Content-Encoding: {coding}", taken)
    given = request.headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if kind not in taken:
        raise UnsupportedMedia(given or "no Content-Type", taken)
    return kind


async def _received(request: Request, most: int, seconds: float) -> bytes:
    chunks: list[bytes] = []
    size = 0
    with anyio.move_on_after(seconds) as scope:
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise TooLarge("body", size, most)
            chunks.append(chunk)
    if scope.cancelled_caught:
        raise RequestTooSlow(seconds)
    return b"".join(chunks)
