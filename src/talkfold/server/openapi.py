"""The OpenAPI 3.1 document, made from the table of endpoints and the types in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from .._version import __version__
from ..actions import SessionAction
from ..errors import (
    AmbiguousSession,
    InvalidAction,
    InvalidArgument,
    InvalidJson,
    SessionErased,
    SessionNotFound,
    StoreBusy,
    TalkfoldError,
    TooDeep,
    TooLarge,
)
from ..model import Json
from .endpoint import ACTIONS, LINES, Endpoint
from .problems import PROBLEM_JSON, PROBLEM_TYPE, ProblemDocument
from .refusals import (
    HostNotAllowed,
    InvalidHeader,
    NotAllowed,
    NotAuthenticated,
    OriginNotAllowed,
    RequestTooSlow,
    TooManyRequests,
    UnsupportedMedia,
)

__all__ = ("LoggedEntry", "openapi")

_REF: Final = "#/components/schemas/{name}"
_Errors = tuple[type[TalkfoldError], ...]
_ALWAYS: Final[_Errors] = (HostNotAllowed, OriginNotAllowed, InvalidArgument, StoreBusy)
_ASKED: Final[_Errors] = (NotAuthenticated, NotAllowed, TooManyRequests)
_OF_A_SESSION: Final[_Errors] = (SessionNotFound, SessionErased, AmbiguousSession)
_WITH_A_BODY: Final[_Errors] = (
    UnsupportedMedia,
    InvalidHeader,
    InvalidJson,
    InvalidAction,
    TooLarge,
    TooDeep,
    RequestTooSlow,
)

_HEADERS: Final[dict[str, str]] = {
    "If-Match": 'The number that the session must be at, as its ETag: "17".',
    "If-None-Match": "In a write, * alone: the session must not exist. In a read, the ETag that the caller has.",
    "Idempotency-Key": "Makes the request safe to repeat: the same key with the same body gets the first answer again.",
    "Last-Event-ID": "The number of the last action that was seen; the same as `after`, and wins.",
}

_SEGMENTS: Final[dict[str, str]] = {
    "session": "The session's id; a slash in it is sent as %2F.",
    "call": "The tool call's id.",
    "number": "The action's number, from 1.",
}


class LoggedEntry(msgspec.Struct, omit_defaults=True):
    """An action to be logged in an envelope of its own."""

    action: SessionAction
    run: str | None = None
    meta: dict[str, Json] | None = None
    actor: str | None = None
    time: str | None = None


def openapi(endpoints: Sequence[Endpoint], *, title: str = "talkfold") -> dict[str, Any]:
    """The document of these endpoints."""
    kinds = list(dict.fromkeys(_kinds(endpoints)))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schema_of = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "license": {"name": "MIT", "identifier": "MIT"}},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _kinds(endpoints: Iterable[Endpoint]) -> Iterable[Any]:
    yield ProblemDocument
    for endpoint in endpoints:
        if isinstance(endpoint.body, type):
            yield endpoint.body
        elif endpoint.body is ACTIONS:
            yield from (SessionAction, LoggedEntry)
        for reply in endpoint.replies:
            if reply.content is not None and not isinstance(reply.content, str):
                yield reply.content


def _operation(endpoint: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    summary, _, rest = endpoint.text.replace("``", "`").partition("\n\n")
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": " ".join(summary.split()),
        "parameters": list(_parameters(endpoint)),
        "responses": _responses(endpoint, schema_of),
    }
    if rest:
        operation["description"] = rest
    if endpoint.body is not None:
        operation["requestBody"] = _request_body(endpoint, schema_of)
    if endpoint.scope is not None:
        operation["security"] = [{"token": []}, {}]
        operation["x-scope"] = endpoint.scope
    return operation


def _parameters(endpoint: Endpoint) -> Iterable[dict[str, Any]]:
    for name in endpoint.segments:
        kind = {"type": "integer", "minimum": 1} if name == "number" else {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "description": _SEGMENTS[name], "schema": kind}
    schema = _inlined(endpoint.query)
    for name, kind in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        yield {"name": name, "in": "query", "required": required, "schema": kind}
    if endpoint.scope is not None:
        text = "Whose sessions are meant; only the trusted side may say it."
        yield {"name": "owner", "in": "query", "required": False, "description": text, "schema": {"type": "string"}}
    for name in endpoint.headers:
        yield {
            "name": name,
            "in": "header",
            "required": False,
            "description": _HEADERS[name],
            "schema": {"type": "string"},
        }


def _inlined(kind: Any) -> dict[str, Any]:
    (reference,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    schema: dict[str, Any] = components[reference["$ref"]]
    return schema


def _request_body(endpoint: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    if endpoint.body is LINES:
        content: dict[str, Any] = {"application/x-ndjson": {"schema": {"type": "string"}}}
    elif endpoint.body is ACTIONS:
        item = {"anyOf": [schema_of[SessionAction], schema_of[LoggedEntry]]}
        content = {
            "application/json": {"schema": {"anyOf": [item, {"type": "array", "minItems": 1, "items": item}]}},
            "application/x-ndjson": {"schema": {"type": "string"}},
        }
    else:
        content = {"application/json": {"schema": schema_of[endpoint.body]}}
    return {"required": not endpoint.optional_body, "content": content}


def _responses(endpoint: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for reply in endpoint.replies:
        response = responses.setdefault(str(reply.status), {"description": reply.text})
        if isinstance(reply.content, str):
            response.setdefault("content", {})[reply.content] = {"schema": {"type": "string"}}
        elif reply.content is not None:
            response.setdefault("content", {})["application/json"] = {"schema": schema_of[reply.content]}
    by_status: dict[int, list[type[TalkfoldError]]] = {}
    for error in _errors(endpoint):
        by_status.setdefault(error.http_status, []).append(error)
    for status, errors in sorted(by_status.items()):
        codes = [error.code for error in errors]
        only = {"properties": {"code": {"enum": codes}, "type": {"enum": [PROBLEM_TYPE + code for code in codes]}}}
        responses[str(status)] = {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}.",
            "content": {PROBLEM_JSON: {"schema": {"allOf": [schema_of[ProblemDocument], only]}}},
        }
    return responses


def _errors(endpoint: Endpoint) -> Iterable[type[TalkfoldError]]:
    """Every error that an endpoint of this kind may answer with, each once."""
    found: list[type[TalkfoldError]] = [*_ALWAYS]
    if endpoint.scope is not None:
        found += _ASKED
    if "session" in endpoint.segments:
        found += _OF_A_SESSION
    if endpoint.body is not None:
        found += _WITH_A_BODY
    if endpoint.headers:
        found.append(InvalidHeader)
    return dict.fromkeys([*found, *endpoint.errors])
