"""What is appended, made ready for any store: validated, encoded, and with its effect on the session's status.

All checks happen here, before anything is queued or written, so that a refused append touches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from ..actions import Finish, Part, RunError, SessionAction, ToolPhase
from ..codec import canonical_body, encode_action, encode_json
from ..errors import InvalidArgument
from ..log import Entry, Loggable
from ..machine import SESSION_NEXT
from ..model import Json, SessionStatus
from .arguments import check_name

__all__ = ("Batch", "Prepared", "encode_metadata", "next_status", "prepare", "turns_status")


class Prepared(NamedTuple):
    """One action as it will be stored, but for its number, its hash and, where ``None``, its time."""

    time: int | None
    run: str | None
    actor: str | None
    meta: bytes | None
    body: bytes


class Batch(NamedTuple):
    """An append: its rows, those of its actions that can change the status, and the bytes of its bodies."""

    rows: list[Prepared]
    turning: list[SessionAction]
    size: int

    def request(self) -> bytes:
        """32 bytes that two appends share only when they ask for the very same actions."""
        digest = sha256()
        for row in self.rows:
            digest.update(len(row.body).to_bytes(8, "big"))
            digest.update(row.body)
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
) -> Batch:
    """Validate and encode what an append was given.

    Raises InvalidArgument (no actions, a bad run or actor), InvalidJson, InvalidAction, NotJsonValue, TooDeep,
    TooLarge.
    """
    if not isinstance(actions, (list, tuple)):
        raise InvalidArgument("actions", f"a list of actions is needed, even for one; not {type(actions).__name__}")
    if not actions:
        raise InvalidArgument("actions", "there is nothing to append")
    check_name("run", run)
    check_name("actor", actor)
    shared = encode_metadata("meta", meta)
    rows: list[Prepared] = []
    turning: list[SessionAction] = []
    size = 0
    for item in actions:
        time, by_run, by_actor, by_meta = None, run, actor, shared
        action: SessionAction | bytes
        if not isinstance(item, Entry):
            action = item
        else:
            action = item.action
            time = item.time
            if item.run is not None:
                check_name("run", item.run)
                by_run = item.run
            if item.actor is not None:
                check_name("actor", item.actor)
                by_actor = item.actor
            if item.meta is not None:
                by_meta = encode_metadata("meta", item.meta)
        if isinstance(action, bytes):
            action, body = canonical_body(action)
        else:
            body = encode_action(action)
        rows.append(Prepared(time, by_run, by_actor, by_meta, body))
        size += len(body)
        if turns_status(action):
            turning.append(action)
    return Batch(rows, turning, size)


def turns_status(action: SessionAction) -> bool:
    """Whether an action can change a session's status, or the count of its turns."""
    if type(action) is Part:
        return action.within is None and type(action.part) in _ENDS
    return type(action) is not ToolPhase


_ENDS = frozenset({Finish, RunError})


def next_status(status: SessionStatus, turns: int, action: SessionAction) -> tuple[SessionStatus, int]:
    """A session's status and number of user messages since the last reset, after one ``turning`` action.

    The same table as the fold's, without the messages: what a list of sessions needs to know.
    """
    trigger = _trigger(action)
    if trigger == "retry" and not turns:
        return status, turns
    turns = turns + 1 if trigger == "send" else 0 if trigger == "reset" else turns
    return SESSION_NEXT[status, trigger], turns


def _trigger(action: SessionAction) -> str:
    if type(action) is not Part:
        return str(type(action).__struct_config__.tag)
    part = action.part
    return f"finish {part.reason}" if type(part) is Finish else str(type(part).__struct_config__.tag)
