"""JSON text and its limits: from bytes or str to checked bytes, to typed values, and back.

JSON here is JavaScript's: a string is a row of UTF-16 units, so an escaped lone surrogate is legal in it.
msgspec refuses those; only a text that holds one takes the slower exact path through the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from math import isfinite
from typing import Any, NoReturn, TypeVar, cast

import msgspec

from ..errors import InvalidAction, InvalidJson, TooDeep, TooLarge

__all__ = (
    "MAX_ACTION_BYTES",
    "MAX_DEPTH",
    "MAX_DOCUMENT_BYTES",
    "MAX_DOCUMENT_DEPTH",
    "checked",
    "decoded",
    "encoded",
    "itemized",
    "outlined",
    "utf8",
)

MAX_ACTION_BYTES = 16 * 2**20
"""The largest action, in bytes of UTF-8."""

MAX_DOCUMENT_BYTES = 256 * 2**20
"""The largest session state or list of messages, in bytes of UTF-8."""

MAX_DEPTH = 200
"""How deep brackets may nest in an action."""

MAX_DOCUMENT_DEPTH = 600
"""How deep brackets may nest in a state or in messages, where every nested run adds five levels."""

T = TypeVar("T")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEITHER_QUOTES_NOR_BRACKETS = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*\\[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_BYTE = re.compile(r"(.*?) ?\(byte (\d+)\)")
_AT = re.compile(r"(.*) - at `(.*)`", re.DOTALL)
_OUT_OF_RANGE = "out of range"
_GAP = re.compile(r"[ \t\r\n]*[{,:]?[ \t\r\n]*")
_ITEM_GAP = re.compile(r"[ \t\r\n]*[\[,]?[ \t\r\n]*")
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)
_FREE_KINDS: tuple[object, ...] = (Any, dict[str, Any])
_FREE_FIELDS = frozenset(("input", "output", "providerMetadata"))


def utf8(text: str) -> bytes:
    """JSON text as UTF-8; a raw lone surrogate in it, which UTF-8 cannot hold, as its ``\\udXXX`` escape.

    Raises InvalidJson for one that stands behind a backslash, where the escape would be read as something else.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        if _ESCAPED_SURROGATE.search(text):
            raise InvalidJson("half a surrogate pair is no escape") from None
        return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text).encode()


def checked(data: bytes | str, what: str, max_bytes: int, max_depth: int) -> bytes:
    """The text as bytes, once its size, its depth and its UTF-8 are known to be good: before anything is read.

    A byte order mark belongs to a file, not to JSON (RFC 8259, 8.1): ``read_jsonl`` skips it, here it is refused.
    """
    if len(data) > max_bytes:
        raise TooLarge(what, len(data), max_bytes)
    if isinstance(data, str):
        data = utf8(data)
        if len(data) > max_bytes:
            raise TooLarge(what, len(data), max_bytes)
    elif not data.isascii():
        # msgspec skips unknown fields without looking at their bytes.
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise InvalidJson("the bytes are not UTF-8", error.start) from None
    if data.startswith(_BYTE_ORDER_MARK):
        raise InvalidJson("it starts with a byte order mark; save it without one", 0)
    if data.count(b"[") + data.count(b"{") > max_depth and _depth(data) > max_depth:
        raise TooDeep(what, max_depth)
    return data


def _depth(data: bytes) -> int:
    """How deep brackets nest outside of strings."""
    # Whole passes over the bytes, which cost a fraction of a pattern for strings. Without escapes, every quote begins
    # a string or ends one; two in a row, with no bracket between, change nothing for what follows.
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    quoted = data.translate(None, _NEITHER_QUOTES_NOR_BRACKETS).replace(b'""', b"")
    brackets = b"".join(quoted.split(b'"')[::2]).translate(_STEPS)
    return max(accumulate(memoryview(brackets).cast("b")), default=0)


def decoded(decoder: msgspec.json.Decoder[T], data: bytes, what: str, max_depth: int) -> T:
    """A typed value from checked bytes. Raises InvalidJson, InvalidAction, TooDeep."""
    try:
        try:
            return decoder.decode(data)
        except msgspec.ValidationError as error:
            if _OUT_OF_RANGE not in str(error):
                _refuse(error, what)
        except msgspec.DecodeError as error:
            if _SURROGATE_ESCAPE.search(data) is None:
                raise _malformed(str(error)) from None
        # Half a surrogate pair, or a number that msgspec does not read and Python may.
        return _exactly(cast("type[T]", decoder.type), data, what)
    except RecursionError:
        # The limit was kept, but the caller's own stack has left too little room.
        raise TooDeep(what, max_depth) from None


def outlined(decoder: msgspec.json.Decoder[T], data: bytes, what: str, max_depth: int) -> T:
    """A struct of undecoded members (``Raw``) from checked bytes, each as it is written there.

    msgspec looks into the strings that it passes over, so a lone surrogate needs the exact path here too.
    Raises InvalidJson, InvalidAction, TooDeep.
    """
    if _SURROGATE_ESCAPE.search(data) is None:
        return decoded(decoder, data, what, max_depth)
    try:
        document, _ = _parsed(data)
        members = _members(data.decode()) if isinstance(document, dict) else document
        return msgspec.convert(members, cast("type[T]", decoder.type))
    except msgspec.ValidationError as error:
        _refuse(error, what)
    except RecursionError:
        raise TooDeep(what, max_depth) from None


def itemized(data: bytes, what: str, max_depth: int) -> list[msgspec.Raw]:
    """The undecoded items of an array (``Raw``) from checked bytes. Raises InvalidJson, InvalidAction, TooDeep."""
    if _SURROGATE_ESCAPE.search(data) is None:
        return decoded(_ITEMS, data, what, max_depth)
    try:
        document, _ = _parsed(data)
        return list(_elements(data.decode())) if isinstance(document, list) else decoded(_ITEMS, data, what, max_depth)
    except RecursionError:
        raise TooDeep(what, max_depth) from None


_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


def _elements(text: str) -> Iterator[msgspec.Raw]:
    """The items of a well-formed array, undecoded."""
    at = _after_gap(text, 0, _ITEM_GAP)
    while text[at] != "]":
        _, end = _SCANNER.raw_decode(text, at)
        yield msgspec.Raw(text[at:end].encode())
        at = _after_gap(text, end, _ITEM_GAP)


def _members(text: str) -> dict[str, msgspec.Raw]:
    """The members of a well-formed object, undecoded; one whose name has a lone surrogate is nobody's field."""
    members: dict[str, msgspec.Raw] = {}
    at = _after_gap(text, 0)
    while text[at] != "}":
        name, at = _SCANNER.raw_decode(text, at)
        start = _after_gap(text, at)
        _, end = _SCANNER.raw_decode(text, start)
        if _SURROGATE.search(name) is None:
            members[name] = msgspec.Raw(text[start:end].encode())
        at = _after_gap(text, end)
    return members


def _after_gap(text: str, at: int, kind: re.Pattern[str] = _GAP) -> int:
    gap = kind.match(text, at)
    return gap.end() if gap else at


def _malformed(reason: str) -> InvalidJson:
    found = _BYTE.fullmatch(reason.removeprefix("JSON is malformed: "))
    return InvalidJson(found[1], int(found[2])) if found else InvalidJson(reason[0].lower() + reason[1:])


def _exactly(kind: type[T], data: bytes, what: str) -> T:
    document, has_unheld = _parsed(data)
    if kind not in _FREE_KINDS:
        _drop_unwritable_keys(document)
    try:
        value = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        _refuse(error, what)
    except UnicodeEncodeError:
        raise InvalidAction(what, "half a surrogate pair stands where only fixed words may") from None
    if has_unheld:
        msgspec.to_builtins(value, enc_hook=_refuse_unheld)
    return value


class _Unheld:
    """A number that Python does not hold, in its place in a parsed document.

    Only what is kept may be refused. For msgspec this is no JSON: it goes with an unknown field, a field of any
    type refuses it, with its path and with the name of this class, and in a free field it can be found.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


_Unheld.__name__ = "number out of range"


def _refuse_unheld(number: _Unheld) -> NoReturn:
    raise InvalidJson(number.reason)


def _parsed(data: bytes) -> tuple[object, bool]:
    """The document as the standard library reads it, and whether there is an ``_Unheld`` in it."""
    unheld: list[_Unheld] = []

    def read_float(digits: str) -> object:
        number = float(digits)
        return number if isfinite(number) else mark(f"the number {digits[:40]} is out of range")

    def read_int(digits: str) -> object:
        try:
            return int(digits)
        except ValueError:
            return mark("an integer has more digits than Python reads")

    def mark(reason: str) -> object:
        unheld.append(_Unheld(reason))
        return unheld[-1]

    text = data.decode()
    try:
        document = json.loads(text, parse_constant=_no_constant, parse_float=read_float, parse_int=read_int)
    except json.JSONDecodeError as error:
        raise InvalidJson(error.msg, len(utf8(text[: error.pos]))) from None
    return document, bool(unheld)


def _no_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is no JSON")


def _drop_unwritable_keys(document: object) -> None:
    # msgspec cannot look up a field name with a lone surrogate in it. No field has one, so such a key is an
    # unknown field and may go; inside the fields that hold free JSON every key stays.
    stack = [document]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, object]", item)
            for key in [key for key in fields if _SURROGATE.search(key)]:
                del fields[key]
            stack.extend(value for key, value in fields.items() if key not in _FREE_FIELDS)
        elif isinstance(item, list):
            stack.extend(cast("list[object]", item))


def _refuse(error: msgspec.ValidationError, what: str) -> NoReturn:
    found = _AT.fullmatch(str(error))
    reason, path = (found[1], found[2]) if found else (str(error), "$")
    raise InvalidAction(what, reason[0].lower() + reason[1:], path) from None


_ENCODER = msgspec.json.Encoder()


def encoded(value: Any, what: str, max_depth: int) -> bytes:
    """JSON of a value whose free fields are known to be JSON. Raises TooDeep."""
    try:
        try:
            return _ENCODER.encode(value)
        except UnicodeEncodeError:
            plain = msgspec.to_builtins(value)
            return utf8(json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    except RecursionError:
        raise TooDeep(what, max_depth) from None
