"""What is answered: JSON with its tag and how long it may be kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from ..codec import encode_document
from .conditions import etag, is_fresh

__all__ = ("FOREVER", "NEVER", "NOW", "json_reply", "unchanged")

NEVER: Final = "no-store"
"""An answer that changes, or is nobody else's business."""

NOW: Final = "private, no-cache"
"""An answer that may be kept, and asked for again with its tag."""

FOREVER: Final = "private, max-age=31536000, immutable"
"""An answer that never changes: what a log was at a number, it was."""


def json_reply(
    content: object,
    status: int = 200,
    *,
    number: int | None = None,
    keep: str = NEVER,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An answer in JSON. ``content`` is JSON already (bytes), or a value; ``number`` becomes its tag."""
    body = content if isinstance(content, bytes) else encode_document(content)
    tag = {} if number is None else {"ETag": etag(number)}
    return Response(body, status, {"Cache-Control": keep, **tag, **(headers or {})}, "application/json")


def unchanged(headers: Mapping[str, str], number: int, keep: str) -> Response | None:
    """304 when the caller has the answer at this number already, else nothing."""
    tag = etag(number)
    return Response(None, 304, {"ETag": tag, "Cache-Control": keep}) if is_fresh(headers, tag) else None
