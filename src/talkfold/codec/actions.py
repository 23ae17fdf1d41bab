"""Actions in and out: one at a time for what comes from outside, many at once for what the log gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import UnionType
from typing import TypeAlias, Union, get_args, get_origin

import msgspec

from ..actions import AgentStreamPart, Part, SessionAction
from ..errors import InvalidAction, InvalidJson, TalkfoldError
from .text import MAX_ACTION_BYTES, MAX_DEPTH, checked, decoded, encoded
from .values import refuse_unjson

__all__ = ("canonical_body", "decode_action", "decode_actions", "encode_action", "encode_actions", "iter_actions")

_ACTION: msgspec.json.Decoder[SessionAction] = msgspec.json.Decoder(SessionAction)
_ACTIONS: msgspec.json.Decoder[list[SessionAction]] = msgspec.json.Decoder(list[SessionAction])


def _tags(union: object) -> tuple[str, ...]:
    return tuple(str(member.__struct_config__.tag) for member in get_args(union))


_ACTION_TYPES = _tags(SessionAction)
_PART_TYPES = _tags(AgentStreamPart)


def decode_action(data: bytes | str, *, max_bytes: int = MAX_ACTION_BYTES, max_depth: int = MAX_DEPTH) -> SessionAction:
    """An action from its JSON (UTF-8 bytes, or str).

    Unknown fields are skipped. Raises TooLarge and TooDeep before anything is read, InvalidJson for what is no
    JSON (NaN and infinities included), InvalidAction with the path for JSON that is no action.
    """
    return _decode(checked(data, "action", max_bytes, max_depth), "action", max_depth)


def _decode(data: bytes, what: str, max_depth: int) -> SessionAction:
    try:
        return decoded(_ACTION, data, what, max_depth)
    except InvalidAction as error:
        raise _explained(error) from None


def _explained(error: InvalidAction) -> InvalidAction:
    """The same error, said so that somebody who got the type wrong knows what is right."""
    if not error.reason.startswith("invalid value ") or not error.path.endswith(".type"):
        return error
    name = error.reason.removeprefix("invalid value ").strip("'")
    if error.path == "$.type" and name in _PART_TYPES:
        reason = f'{name!r} is a stream part; the action around it is {{"type":"part","part":{{…}}}}'
    else:
        known = _ACTION_TYPES if error.path == "$.type" else _PART_TYPES
        reason = f"unknown type {name!r}; known are {', '.join(known)}"
    return InvalidAction(error.what, reason, error.path)


def canonical_body(
    data: bytes | str, *, max_bytes: int = MAX_ACTION_BYTES, max_depth: int = MAX_DEPTH
) -> tuple[SessionAction, bytes]:
    """A foreign action's JSON as ``(action, body)``: what it means, and the one line of bytes that a log keeps.

    The body is the JSON as it came, unknown fields, number spelling and key order included; only white space
    around it goes, and line ends between its tokens become blanks. Raises like ``decode_action``.
    """
    checked_data = checked(data, "action", max_bytes, max_depth)
    action = _decode(checked_data, "action", max_depth)
    # A raw line end cannot stand inside a JSON string, so every one of them is white space between tokens.
    return action, checked_data.strip(b" \t\r\n").replace(b"\n", b" ").replace(b"\r", b" ")


def encode_action(action: SessionAction, *, max_bytes: int = MAX_ACTION_BYTES, max_depth: int = MAX_DEPTH) -> bytes:
    """An action as one line of JSON that decodes to an equal action.

    Raises NotJsonValue with the path for a value that JSON cannot hold exactly (never turning it into null or
    into something alike), InvalidAction for a field of the wrong type, TooLarge and TooDeep. Two surrogate
    halves that stand side by side are one character on the wire, as in JavaScript.
    """
    _refuse_mistyped(action, "an action", _ACTION_KINDS, "$")
    if type(action) is Part:
        _refuse_mistyped(action.part, "a stream part", _PART_KINDS, "$.part")
    _refuse_unjson(action, max_depth)
    try:
        written = encoded(action, "action", max_depth)
    except (TypeError, ValueError) as error:  # a number with more digits than Python writes
        raise InvalidAction("action", str(error)) from None
    body = checked(written, "action", max_bytes, max_depth)
    _decode(body, "action", max_depth)  # msgspec writes what the fields hold without looking at their types
    return body


def encode_actions(actions: Sequence[SessionAction]) -> list[bytes]:
    """What ``encode_action`` gives for each, and raises, at a fraction of its cost: one document for all of them."""
    try:
        for action in actions:
            if type(action) is Part and _FREE_FIELDS[type(action.part)]:
                _refuse_unjson(action, MAX_DEPTH - _AROUND)
        blob = _LINES.encode_lines(actions)
        if len(blob) <= MAX_ACTION_BYTES and _ACTION.decode_lines(blob) == list(actions):
            return blob.split(b"\n")[:-1]
    except (TalkfoldError, msgspec.DecodeError, RecursionError, TypeError, ValueError, KeyError):
        pass  # one of them needs the exact path, or its own error
    return [encode_action(action) for action in actions]


_LINES = msgspec.json.Encoder()
_AROUND = 2
"""How deep a free field lies in an action: inside the action's object and the part's."""


def _refuse_unjson(action: SessionAction, max_depth: int) -> None:
    if type(action) is Part:
        for field, name in _FREE_FIELDS.get(type(action.part), ()):
            refuse_unjson(getattr(action.part, field), f"$.part.{name}", what="action", max_depth=max_depth)


def _refuse_mistyped(struct: object, what: str, kinds: _Kinds, path: str) -> None:
    # msgspec writes bytes, dates and more as strings, which would come back as another value.
    fields = kinds.get(type(struct))
    if fields is None:
        raise InvalidAction("action", f"expected {what}, got {type(struct).__name__}", path)
    for field, name, kind in fields:
        value = getattr(struct, field)
        if type(value) not in kind:  # of a subclass, msgspec writes nothing
            raise InvalidAction("action", f"expected {kind[0].__name__}, got {type(value).__name__}", f"{path}.{name}")


_Kinds: TypeAlias = "Mapping[type, tuple[tuple[str, str, tuple[type, ...]], ...]]"
"""The fields of each struct that hold words or numbers: name, name on the wire, and the types that may stand there."""


def _kinds(union: object) -> _Kinds:
    return {
        member: tuple(
            (field.name, field.encode_name, _types(field.type))
            for field in msgspec.structs.fields(member)
            if field.name not in ("part", *_FREE_NAMES)
        )
        for member in get_args(union)
    }


def _types(annotation: object) -> tuple[type, ...]:
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return tuple(member if isinstance(member, type) else str for member in members)


_FREE_NAMES = ("input", "output", "provider_metadata")
_ACTION_KINDS = _kinds(SessionAction)
_PART_KINDS = _kinds(AgentStreamPart)
_FREE_FIELDS = {
    member: tuple(
        (field.name, field.encode_name) for field in msgspec.structs.fields(member) if field.name in _FREE_NAMES
    )
    for member in get_args(AgentStreamPart)
}


def decode_actions(bodies: Sequence[bytes], first: int = 0) -> list[SessionAction]:
    """Many actions at once, from bodies that a log keeps (as ``canonical_body`` or ``encode_action`` made them).

    As fast as one document of them; the limits are not looked at again. Raises InvalidJson, InvalidAction, TooDeep,
    which name the index of the body at fault, counted from ``first``.
    """
    blob = b"[" + b",".join(bodies) + b"]"
    try:
        if not blob.isascii():
            blob.decode()
        actions = _ACTIONS.decode(blob)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [_decode_nth(index, body) for index, body in enumerate(bodies, first)]
    if len(actions) != len(bodies):
        return [_decode_nth(index, body) for index, body in enumerate(bodies, first)]
    return actions


def iter_actions(bodies: Sequence[bytes]) -> Iterator[SessionAction]:
    """``decode_actions``, a thousand at a time: whoever folds them as they come never holds a long log decoded, and
    works in the processor's cache, which makes it half again as fast."""
    return chain.from_iterable(
        decode_actions(bodies[start : start + _PAGE], start) for start in range(0, len(bodies), _PAGE)
    )


_PAGE = 1_000


def _decode_nth(index: int, body: bytes) -> SessionAction:
    what = f"action [{index}]"
    try:
        return _decode(checked(body, what, len(body), len(body)), what, MAX_DEPTH)
    except InvalidJson as error:
        raise InvalidJson(f"{what}: {error.reason}", error.position) from None
