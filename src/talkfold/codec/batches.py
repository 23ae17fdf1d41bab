"""What is sent to be logged, in one piece: one action, an array of them, or JSON lines.

Each item is a bare action, ``{"type": …}``, or one with an envelope, ``{"action": {…}, "meta": {…}, …}``. Paths in
errors start at the whole piece: ``$[3].part.type`` is in the fourth item.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ..errors import InvalidAction, TooLarge
from ..log import Entry
from .actions import canonical_body
from .envelope import read_meta, read_text, read_time
from .lines import MAX_LINE_BYTES
from .text import MAX_DEPTH, MAX_DOCUMENT_BYTES, checked, itemized, outlined

__all__ = ("decode_batch", "decode_batch_lines")

_WHAT = "action"
_DEPTH = MAX_DEPTH + 2  # the array around it, and its envelope


class _Item(Struct):
    type: Raw | UnsetType = UNSET
    action: Raw | UnsetType = UNSET
    time: Raw | UnsetType = UNSET
    run: Raw | UnsetType = UNSET
    actor: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = UNSET


_ITEM = msgspec.json.Decoder(_Item)


def decode_batch(data: bytes, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> list[Entry]:
    """One action or an array of actions, each with or without an envelope, from JSON. The bodies stay as they came.

    Raises TooLarge, TooDeep, InvalidJson, InvalidAction.
    """
    data = checked(data, _WHAT, max_bytes, _DEPTH).strip(b" \t\r\n")
    if not data.startswith(b"["):
        return [_entry(data, "$")]
    return [_entry(bytes(item), f"$[{index}]") for index, item in enumerate(itemized(data, _WHAT, _DEPTH))]


def decode_batch_lines(data: bytes, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> list[Entry]:
    """The same from JSON lines; blank ones are skipped, the last needs no line end. Items count without them."""
    if len(data) > max_bytes:
        raise TooLarge(_WHAT, len(data), max_bytes)
    lines = [line for each in data.split(b"\n") if (line := each.strip(b" \t\r"))]
    return [_entry(line, f"$[{index}]") for index, line in enumerate(lines)]


def _entry(data: bytes, path: str) -> Entry:
    try:
        if b'"action"' in data:
            checked_data = checked(data, _WHAT, MAX_LINE_BYTES, MAX_DEPTH + 1)
            item = outlined(_ITEM, checked_data, _WHAT, MAX_DEPTH + 1)
            if item.action is not UNSET and item.type is UNSET:
                return _enveloped(item, item.action)
        return Entry(canonical_body(data)[1])
    except InvalidAction as error:
        raise InvalidAction(error.what, error.reason, path + error.path.removeprefix("$")) from None


def _enveloped(item: _Item, action: Raw) -> Entry:
    try:
        _, body = canonical_body(bytes(action))
    except InvalidAction as error:
        raise InvalidAction(error.what, error.reason, "$.action" + error.path.removeprefix("$")) from None
    return Entry(
        body,
        time=None if item.time is UNSET else read_time(item.time, "$.time"),
        run=None if item.run is UNSET else read_text(item.run, "$.run"),
        actor=None if item.actor is UNSET else read_text(item.actor, "$.actor"),
        meta=None if item.meta is UNSET else read_meta(item.meta, "$.meta"),
    )
