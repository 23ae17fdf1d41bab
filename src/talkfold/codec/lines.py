"""JSON lines: logged actions with their envelope, and files of actions that a crash may have cut short."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeAlias, TypeVar, overload

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ..actions import SessionAction
from ..errors import DamagedLine, InvalidAction, TalkfoldError, TooLarge
from ..log import LoggedAction
from ..model import Json
from .actions import canonical_body
from .envelope import read_meta, read_number, read_text, read_time, written_time
from .text import MAX_ACTION_BYTES, MAX_DEPTH, checked, encoded, outlined
from .values import refuse_unjson

__all__ = (
    "MAX_LINE_BYTES",
    "JsonLine",
    "TornLine",
    "decode_line",
    "decode_logged",
    "encode_logged",
    "read_jsonl",
)

MAX_LINE_BYTES = 2 * MAX_ACTION_BYTES
"""The longest line: an action and an envelope that is not larger."""

_MAX_LINE_DEPTH = MAX_DEPTH + 1
_HASH = re.compile(r"[0-9a-f]{64}")
_WHAT = "logged action"

T = TypeVar("T")


class _Line(Struct, omit_defaults=True):
    number: Raw
    time: Raw
    action: Raw
    hash: Raw | UnsetType = UNSET
    run: Raw | UnsetType = UNSET
    actor: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = UNSET


class _Kind(Struct):
    type: Raw | UnsetType = UNSET
    action: Raw | UnsetType = UNSET


_LINE = msgspec.json.Decoder(_Line)
_KIND = msgspec.json.Decoder(_Kind)


def encode_logged(logged: LoggedAction) -> bytes:
    """A logged action as one line of JSON, without its line end.

    ``{"number", "time" (RFC 3339, UTC, milliseconds), "run"?, "actor"?, "meta"?, "hash"? (hex), "action"}``, where
    the action is the body verbatim. Raises NotJsonValue for a ``meta`` that is no JSON or a time beyond the
    year 9999.
    """
    refuse_unjson(UNSET if logged.meta is None else logged.meta, "$.meta", what=_WHAT, max_depth=MAX_DEPTH)
    head: dict[str, Json] = {"number": logged.number, "time": written_time(logged.time)}
    digest = None if logged.hash is None else logged.hash.hex()
    optional = {"run": logged.run, "actor": logged.actor, "meta": logged.meta, "hash": digest}
    head |= {name: value for name, value in optional.items() if value is not None}
    return encoded(head, _WHAT, MAX_DEPTH)[:-1] + b',"action":' + logged.body + b"}"


def decode_logged(data: bytes | str) -> LoggedAction:
    """A logged action from its line. The body comes back verbatim; the hash is taken as it stands, not verified.

    Raises TooLarge, TooDeep, InvalidJson, InvalidAction (with the path).
    """
    line = outlined(_LINE, checked(data, _WHAT, MAX_LINE_BYTES, _MAX_LINE_DEPTH), _WHAT, _MAX_LINE_DEPTH)
    try:
        action, body = canonical_body(bytes(line.action))
    except InvalidAction as error:
        raise InvalidAction(error.what, error.reason, "$.action" + error.path[1:]) from None
    return LoggedAction(
        number=read_number(line.number, "$.number"),
        time=read_time(line.time, "$.time"),
        action=action,
        body=body,
        hash=None if line.hash is UNSET else _read_hash(read_text(line.hash, "$.hash")),
        run=None if line.run is UNSET else read_text(line.run, "$.run"),
        actor=None if line.actor is UNSET else read_text(line.actor, "$.actor"),
        meta=None if line.meta is UNSET else read_meta(line.meta, "$.meta"),
    )


def _read_hash(text: str) -> bytes:
    if _HASH.fullmatch(text) is None:
        raise InvalidAction(_WHAT, "expected 64 hexadecimal digits in small letters", "$.hash")
    return bytes.fromhex(text)


# ---- files of lines ---------------------------------------------------------------------------------------


class JsonLine(Struct, frozen=True):
    """A line that was read: its place in the file (from 1), the action, its body, and its envelope if it has one."""

    line: int
    action: SessionAction
    body: bytes
    logged: LoggedAction | None = None


class TornLine(Struct, frozen=True):
    """The last line, cut short by a crash: its place in the file (from 1) and how many bytes are left of it."""

    line: int
    size: int


_Decoder: TypeAlias = Callable[[int, bytes], T]


def decode_line(line: int, data: bytes) -> JsonLine:
    """What a line of a JSONL file holds: a bare action, or one with its envelope."""
    if b'"action"' in data:
        kind = outlined(_KIND, checked(data, _WHAT, MAX_LINE_BYTES, _MAX_LINE_DEPTH), _WHAT, _MAX_LINE_DEPTH)
        if kind.action is not UNSET and kind.type is UNSET:
            logged = decode_logged(data)
            return JsonLine(line, logged.action, logged.body, logged)
    action, body = canonical_body(data)
    return JsonLine(line, action, body)


@overload
def read_jsonl(source: bytes | BinaryIO) -> Iterator[JsonLine | TornLine]: ...
@overload
def read_jsonl(source: bytes | BinaryIO, decode: _Decoder[T]) -> Iterator[T | TornLine]: ...
def read_jsonl(source: bytes | BinaryIO, decode: _Decoder[object] = decode_line) -> Iterator[object]:
    """What the lines of a JSONL file hold, one at a time, from bytes or from a binary stream.

    Blank lines and a byte order mark at the start are skipped. A last line without its line end that is the
    beginning of a JSON object, or nothing but NUL bytes, is what a crash leaves behind: it comes as a TornLine, always
    last. Anything else that cannot be read raises DamagedLine with the line's number. ``decode(line number,
    bytes)`` says what a line holds.
    """
    for number, data in _lines(source):
        try:
            yield decode(number, data)
        except TalkfoldError as error:
            if not data.endswith(b"\n") and _is_torn(data):
                yield TornLine(number, len(data))
                return
            raise DamagedLine(number, error) from error


def _lines(source: bytes | BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    for data in _split(source):
        number += 1
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if data.strip(b" \t\r\n"):
            yield number, data


def _split(source: bytes | BinaryIO) -> Iterator[bytes]:
    if isinstance(source, bytes):
        start = 0
        while start < len(source):
            end = source.find(b"\n", start) + 1 or len(source)
            yield source[start:end]
            start = end
    else:
        number = 0
        while data := source.readline(MAX_LINE_BYTES + 2):
            number += 1
            if len(data) > MAX_LINE_BYTES + 1:
                raise DamagedLine(number, TooLarge("line", len(data), MAX_LINE_BYTES))
            yield data


# ---- is it the beginning of a JSON object? ----------------------------------------------------------------

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}
_STRING_ENDS = ("", '"', '\\"', '0"', '00"', '000"', '0000"', 'u0000"')
_WORD_ENDS = tuple(word[i:] for word in ("true", "false", "null") for i in range(1, len(word)))
_VALUE_ENDS = ("", ":0", "0", '"":0', *_WORD_ENDS)


def _is_torn(data: bytes) -> bool:
    """Whether more bytes could make a JSON object of this: tried out, with the few endings that there are."""
    data = data.rstrip(b"\0")
    if not data:
        return True
    text = data.decode("utf-8", "ignore") if _cut_inside_character(data) else _decoded_or_empty(data)
    if not text.lstrip(" \t\r").startswith("{"):
        return False
    closing: list[str] = []
    for token in _TOKENS.finditer(text):
        if token[0] in _CLOSING:
            closing.append(_CLOSING[token[0]])
        elif token[0] in "]}" and closing:
            closing.pop()
    if not closing:
        return False
    tail = "".join(reversed(closing))
    return any(_parses(text + s + v + tail) for s in _STRING_ENDS for v in _VALUE_ENDS)


def _cut_inside_character(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def _decoded_or_empty(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


def _parses(text: str) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refuse, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True
