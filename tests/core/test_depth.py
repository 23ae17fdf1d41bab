"""How deep a document may nest: what is written is held to the limit by its brackets, exactly, as what is read is."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from talkfold import (
    AgentMessage,
    AgentPart,
    AgentRun,
    ReasoningPart,
    SessionError,
    SessionState,
    Stop,
    TextPart,
    TooDeep,
    ToolPart,
    decode_action,
    decode_messages,
    decode_state,
    encode_messages,
    encode_state,
)
from talkfold.testing.strategies import json_values, messages, states

Messages = tuple[AgentMessage, ...]


def depth(value: Any) -> int:
    """How deep the brackets of a JSON value nest."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def brackets(body: bytes) -> int:
    return depth(json.loads(body))


def refused(when: bool, limit: int) -> AbstractContextManager[Any]:
    return pytest.raises(TooDeep, match=f"deeper than {limit} levels") if when else nullcontext()


def held_to_limits(value: Any, encode: Callable[..., bytes], decode: Callable[..., Any], limits: set[int]) -> None:
    """Both ways: refused exactly when the brackets of the whole text nest deeper than the limit."""
    body = encode(value, max_depth=sys.maxsize)
    deep = brackets(body)
    for limit in {deep - 1, deep, *limits}:
        with refused(deep > limit, limit):
            assert encode(value, max_depth=limit) == body
        with refused(deep > limit, limit):
            decode(body, max_depth=limit)


@st.composite
def nested(draw: st.DrawFn) -> Messages:
    """Messages with runs inside of runs, and in any of them, anywhere, free values of any depth."""
    row: Messages = draw(messages(0, 2))
    for _ in range(draw(st.integers(0, 6))):
        values = json_values(12)
        part = ToolPart("c", "f", draw(values), "done", output=draw(values), agent=AgentRun("x", row))
        parts: tuple[AgentPart, ...] = (part, ReasoningPart("hm", draw(values)))
        row = (*draw(messages(0, 1)), AgentMessage("a", "assistant", parts), *draw(messages(0, 1)))
    return row


EMPTY = AgentMessage("a", "assistant", ())
TEXT = AgentMessage("a", "assistant", (TextPart("[[[{"),))


# ---- what is read -----------------------------------------------------------------------------------------------

SPOILT = st.text(st.sampled_from('[]{}"\\n\n,: é'), max_size=8)
"""Texts that look like the JSON around them."""

VALUES: st.SearchStrategy[Any] = st.recursive(
    SPOILT | st.integers(), lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SPOILT, inner, max_size=4)
)


@given(VALUES, st.sampled_from([None, 0, 1]), st.booleans(), st.sampled_from(["", r"\u005b", r"\\", r"\"[["]))
def test_brackets_inside_of_texts_do_not_count(value: Any, indent: int | None, ascii_: bool, escapes: str) -> None:
    """However a document is spelled, and whether or not a field of it is known."""
    text = json.dumps([value, "escapes"], indent=indent, ensure_ascii=ascii_).replace("escapes", escapes)
    data = f'{{"type":"stop","later":{text}}}'
    deep = depth(json.loads(data))
    assert decode_action(data, max_depth=deep) == Stop()
    with refused(True, deep - 1):
        decode_action(data, max_depth=deep - 1)


# ---- what is written, and read again ----------------------------------------------------------------------------

LIMITS = st.sets(st.integers(0, 40), max_size=4)


@given(nested() | messages(), LIMITS)
@example((), set())
@example((EMPTY,), set())
@example((EMPTY, TEXT), set())
@example((AgentMessage("a", "user", (ToolPart("c", "f", 1, "running", agent=AgentRun("x", ())),)),), set())
@example((AgentMessage("a", "user", (ToolPart("c", "f", 1, "running", agent=AgentRun("x", (EMPTY,))),)),), set())
def test_messages_and_their_runs(row: Messages, limits: set[int]) -> None:
    held_to_limits(row, encode_messages, decode_messages, limits)


@given(states() | nested().map(lambda row: SessionState(row, "idle")), LIMITS)
@example(SessionState((), "error", SessionError("lost", "network")), {0})
@example(SessionState((EMPTY,), "error", SessionError("[[[[")), set())
def test_states(state: SessionState, limits: set[int]) -> None:
    held_to_limits(state, encode_state, decode_state, limits)


@pytest.mark.parametrize("runs", [0, 1, 2, 7])
def test_a_free_value_has_the_room_that_the_runs_around_it_leave(runs: int) -> None:
    """Five brackets a run, as the limit for documents says."""
    value: Any = [[[]]]
    row: Messages = (AgentMessage("a", "assistant", (ToolPart("c", "f", value, "running"),)),)
    for _ in range(runs):
        row = (AgentMessage("a", "assistant", (ToolPart("c", "f", 1, "running", agent=AgentRun("x", row)),)),)
    deep = 4 + 5 * runs + 3
    assert brackets(encode_messages(row, max_depth=deep)) == deep
    with refused(True, deep - 1):
        encode_messages(row, max_depth=deep - 1)
    assert brackets(encode_state(SessionState(row, "idle"), max_depth=deep + 1)) == deep + 1
    with refused(True, deep):
        encode_state(SessionState(row, "idle"), max_depth=deep)
