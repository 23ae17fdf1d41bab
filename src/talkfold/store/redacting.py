"""What a store's redaction makes of an append's rows, of titles and of metadata, before anything is queued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..actions import SessionAction
from ..codec import canonical_body, decode_json, encode_json
from ..log import Entry, Loggable
from ..model import Json
from ..redaction import Redaction
from ..redaction.rows import Cleared, redact_actions
from ..redaction.values import redact_json, redact_value
from .lease import Waiting

if TYPE_CHECKING:
    from .entries import Prepared

__all__ = ("redacted_metadata", "redacted_rows", "redacted_title", "redacted_waiting")

_COUNT = "redacted"
"""The key of an action's ``meta`` that says in how many places something was taken out of it."""


def redacted_rows(
    redaction: Redaction, items: Sequence[Loggable], typed: Sequence[SessionAction], rows: Sequence[Prepared]
) -> tuple[Sequence[Prepared], Sequence[SessionAction]]:
    """The rows of an append and their typed actions, both redacted, and each counted in its ``meta``.

    Raises RedactionFailed; TooLarge and TooDeep where what takes a secret's place makes too much of an action.
    """
    changed = redact_actions(
        redaction,
        typed,
        [row[-1] for row in rows],
        foreign=[type(it.action if isinstance(it, Entry) else it) is bytes for it in items],
        cleared=[isinstance(it, Cleared) for it in items],
    )
    metas: dict[bytes, tuple[bytes, int]] = {}
    made = list(rows)
    actions = list(typed)
    for index, (time, run, actor, meta, body) in enumerate(rows):
        if isinstance(items[index], Cleared):
            continue
        count = 0
        if meta is not None:
            if meta not in metas:
                metas[meta] = redact_json(redaction, meta)
            meta, count = metas[meta]
        if index in changed:
            body, inside = changed[index]
            actions[index], body = canonical_body(body)
            count += inside
        if count:
            made[index] = (time, run, actor, _counted(meta, count), body)
        elif index in changed:
            made[index] = (time, run, actor, meta, body)
    return made, actions


def _counted(meta: bytes | None, count: int) -> bytes:
    """The ``meta`` with this many places more: an export that is taken in again keeps what was counted before."""
    held: dict[str, Json] = {} if meta is None else decode_json(meta)
    before: Json = held.get(_COUNT)
    return encode_json({**held, _COUNT: count + (before if type(before) is int else 0)}, "meta")


def redacted_title(redaction: Redaction | None, title: str | None) -> str | None:
    """A session's title as it is stored."""
    return title if redaction is None or title is None else redaction.text(title)[0]


def redacted_metadata(redaction: Redaction | None, metadata: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
    """A session's metadata as they are stored. They must be known to be JSON."""
    return metadata if redaction is None or metadata is None else redact_value(redaction, dict(metadata))


def redacted_waiting(redaction: Redaction | None, waiting: Waiting) -> Waiting:
    """What a lease notes of a call that waits: the question to the person is a text like any other."""
    return waiting if redaction is None else replace(waiting, prompt=redacted_title(redaction, waiting.prompt))
