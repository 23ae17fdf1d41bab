"""Errors as answers: ``application/problem+json`` (RFC 9457), each with the error's stable code and where the fault is.

What talkfold raises on purpose is told with its text and next step. Anything else is told as an internal error with the
request's id, which the server's log has with the traceback; nothing of it leaves.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import Raw, Struct
from starlette.responses import Response

from ..codec import encode_logged, written_time
from ..errors import (
    AmbiguousSession,
    CursorAhead,
    InvalidAction,
    InvalidArgument,
    RunInProgress,
    SessionErased,
    TalkfoldError,
    TooLarge,
    VersionConflict,
)
from .refusals import InvalidHeader, MethodNotAllowed, NotAuthenticated, TooManyRequests, TooManyStreams

__all__ = (
    "INTERNAL",
    "PROBLEM_JSON",
    "PROBLEM_TYPE",
    "ProblemDocument",
    "document_of",
    "internal_problem",
    "pointer",
    "problem",
)

PROBLEM_JSON: Final = "application/problem+json"
PROBLEM_TYPE: Final = "urn:talkfold:problem:"
"""The beginning of every problem's ``type``; the rest is its code."""

INTERNAL: Final = "internal_error"


class ProblemDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What went wrong with a request.

    ``code`` is stable and for programs, ``detail`` says what was wrong, ``nextStep`` what to do about it. ``pointer``
    is a JSON Pointer to the fault in the body, ``parameter`` the name of the path or query parameter or header.
    ``requestId`` is in the server's log. A version conflict carries ``expected``, ``actual`` and the ``missing``
    actions (at most 1,000); other problems carry what their text speaks of.
    """

    type: str
    title: str
    status: int
    code: str
    detail: str
    next_step: str | None = None
    request_id: str | None = None
    pointer: str | None = None
    parameter: str | None = None
    expected: int | str | None = None
    actual: int | None = None
    missing: list[Raw] | None = None
    head: int | None = None
    limit: int | None = None
    erased: str | None = None
    run: str | None = None


def problem(error: TalkfoldError, request_id: str | None = None) -> Response:
    """The answer for an error. Its status is the error's ``http_status``."""
    return _answer(document_of(error, request_id), error.http_status, _headers(error))


def document_of(error: TalkfoldError, request_id: str | None = None) -> bytes:
    """An error as the JSON of a problem."""
    document = ProblemDocument(
        type=PROBLEM_TYPE + error.code,
        title=_title(error.code),
        status=error.http_status,
        code=error.code,
        detail=_whole(str(error)),
        next_step=_whole(error.next_step),
        request_id=request_id,
    )
    return msgspec.json.encode(msgspec.structs.replace(document, **_particulars(error)))


def internal_problem(request_id: str | None) -> Response:
    """The answer for what should not have happened. It says nothing of what did."""
    document = ProblemDocument(
        type=PROBLEM_TYPE + INTERNAL,
        title=_title(INTERNAL),
        status=500,
        code=INTERNAL,
        detail="this should not have happened",
        next_step="Tell whoever runs this server the request's id; its log has the rest.",
        request_id=request_id,
    )
    return _answer(msgspec.json.encode(document), 500, {})


def _answer(document: bytes, status: int, headers: dict[str, str]) -> Response:
    return Response(document, status, {"Cache-Control": "no-store", **headers}, PROBLEM_JSON)


def _title(code: str) -> str:
    return code.replace("_", " ").capitalize()


def _whole(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON in UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _particulars(error: TalkfoldError) -> dict[str, object]:
    """What an error of its kind carries besides its text."""
    match error:
        case VersionConflict():
            return {
                "expected": error.expected if isinstance(error.expected, int | str) else "absent",
                "actual": error.actual,
                "missing": [Raw(encode_logged(row)) for row in error.missing],
            }
        case InvalidAction():
            return {"pointer": _whole(pointer(error.path))}
        case InvalidArgument() | InvalidHeader():
            return {"parameter": error.name}
        case CursorAhead():
            return {"head": error.head}
        case TooLarge():
            return {"limit": error.limit}
        case SessionErased():
            return {"erased": written_time(error.at)}
        case RunInProgress():
            return {"run": error.lease.run}
        case AmbiguousSession():
            return {"parameter": "owner"}
        case _:
            return {}


def _headers(error: TalkfoldError) -> dict[str, str]:
    """The headers that HTTP asks for with some statuses."""
    match error:
        case VersionConflict():
            return {"ETag": f'"{error.actual}"'}
        case MethodNotAllowed():
            return {"Allow": ", ".join(error.allowed)}
        case NotAuthenticated():
            return {"WWW-Authenticate": 'Bearer realm="talkfold"'}
        case TooManyRequests() | TooManyStreams():
            return {"Retry-After": str(max(1, round(error.seconds)))}
        case _:
            return {"Retry-After": "1"} if error.http_status == HTTPStatus.SERVICE_UNAVAILABLE else {}


_STEP = re.compile(r"\[(\d+)\]|\[\.\.\.\]|\.([^.\[]+)")


def pointer(path: str) -> str:
    """A JSON Pointer (RFC 6901) from the path in an error: ``$[3].part.type`` is ``/3/part/type``."""
    steps = (found[1] or found[2] or "*" for found in _STEP.finditer(path.removeprefix("$")))
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
