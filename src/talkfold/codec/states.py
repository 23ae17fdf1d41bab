"""States and messages in and out: whole documents, for snapshots, exports and other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import get_args

import msgspec
from msgspec.structs import fields

from ..errors import NotJsonValue, TooDeep, TooLarge
from ..model import AgentMessage, AgentPart, SessionState, ToolPart
from .text import MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH, checked, decoded, encoded
from .values import refuse_unjson

__all__ = ("decode_messages", "decode_state", "encode_messages", "encode_state", "restore_state")

_STATE = msgspec.json.Decoder(SessionState)
_MESSAGES = msgspec.json.Decoder(tuple[AgentMessage, ...])


def decode_state(
    data: bytes | str, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DOCUMENT_DEPTH
) -> SessionState:
    """A session's state from its JSON. Raises TooLarge, TooDeep, InvalidJson, InvalidAction (with the path)."""
    what = "session state"
    return decoded(_STATE, checked(data, what, max_bytes, max_depth), what, max_depth)


def restore_state(data: bytes) -> SessionState:
    """A state from what ``encode_state`` made, for snapshots: the limits, kept then, are not looked at again."""
    try:
        return _STATE.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return decode_state(data, max_bytes=sys.maxsize, max_depth=sys.maxsize)


def encode_state(
    state: SessionState, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DOCUMENT_DEPTH
) -> bytes:
    """A session's state as JSON that decodes to an equal state.

    Raises NotJsonValue with the path for a value that JSON cannot hold, TooDeep, TooLarge.
    """
    what = "session state"
    _refuse_unjson(state.messages, "$.messages", _STATE_DEPTH, what, max_depth)
    return _written(state, what, max_bytes, max_depth)


def decode_messages(
    data: bytes | str, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DOCUMENT_DEPTH
) -> tuple[AgentMessage, ...]:
    """Messages from a JSON array. Raises TooLarge, TooDeep, InvalidJson, InvalidAction (with the path)."""
    what = "list of messages"
    return decoded(_MESSAGES, checked(data, what, max_bytes, max_depth), what, max_depth)


def encode_messages(
    messages: Iterable[AgentMessage],
    *,
    max_bytes: int = MAX_DOCUMENT_BYTES,
    max_depth: int = MAX_DOCUMENT_DEPTH,
) -> bytes:
    """Messages as a JSON array that decodes to equal messages. Raises NotJsonValue, TooDeep, TooLarge."""
    what = "list of messages"
    row = tuple(messages)
    _refuse_unjson(row, "$", _LIST_DEPTH, what, max_depth)
    return _written(row, what, max_bytes, max_depth)


def _written(value: object, what: str, max_bytes: int, max_depth: int) -> bytes:
    body = encoded(value, what, max_depth)
    if len(body) > max_bytes:
        raise TooLarge(what, len(body), max_bytes)
    return body


_STATE_DEPTH = 2
"""How deep the list of messages lies in a state, counted in brackets: the object and the list itself. A state's error
lies no deeper."""

_LIST_DEPTH = 1
"""The same where the list is the whole document."""

_PART = 3
"""How much deeper a part lies than the list of its message: the message, its list of parts, and the part itself."""

_RUN = _PART + 2
"""How much deeper the messages of a nested run lie than those around it: the part, the run, and its list."""


def _refuse_unjson(messages: tuple[AgentMessage, ...], path: str, depth: int, what: str, max_depth: int) -> None:
    """Raise unless the messages, whose list lies at that depth, come back from JSON as they are.

    Every bracket that will be written is a struct's or its list's, whose depths are known, or a free value's, which
    is walked through anyway: so none has to be counted in the text. Raises NotJsonValue (with the path), TooDeep.
    """
    levels = [(messages, path, depth)]
    while levels:
        level, root, depth = levels.pop()
        around = depth + _PART
        if _deepest(level, depth) > max_depth:
            raise TooDeep(what, max_depth)
        for m, message in enumerate(level):
            for p, part in enumerate(message.parts):
                for field, name in _FREE_FIELDS.get(type(part), ()):
                    try:
                        refuse_unjson(getattr(part, field), "", what=what, max_depth=max_depth, around=around)
                    except NotJsonValue as error:
                        raise NotJsonValue(f"{root}[{m}].parts[{p}].{name}{error.path}", error.reason) from None
                if type(part) is ToolPart and part.agent is not None:
                    levels.append((part.agent.messages, f"{root}[{m}].parts[{p}].agent.messages", depth + _RUN))


def _deepest(messages: tuple[AgentMessage, ...], depth: int) -> int:
    """The depth of the deepest bracket of the messages themselves, without what their parts hold."""
    if any(message.parts for message in messages):
        return depth + _PART
    return depth + _PART - 1 if messages else depth


_FREE_NAMES = ("input", "output", "provider_metadata")
_FREE_FIELDS = {
    member: tuple((field.name, field.encode_name) for field in fields(member) if field.name in _FREE_NAMES)
    for member in get_args(AgentPart)
}
