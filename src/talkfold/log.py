"""A logged action: the action, its envelope, and the hash chain that proves the log.

The chain: every action's hash covers the hash before it, the whole envelope and the action's own bytes, and
the first one covers the session's id. So changing, removing, inserting or reordering any stored action, or
moving a log to another session, changes every hash after it. The hash of the newest action is the session's
*digest*: a person who noted it down can prove later that the log up to there is still the same.
"""

from __future__ import annotations

from hashlib import sha256
from struct import Struct as Packed
from typing import TypeAlias

from msgspec import Struct

from .actions import SessionAction
from .model import Json

__all__ = ("SETTLER", "Entry", "Loggable", "LoggedAction", "chain_link", "chain_row", "chain_start")

SETTLER = "talkfold"
"""The actor of a stop that settles what a run whose process is gone left open."""


class LoggedAction(Struct, frozen=True, gc=False):
    """One row of a session's log.

    ``number`` counts from 1 without gaps and is the only order; ``time`` (milliseconds since 1970, UTC) is for
    people. ``body`` is the action's own JSON as it came, unknown fields included; ``action`` is what it means.
    ``meta`` is free JSON: cause, model, usage. ``hash`` is 32 bytes of the chain, stored with the last action of
    every append: it covers those before it as well, and one in each row would make a log of small rows a quarter
    larger.
    """

    number: int
    time: int
    action: SessionAction
    body: bytes
    hash: bytes | None
    run: str | None = None
    actor: str | None = None
    meta: dict[str, Json] | None = None


class Entry(Struct, frozen=True):
    """An action on its way into the log, with an envelope of its own.

    ``action`` may be the typed action or its JSON. What is ``None`` here is taken from the append call; ``time``
    is the store's clock unless given (imports keep their times).
    """

    action: SessionAction | bytes
    time: int | None = None
    run: str | None = None
    actor: str | None = None
    meta: dict[str, Json] | None = None


Loggable: TypeAlias = SessionAction | bytes | Entry
"""What can be appended: a typed action, its JSON, or either with an envelope."""

_ABSENT = 0xFFFFFFFF
_ENVELOPE = Packed(">32sQqIIII")


def chain_start(session_id: str) -> bytes:
    """The hash before a session's first action: 32 bytes that depend on the session's id."""
    return sha256(b"talkfold log 1\0" + session_id.encode("utf-8", "surrogatepass")).digest()


def chain_link(
    previous: bytes,
    number: int,
    time: int,
    run: str | None,
    actor: str | None,
    meta: bytes | None,
    body: bytes,
) -> bytes:
    """The hash of one logged action: 32 bytes over the previous hash, the envelope and the body.

    Every field is preceded by its length (a missing one by 2**32 - 1), so no two different rows read alike.
    """
    who = None if run is None else run.encode()
    return chain_row(previous, number, time, who, None if actor is None else actor.encode(), meta, body)


def chain_row(
    previous: bytes,
    number: int,
    time: int,
    run: bytes | None,
    actor: bytes | None,
    meta: bytes | None,
    body: bytes,
) -> bytes:
    """``chain_link`` for a row as it is stored, its run and actor in UTF-8. Whatever bytes these are, it has a hash."""
    head = _ENVELOPE.pack(
        previous,
        number,
        time,
        _ABSENT if run is None else len(run),
        _ABSENT if actor is None else len(actor),
        _ABSENT if meta is None else len(meta),
        len(body),
    )
    if run is None and actor is None and meta is None:
        return sha256(head + body).digest()
    return sha256(b"".join((head, run or b"", actor or b"", meta or b"", body))).digest()
