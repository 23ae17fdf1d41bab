"""The server itself: whether it lives, whether it can work, what it is, and what it serves."""

from __future__ import annotations

import sqlite3
from functools import cache

from msgspec import Struct
from starlette.responses import Response

from .._version import __version__
from ..codec import encode_document
from .answers import NEVER, json_reply
from .endpoint import Call, Nothing

__all__ = ("HealthDocument", "VersionDocument", "get_health", "get_openapi", "get_readiness", "get_version")


class HealthDocument(Struct, frozen=True, rename="camel"):
    """It is well."""

    status: str


class VersionDocument(Struct, frozen=True, rename="camel"):
    """Which talkfold serves, on which SQLite."""

    talkfold: str
    sqlite: str


async def get_health(call: Call[Nothing, None]) -> Response:
    """The process lives and answers."""
    return json_reply(HealthDocument("ok"))


async def get_readiness(call: Call[Nothing, None]) -> Response:
    """The database can be read, and the server is not closing: send it requests."""
    if call.resources.feeds.closing:
        return Response(encode_document(HealthDocument("closing")), 503, {"Cache-Control": NEVER}, "application/json")
    await call.resources.store.list(limit=1)
    return json_reply(HealthDocument("ready"))


async def get_version(call: Call[Nothing, None]) -> Response:
    """Which version serves."""
    return json_reply(VersionDocument(__version__, sqlite3.sqlite_version))


async def get_openapi(call: Call[Nothing, None]) -> Response:
    """This API as an OpenAPI 3.1 document."""
    return json_reply(_document())


@cache
def _document() -> bytes:
    from .openapi import openapi
    from .table import ENDPOINTS

    return encode_document(openapi(ENDPOINTS))
