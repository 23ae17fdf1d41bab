"""JSON in and out: actions, logged lines, states and messages, as exact as JSON allows.

What comes in is checked before it is read (size, depth, UTF-8), what goes out reads back as the same value. Every
refusal is an error of ``talkfold.errors``; a ``RecursionError`` never leaves here.
"""

from __future__ import annotations

from .actions import canonical_body, decode_action, decode_actions, encode_action, encode_actions, iter_actions
from .batches import decode_batch, decode_batch_lines
from .envelope import written_time
from .free import decode_json, encode_document, encode_json
from .lines import (
    MAX_LINE_BYTES,
    JsonLine,
    TornLine,
    decode_line,
    decode_logged,
    encode_logged,
    read_jsonl,
)
from .states import decode_messages, decode_state, encode_messages, encode_state, restore_state
from .text import MAX_ACTION_BYTES, MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH

__all__ = (
    "MAX_ACTION_BYTES",
    "MAX_DEPTH",
    "MAX_DOCUMENT_BYTES",
    "MAX_DOCUMENT_DEPTH",
    "MAX_LINE_BYTES",
    "JsonLine",
    "TornLine",
    "canonical_body",
    "decode_action",
    "decode_actions",
    "decode_batch",
    "decode_batch_lines",
    "decode_json",
    "decode_line",
    "decode_logged",
    "decode_messages",
    "decode_state",
    "encode_action",
    "encode_actions",
    "encode_document",
    "encode_json",
    "encode_logged",
    "encode_messages",
    "encode_state",
    "iter_actions",
    "read_jsonl",
    "restore_state",
    "written_time",
)
