"""Logs for the tests of protocols: whatever a run can leave behind, with few ids so that they collide."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from talkfold.actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from talkfold.codec import encode_action, encode_json
from talkfold.log import Entry, LoggedAction, chain_link, chain_start
from talkfold.model import UNSET, AgentMessage, ToolPart

texts = st.sampled_from(["", " ", "\n", "hello", "Ünï ", "a\x00b", "\ud83d", "\ude00x", "tail  "])
message_ids = st.sampled_from(["m", "n", "o"])
call_ids = st.sampled_from(["", "c", "c-2", "d|1", "d_1", "\ud83d", "x" * 41, "x" * 39])
names = st.sampled_from(["look_up", "delegate_to_clerk", "functions.odd name", "", "y" * 200])
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
inputs = st.just({}) | st.fixed_dictionaries({"q": json_values}) | json_values
blocks = st.sampled_from(
    [
        {"type": "text", "text": "found"},
        {"type": "text", "text": ""},
        {"type": "text", "text": " "},
        {"type": "text"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "image", "mimeType": "image/tiff", "data": "AAAA"},
        {"type": "resource", "resource": {"uri": "x:\ud83d"}},
        "bare",
        7,
    ]
)
outputs = st.one_of(
    st.fixed_dictionaries(
        {"content": st.lists(blocks, max_size=3)},
        optional={"isError": st.booleans(), "structuredContent": json_values},
    ),
    json_values,
)
metadata: st.SearchStrategy[Any] = st.sampled_from(
    [
        UNSET,
        None,
        {"anthropic": {"signature": "sig"}},
        {"anthropic": {"redactedData": "data"}},
        {"anthropic": {"signature": ""}},
        {"openai": {"arguments": '{"q": 1}'}},
        {"openai": {"arguments": '{"a":"\ud83d"}'}},
        {"openai": {"type": "custom"}},
        {"google": {"thoughtSignature": "g"}},
    ]
)

parts = st.one_of(
    st.builds(MessageStart, message_ids),
    st.builds(TextDelta, message_ids, texts),
    st.builds(Reasoning, message_ids, texts, metadata),
    st.builds(ToolCall, message_ids, call_ids, names, inputs, metadata),
    st.builds(ToolResult, call_ids, outputs),
    st.builds(ToolError, call_ids, st.sampled_from(["", "Error [failed] no", "Error [cancelled] by hand"])),
    st.builds(Finish, st.sampled_from(["stop", "aborted"])),
    st.builds(RunError, st.just("lost")),
)
actions: st.SearchStrategy[SessionAction] = st.one_of(
    st.builds(Send, message_ids, texts),
    parts.map(Part),
    parts.map(Part),
    parts.map(Part),
    st.builds(Part, parts, st.sampled_from(["c", "c-2"])),
    st.builds(ToolPhase, names, st.just("awaiting-confirmation"), st.just("Press it")),
    st.just(Stop()),
    st.just(Retry()),
    st.just(Reset()),
)
logs = st.lists(actions, max_size=30)


def calls_of(messages: tuple[AgentMessage, ...]) -> list[ToolPart]:
    """The calls of the conversation's own level, in order."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolPart)]


def logged(session_id: str, entries: list[Entry]) -> list[LoggedAction]:
    """What a store makes of entries: numbers, times, and the hash chain."""
    link, row = chain_start(session_id), list[LoggedAction]()
    for number, entry in enumerate(entries, 1):
        assert not isinstance(entry.action, bytes)
        body, time = encode_action(entry.action), 1_700_000_000_000 + number
        meta = None if entry.meta is None else encode_json(entry.meta)
        link = chain_link(link, number, time, entry.run, entry.actor, meta, body)
        row.append(LoggedAction(number, time, entry.action, body, link, entry.run, entry.actor, entry.meta))
    return row
