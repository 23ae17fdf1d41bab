"""Comparing as the wire does: 1, 1.0 and True are three values, and the order of keys counts."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from talkfold.codec import encode_messages, encode_state
from talkfold.codec.text import encoded
from talkfold.model import AgentMessage, SessionState


def same(one: SessionState, other: SessionState) -> bool:
    """Whether two states are equal in Python and on the wire."""
    return one == other and written(one) == written(other)


def written(state: SessionState) -> bytes:
    """The state's JSON, whatever its size."""
    return encode_state(state, max_bytes=sys.maxsize, max_depth=sys.maxsize)


def same_messages(one: Iterable[AgentMessage], other: Iterable[AgentMessage]) -> bool:
    """Whether two rows of messages are equal in Python and on the wire."""
    row, others = tuple(one), tuple(other)
    return row == others and encode_messages(row) == encode_messages(others)


def alike(one: object, other: object) -> bool:
    """Whether two messages or parts are equal in Python and on the wire."""
    return one == other and encoded(one, "one", sys.maxsize) == encoded(other, "other", sys.maxsize)
