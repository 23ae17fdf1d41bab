"""What is appended, made ready for any store: validated, encoded, and with its effect on the session's status.

All checks happen here, before anything is queued or written, so that a refused append touches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeAlias, cast

from ..actions import Finish, Part, RunError, SessionAction
from ..codec import canonical_body, encode_action, encode_actions, encode_json
from ..errors import InvalidArgument
from ..log import Entry, Loggable
from ..machine import SESSION_NEXT
from ..model import Json, SessionStatus
from ..redaction import Redaction
from ..redaction.rows import Cleared
from .arguments import check_name, check_time
from .redacting import redacted_rows

__all__ = ("Batch", "Prepared", "encode_metadata", "next_status", "prepare", "request_of", "turning")


Prepared: TypeAlias = "tuple[int | None, str | None, str | None, bytes | None, bytes]"
"""One action as it will be stored: time (``None``: the transaction's), run, actor, meta, body."""


class Batch(NamedTuple):
    """An append: its rows, those of its actions that can change the status, and the bytes of its bodies."""

    rows: Sequence[Prepared]
    turning: Sequence[SessionAction]
    size: int

    def request(self) -> bytes:
        """32 bytes that two appends share only when they ask for the very same actions."""
        return request_of(row[-1] for row in self.rows)

    def under(self, run: str) -> Batch:
        """The same append, under this run's id where an action names none of its own."""
        return self._replace(rows=[row if row[1] is not None else (row[0], run, *row[2:]) for row in self.rows])


def request_of(bodies: Iterable[bytes]) -> bytes:
    """What is kept with an idempotency key of the actions that were asked for."""
    digest = sha256()
    for body in bodies:
        digest.update(len(body).to_bytes(8, "big"))
        digest.update(body)
    return digest.digest()


def encode_metadata(name: str, value: Mapping[str, Json] | None) -> bytes | None:
    """JSON of a ``meta`` or ``metadata`` object. Raises NotJsonValue, InvalidArgument."""
    if value is None:
        return None
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidArgument(name, f"an object is needed, not {type(value).__name__}")
    return encode_json(dict(value), name)


def prepare(
    actions: Sequence[Loggable],
    *,
    run: str | None = None,
    actor: str | None = None,
    meta: Mapping[str, Json] | None = None,
    redaction: Redaction | None = None,
) -> Batch:
    """Validate and encode what an append was given, without what the store's redaction takes out.

    Raises InvalidArgument (no actions, a bad run or actor), InvalidJson, InvalidAction, NotJsonValue, TooDeep,
    TooLarge, RedactionFailed.
    """
    if not isinstance(actions, (list, tuple)):
        raise InvalidArgument("actions", f"a list of actions is needed, even for one; not {type(actions).__name__}")
    if not actions:
        raise InvalidArgument("actions", "there is nothing to append")
    check_name("run", run)
    check_name("actor", actor)
    shared = None if meta is None else encode_metadata("meta", meta)
    rows: Sequence[Prepared]
    if _BY_HAND.isdisjoint(map(type, actions)):
        typed = cast("Sequence[SessionAction]", actions)
        bodies = encode_actions(typed)
        rows = [(None, run, actor, shared, body) for body in bodies]
    else:
        pairs = [_read(item.action if isinstance(item, Entry) else item) for item in actions]
        typed = [action for action, _ in pairs]
        bodies = [body for _, body in pairs]
        rows = [_enveloped(item, run, actor, shared, body) for item, body in zip(actions, bodies, strict=True)]
    if redaction is None:
        return Batch(rows, turning(typed), sum(map(len, bodies)))
    rows, typed = redacted_rows(redaction, actions, typed, rows)
    return Batch(rows, turning(typed), sum(len(row[-1]) for row in rows))


_BY_HAND = frozenset({Entry, Cleared, bytes})
_ENDS = frozenset({Finish, RunError})


def _read(action: SessionAction | bytes) -> tuple[SessionAction, bytes]:
    return canonical_body(action) if isinstance(action, bytes) else (action, encode_action(action))


def _enveloped(item: Loggable, run: str | None, actor: str | None, meta: bytes | None, body: bytes) -> Prepared:
    if not isinstance(item, Entry):
        return None, run, actor, meta, body
    check_name("run", item.run)
    check_name("actor", item.actor)
    if item.time is not None:
        check_time(item.time)
    return (
        item.time,
        run if item.run is None else item.run,
        actor if item.actor is None else item.actor,
        meta if item.meta is None else encode_metadata("meta", item.meta),
        body,
    )


def turning(actions: Iterable[SessionAction]) -> list[SessionAction]:
    """Those that can change a session's status or its number of user messages; of most logs, few."""
    return [action for action in actions if type(action) is not Part or type(action.part) in _ENDS]


def next_status(status: SessionStatus, turns: int, action: SessionAction) -> tuple[SessionStatus, int]:
    """A session's status, and its number of user messages since the last reset, after an action.

    The same table as the fold's, without the messages: what a list of sessions needs to know.
    """
    if type(action) is Part:
        part = action.part
        if action.within is not None:
            return status, turns
        if type(part) is Finish:
            return SESSION_NEXT[status, f"finish {part.reason}"], turns
        return SESSION_NEXT[status, str(type(part).__struct_config__.tag)], turns
    trigger = str(type(action).__struct_config__.tag)
    if trigger == "toolPhase" or (trigger == "retry" and not turns):
        return status, turns
    turns = turns + 1 if trigger == "send" else 0 if trigger == "reset" else turns
    return SESSION_NEXT[status, trigger], turns
