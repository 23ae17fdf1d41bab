"""States and messages in and out: whole documents, for snapshots, exports and other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec

from ..errors import TooLarge
from ..model import AgentMessage, ReasoningPart, SessionState, ToolPart
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
    _refuse_unjson(state.messages, "$.messages", what, max_depth)
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
    _refuse_unjson(row, "$", what, max_depth)
    return _written(row, what, max_bytes, max_depth)


def _written(value: object, what: str, max_bytes: int, max_depth: int) -> bytes:
    body = encoded(value, what, max_depth)
    if len(body) > max_bytes:
        raise TooLarge(what, len(body), max_bytes)
    return checked(body, what, max_bytes, max_depth)


def _refuse_unjson(messages: tuple[AgentMessage, ...], path: str, what: str, max_depth: int) -> None:
    levels = [(messages, path)]
    while levels:
        level, root = levels.pop()
        for m, message in enumerate(level):
            for p, part in enumerate(message.parts):
                if type(part) is ToolPart:
                    here = f"{root}[{m}].parts[{p}]"
                    refuse_unjson(part.input, f"{here}.input", what=what, max_depth=max_depth)
                    refuse_unjson(part.output, f"{here}.output", what=what, max_depth=max_depth)
                    refuse_unjson(part.provider_metadata, f"{here}.providerMetadata", what=what, max_depth=max_depth)
                    if part.agent is not None:
                        levels.append((part.agent.messages, f"{here}.agent.messages"))
                elif type(part) is ReasoningPart:
                    here = f"{root}[{m}].parts[{p}]"
                    refuse_unjson(part.provider_metadata, f"{here}.providerMetadata", what=what, max_depth=max_depth)
