"""Real conversations, there and back: 24 dialogues of a person, a model and its tools, as OpenAI messages.

They are read where they lie, beside the project, and are no part of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from protocol_logs import calls_of, logged

from talkfold.actions import SessionAction
from talkfold.codec import encode_logged
from talkfold.fold import fold
from talkfold.healing import heal
from talkfold.log import Entry
from talkfold.model import SessionState
from talkfold.protocols.anthropic_messages import check_anthropic, to_anthropic
from talkfold.protocols.native import SessionHeader, encode_header, read_sessions
from talkfold.protocols.openai_chat import check_openai_chat, from_openai_chat, to_openai_chat
from talkfold.protocols.system_prompt import system_prompts
from talkfold.resumable import resumable

FILE = Path(__file__).resolve().parents[3] / "shared" / "data" / "airline.jsonl"

pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the real conversations (../shared/data/airline.jsonl) are not on this machine"
)

Message = dict[str, Any]
CONVERSATIONS: list[dict[str, Any]] = (
    [json.loads(line) for line in FILE.read_text("utf-8").splitlines()] if FILE.is_file() else []
)
each = pytest.mark.parametrize("messages", [c["messages"] for c in CONVERSATIONS], ids=[c["id"] for c in CONVERSATIONS])


# ---- what differs between an original and its export, and why: this table and nothing else ------------------


def with_ids_of_their_own(messages: list[Message]) -> list[Message]:
    """The model used some call ids again later in its conversation; an export gives the later calls a number.

    Providers that pair by id alone (Anthropic, and gateways to it) refuse an id that comes twice.
    """
    times: dict[str, int] = {}

    def spelled(call_id: str) -> str:
        return call_id if times[call_id] == 1 else f"{call_id}-{times[call_id]}"

    out: list[Message] = []
    for message in messages:
        made = []
        for call in message.get("tool_calls") or ():
            times[call["id"]] = times.get(call["id"], 0) + 1
            made.append({**call, "id": spelled(call["id"])})
        if made:
            message = {**message, "tool_calls": made}
        if message["role"] == "tool":
            message = {**message, "tool_call_id": spelled(message["tool_call_id"])}
        out.append(message)
    return out


def without_tool_name(messages: list[Message]) -> list[Message]:
    """A tool message repeats the name of the tool that its call names already; the API has no such field."""
    named = {call["id"]: call["function"]["name"] for m in messages for call in m.get("tool_calls") or ()}
    assert all(named[m["tool_call_id"]] == m["name"] for m in messages if m["role"] == "tool")
    return [{k: v for k, v in m.items() if not (m["role"] == "tool" and k == "name")} for m in messages]


NORMALISATIONS: tuple[Callable[[list[Message]], list[Message]], ...] = (with_ids_of_their_own, without_tool_name)


def normalised(messages: list[Message]) -> list[Message]:
    for normalisation in NORMALISATIONS:
        messages = normalisation(messages)
    return messages


# ---- the tests --------------------------------------------------------------------------------------------


def actions_of(messages: list[Message]) -> list[SessionAction]:
    return [entry.action for entry in from_openai_chat(messages).entries if not isinstance(entry.action, bytes)]


def prefixes(messages: list[Message]) -> Iterator[SessionState]:
    actions = actions_of(messages)
    return (fold(actions[:number]) for number in range(1, len(actions) + 1))


def test_there_are_as_many_as_the_folder_says() -> None:
    assert len(CONVERSATIONS) == 24


@each
def test_the_export_equals_the_original(messages: list[Message]) -> None:
    imported = from_openai_chat(messages)
    assert imported.notes == ()
    exported = to_openai_chat(fold(actions_of(messages)).messages, system=system_prompts(imported.metadata))
    assert exported.messages == normalised(messages)
    assert check_openai_chat(exported.messages) == ()


@each
def test_only_reused_ids_are_healed_and_each_is_told(messages: list[Message]) -> None:
    ids = [call["id"] for m in messages for call in m.get("tool_calls") or ()]
    healed = to_openai_chat(fold(actions_of(messages)).messages).healed
    assert [found.code for found in healed] == ["reused-id"] * (len(ids) - len(set(ids)))


@each
def test_without_the_table_only_names_and_ids_differ(messages: list[Message]) -> None:
    imported = from_openai_chat(messages)
    exported = to_openai_chat(fold(actions_of(messages)).messages, system=imported.system).messages

    def bare(row: list[Message]) -> list[tuple[Any, ...]]:
        return [(m["role"], m["content"], [call["function"] for call in m.get("tool_calls") or ()]) for m in row]

    assert bare(exported) == bare(messages)


@each
def test_the_conversation_rests_and_no_call_is_open(messages: list[Message]) -> None:
    state = fold(actions_of(messages))
    assert state.status == "idle"
    assert state.error is None
    assert {call.state for call in calls_of(state.messages)} <= {"done"}


@each
def test_anthropic_takes_it_with_every_word_and_call(messages: list[Message]) -> None:
    imported = from_openai_chat(messages)
    exported = to_anthropic(fold(actions_of(messages)).messages, system=imported.system)
    assert check_anthropic(exported.request) == ()
    assert exported.system == messages[0]["content"]
    blocks = [block for message in exported.messages for block in message["content"]]
    said = [m["content"] for m in messages if m["role"] in ("user", "assistant") and m["content"]]
    assert [b["text"] for b in blocks if b["type"] == "text"] == said
    originals = [call["function"] for m in messages for call in m.get("tool_calls") or ()]
    assert [(b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"] == [
        (f["name"], json.loads(f["arguments"])) for f in originals
    ]
    results = [m["content"] for m in messages if m["role"] == "tool"]
    assert [b.get("content", "") for b in blocks if b["type"] == "tool_result"] == results
    assert {found.code for found in exported.healed} <= {"reused-id"}


@each
def test_wherever_a_run_stops_a_provider_takes_what_is_left(messages: list[Message]) -> None:
    for state in prefixes(messages):
        for row in (state.messages, resumable(state.messages)):
            healed = heal(row)
            assert heal(healed.messages).healed == ()
            chat = to_openai_chat(row, system=messages[0]["content"])
            assert check_openai_chat(chat.messages) == ()
            beside = to_anthropic(row, system=messages[0]["content"])
            assert check_anthropic(beside.request) == ()
            answered = [m["tool_call_id"] for m in chat.messages if m["role"] == "tool"]
            assert len(answered) == len(set(answered)) == len(calls_of(row))


@each
def test_a_native_file_brings_the_same_log_back(messages: list[Message]) -> None:
    imported = from_openai_chat(messages)
    rows = logged("s", list(imported.entries))
    header = SessionHeader("s", metadata=imported.metadata, number=len(rows), digest=(rows[-1].hash or b"").hex())
    file = b"\n".join([encode_header(header), *map(encode_logged, rows)])
    (session,) = read_sessions(file)
    assert session == type(session)(header, tuple(Entry(r.body, r.time, r.run, r.actor, r.meta) for r in rows))
