"""OpenAI chat messages: what comes in goes out again, and what goes out is what the provider takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_logs import calls_of, logs

from talkfold.actions import MessageStart, Part, Send, SessionAction, Stop, TextDelta, ToolCall, ToolResult
from talkfold.errors import InvalidAction
from talkfold.fold import fold
from talkfold.healing import heal
from talkfold.model import UNSET, AgentMessage, ReasoningPart, SessionState, TextPart, ToolPart
from talkfold.protocols.openai_chat import OpenAIImport, check_openai_chat, from_openai_chat, to_openai_chat
from talkfold.protocols.system_prompt import SystemPrompt, system_prompts
from talkfold.resumable import resumable

Message = dict[str, Any]


def user(text: str = "hi") -> Message:
    return {"role": "user", "content": text}


def calls(*ids: str, content: str | None = None, arguments: str = "{}") -> Message:
    made = [{"id": i, "type": "function", "function": {"name": "t", "arguments": arguments}} for i in ids]
    return {"role": "assistant", "content": content, "tool_calls": made}


def says(text: str | None) -> Message:
    return {"role": "assistant", "content": text}


def result(call_id: str, text: str = "ok") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def folded(imported: OpenAIImport) -> SessionState:
    return fold([entry.action for entry in imported.entries])  # type: ignore[misc]


def round_trip(messages: list[Message]) -> list[Message]:
    imported = from_openai_chat(messages)
    return to_openai_chat(folded(imported).messages, system=system_prompts(imported.metadata)).messages


def note_codes(messages: list[Message]) -> list[str]:
    return [note.code for note in from_openai_chat(messages).notes]


# ---- there and back -----------------------------------------------------------------------------------------


ARGUMENTS = [
    "{}",
    '{"a":1}',
    '{"a": 1}',
    '{"a":1,"a":2}',
    '{ "b":[1.0, -0, 1e2, 123456789012345678901234567890] }',
    '{"é":"\\u00e9"}',
    '{"half":"\\ud83d"}',
    "",
    "not json",
    '{"cut":',
    "NaN",
    '{"a":1e999}',
    '"a string"',
    "[" * 300 + "]" * 300,
    "[" * 5000,
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_arguments_come_back_to_the_letter(arguments: str) -> None:
    messages = [user(), calls("c", arguments=arguments), result("c")]
    assert round_trip(messages) == messages


def test_the_input_is_the_value_of_the_arguments() -> None:
    (part,) = calls_of(folded(from_openai_chat([user(), calls("c", arguments='{ "a":1.0}')])).messages)
    assert json.dumps(part.input) == '{"a": 1.0}'
    assert part.provider_metadata == {"openai": {"arguments": '{ "a":1.0}'}}
    (part,) = calls_of(folded(from_openai_chat([user(), calls("c", arguments='{"a":1}')])).messages)
    assert part.provider_metadata is UNSET


def test_kept_arguments_that_no_longer_mean_the_input_are_not_sent() -> None:
    part = ToolPart(
        "c",
        "t",
        {"card": "***"},
        "done",
        {"content": []},
        provider_metadata={"openai": {"arguments": '{"card": "4111"}'}},
    )
    sent = to_openai_chat((AgentMessage("a", "assistant", (part,)),)).messages
    assert sent[0]["tool_calls"][0]["function"]["arguments"] == '{"card":"***"}'


def test_no_text_and_an_empty_text_are_two_things() -> None:
    messages = [user(), calls("c", content=None), result("c", ""), calls("d", content=""), result("d"), says("")]
    assert round_trip(messages) == messages


def test_messages_are_never_joined_or_cut() -> None:
    messages = [user("a"), user("b"), says("c"), says("d"), calls("e", content="f"), result("e"), says("g")]
    assert round_trip(messages) == messages
    assert [m.id for m in folded(from_openai_chat(messages)).messages] == ["m-1", "m-2", "m-3", "m-4", "m-5", "m-7"]


def test_parallel_calls_get_their_own_results_in_any_order() -> None:
    made = calls("a", "b", "c")
    back = round_trip([user(), made, result("c", "3"), result("a", "1"), result("b", "2")])
    assert back == [user(), made, result("a", "1"), result("b", "2"), result("c", "3")]


def test_system_prompts_go_back_to_their_places() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}], "name": "ops"},
        user(),
        {"role": "developer", "content": "Answer in French."},
        calls("c"),
        result("c"),
        {"role": "system", "content": "Stop soon."},
    ]
    assert round_trip(messages) == messages
    imported = from_openai_chat(messages)
    assert len(folded(imported).messages) == 2
    assert system_prompts(imported.metadata) == imported.system
    assert imported.system[2] == SystemPrompt("Answer in French.", "developer", "m-3")


def test_a_prompt_whose_place_is_gone_is_told() -> None:
    prompts = [SystemPrompt("early"), SystemPrompt("late", after="gone")]
    exported = to_openai_chat((AgentMessage("u", "user", (TextPart("hi"),)),), system=prompts)
    assert exported.messages == [{"role": "system", "content": "early"}, user()]
    assert [found.code for found in exported.healed] == ["system-left-out"]


def test_a_prompt_that_is_not_unicode_is_told() -> None:
    exported = to_openai_chat((), system="half \ud83d")
    assert exported.messages == [{"role": "system", "content": "half \ufffd"}]
    assert [found.code for found in exported.healed] == ["lone-surrogate"]


def test_custom_tools() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    messages = [user(), {"role": "assistant", "content": None, "tool_calls": [custom]}, result("c")]
    assert round_trip(messages) == messages


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Conversations as the API itself would take them, with ids of their own for every call."""
    texts = st.text(max_size=8)
    row: list[Message] = [{"role": "system", "content": draw(texts)}] if draw(st.booleans()) else []
    free = draw(st.permutations([f"call_{n}" for n in range(20)]))
    for kind in draw(st.lists(st.sampled_from(["user", "says", "calls", "system"]), max_size=12)):
        if kind == "user":
            row.append(user(draw(texts)))
        elif kind == "says":
            row.append(says(draw(texts)))
        elif kind == "system":
            row.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(texts)})
        elif len(free) > 3:
            taken, free = free[: (count := draw(st.integers(1, 3)))], free[count:]
            content, arguments = draw(st.none() | texts), draw(st.sampled_from(ARGUMENTS) | texts)
            row.append(calls(*taken, content=content, arguments=arguments))
            row.extend(result(call_id, draw(texts)) for call_id in taken)
    return row


@given(conversations())
def test_every_sound_conversation_comes_back_as_it_was(messages: list[Message]) -> None:
    imported = from_openai_chat(messages)
    state = folded(imported)
    exported = to_openai_chat(state.messages, system=imported.system)
    assert exported.messages == messages
    assert imported.notes == ()
    told = ["empty-text" for message in messages if message == user("")]
    assert [found.code for found in exported.healed] == (told if messages else ["nothing-to-send"])
    assert state.status == "idle"
    assert check_openai_chat(messages) == () or not messages


@given(st.lists(st.sampled_from(["user", "says", "x", "y", "xx", "xy", ">x", ">y"]), max_size=25))
def test_however_calls_and_results_are_mixed_up_the_session_rests_and_can_be_sent(kinds: list[str]) -> None:
    messages: list[Message] = []
    for number, kind in enumerate(kinds):
        if kind in ("user", "says"):
            messages.append(user() if kind == "user" else says("so"))
        else:
            messages.append(result(kind[1], f"r{number}") if kind[0] == ">" else calls(*kind))
    imported = from_openai_chat(messages)
    state = folded(imported)
    assert state.status == "idle"
    assert not {part.state for part in calls_of(state.messages)} & {"running", "awaiting-confirmation"}
    exported = to_openai_chat(state.messages)
    assert check_openai_chat(exported.messages) == () or not messages or kinds == [k for k in kinds if k[0] == ">"]
    # Every result is the outcome of one call, but for those that the notes name.
    lost = sum(note.code in ("result-without-call", "result-again") for note in imported.notes)
    outcomes = [m["content"] for m in exported.messages if m["role"] == "tool" and m["content"].startswith("r")]
    assert len(set(outcomes)) == len(outcomes)
    assert len(outcomes) == sum(kind[0] == ">" for kind in kinds) - lost


# ---- what the API would not take, and old forms -----------------------------------------------------------


def test_a_call_without_a_result_ends_its_turn_with_a_stop() -> None:
    messages = [user(), calls("a", "b"), result("a"), user("and?"), says("Sorry.")]
    imported = from_openai_chat(messages)
    stops = [entry for entry in imported.entries if isinstance(entry.action, Stop)]
    assert [stop.meta for stop in stops] == [{"cause": "import"}]
    assert [(note.code, note.message) for note in imported.notes] == [("call-without-result", 1)]
    state = folded(imported)
    assert state.status == "idle"
    assert [part.state for part in calls_of(state.messages)] == ["done", "cancelled"]
    exported = to_openai_chat(state.messages)
    assert [m["role"] for m in exported.messages] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert check_openai_chat(exported.messages) == ()


def test_a_result_that_comes_after_its_turn_counts() -> None:
    messages = [user(), calls("a"), user("and?"), result("a", "late")]
    assert note_codes(messages) == ["call-without-result", "late-result"]
    assert round_trip(messages) == [user(), calls("a"), result("a", "late"), user("and?")]


def test_a_result_without_a_call_stays_in_the_log_only() -> None:
    messages = [user(), result("x", "lost"), says("Hm.")]
    imported = from_openai_chat(messages)
    assert "lost" in repr(imported.entries)
    assert note_codes(messages) == ["result-without-call"]
    assert round_trip(messages) == [user(), says("Hm.")]


def test_two_open_calls_of_one_id_keep_their_own_results() -> None:
    messages = [user(), calls("x", "x"), result("x", "first"), result("x", "second")]
    assert note_codes(messages) == ["id-in-use"]
    assert round_trip(messages) == [user(), calls("x", "x-2"), result("x", "first"), result("x-2", "second")]


def test_an_id_used_again_once_answered_pairs_by_order() -> None:
    messages = [user(), calls("x"), result("x", "first"), calls("x"), result("x", "second")]
    assert note_codes(messages) == []
    back = round_trip(messages)
    assert back == [user(), calls("x"), result("x", "first"), calls("x-2"), result("x-2", "second")]


def test_content_parts_and_fields_without_a_place_stay_in_meta() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "What"}, picture, {"type": "text", "text": "is it?"}]
    messages = [
        {"role": "user", "content": content, "name": "ann"},
        {"role": "assistant", "content": None, "refusal": "I cannot.", "annotations": []},
        {"role": "user", "content": "Say it."},
        {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "A cat."}},
        calls("c"),
        {**result("c"), "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
    ]
    imported = from_openai_chat(messages)
    metas = [entry.meta for entry in imported.entries if entry.meta]
    assert metas == [
        {"openai": {"content": content, "name": "ann"}},
        {"openai": {"refusal": "I cannot."}},
        {"openai": {"audio": {"id": "a1", "transcript": "A cat."}}},
        {"openai": {"content": messages[5]["content"]}},
    ]
    assert [(note.code, note.message) for note in imported.notes] == [
        ("content-parts", 0),
        ("kept-in-meta", 0),
        ("kept-in-meta", 1),
        ("kept-in-meta", 3),
        ("content-parts", 5),
    ]
    state = folded(imported)
    assert [p.text for m in state.messages for p in m.parts if isinstance(p, TextPart)] == [
        "What\nis it?",
        "I cannot.",
        "Say it.",
        "A cat.",
    ]
    assert calls_of(state.messages)[0].output == {"content": messages[5]["content"]}
    assert to_openai_chat(state.messages).messages[-1] == result("c", "x\ny")


def test_the_old_function_call() -> None:
    messages = [
        user(),
        {"role": "assistant", "content": None, "function_call": {"name": "t", "arguments": "{}"}},
        {"role": "function", "name": "t", "content": "ok"},
    ]
    assert note_codes(messages) == ["legacy-function"]
    assert round_trip(messages) == [user(), calls("m-2-call"), result("m-2-call")]


def test_a_tool_message_may_repeat_the_name_of_its_tool() -> None:
    named = {**result("c"), "name": "t"}
    assert note_codes([user(), calls("c"), named]) == []
    assert note_codes([user(), calls("c"), {**named, "name": "other"}]) == ["kept-in-meta"]


@pytest.mark.parametrize(
    ("messages", "path"),
    [
        (["hi"], "$[0]"),
        ([{"content": "hi"}], "$[0].role"),
        ([{"role": ["user"], "content": "hi"}], "$[0].role"),
        ([{"role": "robot", "content": "hi"}], "$[0].role"),
        ([user(), {"role": "user", "content": None}], "$[1].content"),
        ([{"role": "user", "content": ["hi"]}], "$[0].content[0]"),
        ([{"role": "system", "content": 7}], "$[0].content"),
        ([{"role": "assistant", "content": 7}], "$[0].content"),
        ([{"role": "assistant", "content": "", "tool_calls": {}}], "$[0].tool_calls"),
        ([{"role": "assistant", "tool_calls": ["x"]}], "$[0].tool_calls[0]"),
        ([{"role": "assistant", "tool_calls": [{"id": 1}]}], "$[0].tool_calls[0].id"),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], "$[0].tool_calls[0].function"),
        ([{"role": "assistant", "tool_calls": [{"id": "c", "type": "magic"}]}], "$[0].tool_calls[0].type"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "t", "arguments": {}}}]}],
            "$[0].tool_calls[0].function.arguments",
        ),
        ([{"role": "assistant", "function_call": {"name": "t"}}], "$[0].function_call.arguments"),
        ([user(), {"role": "tool", "content": "x"}], "$[1].tool_call_id"),
        ([{"role": "function", "content": "x"}], "$[0].name"),
    ],
)
def test_what_is_no_message_is_refused_with_its_path(messages: list[Any], path: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        from_openai_chat(messages)
    assert caught.value.path == path


# ---- out ----------------------------------------------------------------------------------------------------


def test_what_follows_a_call_opens_the_next_assistant_message() -> None:
    def done(call_id: str) -> ToolPart:
        return ToolPart(call_id, "t", {}, "done", {"content": [{"type": "text", "text": "ok"}]})

    parts = (TextPart("a"), done("c"), done("d"), ReasoningPart("hm"), TextPart("b"), done("e"), TextPart("z"))
    exported = to_openai_chat((AgentMessage("u", "user", (TextPart("hi"),)), AgentMessage("a", "assistant", parts)))
    assert exported.messages == [
        user(),
        calls("c", "d", content="a"),
        result("c"),
        result("d"),
        calls("e", content="b"),
        result("e"),
        says("z"),
    ]
    assert [found.code for found in exported.healed] == ["reasoning-left-out"]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": [{"type": "image", "data": "AA"}]}, '{"type":"image","data":"AA"}'),
        ({"content": [], "structuredContent": {"n": 1.0}}, '{"n":1.0}'),
        ({"content": [{"type": "text", "text": "a"}], "structuredContent": {"n": 1}}, "a"),
        ({"content": []}, ""),
        ({"content": "odd"}, '{"content":"odd"}'),
        ("plain", "plain"),
        (None, "null"),
        (10**30, "1" + "0" * 30),
    ],
)
def test_an_output_as_text(output: Any, text: str) -> None:
    part = ToolPart("c", "t", {}, "done", output)
    exported = to_openai_chat((AgentMessage("a", "assistant", (part,)),))
    assert exported.messages[1] == result("c", text)


def test_a_message_that_says_nothing_is_left_out_and_told() -> None:
    messages = (
        AgentMessage("u", "user", (TextPart(""),)),
        AgentMessage("a", "assistant", ()),
        AgentMessage("b", "assistant", (ReasoningPart("hm"),)),
    )
    exported = to_openai_chat(messages)
    assert exported.messages == [user("")]
    assert [(found.code, found.message_id) for found in exported.healed] == [
        ("empty-text", "u"),
        ("empty-message", "a"),
        ("reasoning-left-out", "b"),
        ("empty-message", "b"),
    ]


def test_of_a_sub_agents_run_only_the_delegate_call_is_sent() -> None:
    log: list[SessionAction] = [
        Send("u", "hi"),
        Part(MessageStart("a")),
        Part(ToolCall("a", "d", "delegate_to_clerk", {"task": "look"})),
        Part(MessageStart("n"), within="d"),
        Part(TextDelta("n", "nested words"), within="d"),
        Part(ToolCall("n", "c", "look_up", {}), within="d"),
        Part(ToolResult("d", {"content": [{"type": "text", "text": "found"}]})),
    ]
    messages = fold(log).messages
    assert "nested words" in repr(messages)
    function = {"name": "delegate_to_clerk", "arguments": '{"task":"look"}'}
    assert to_openai_chat(messages).messages == [
        user(),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "d", "type": "function", "function": function}]},
        result("d", "found"),
    ]
    assert heal(messages).messages == messages


@given(logs)
def test_whatever_the_log_holds_the_export_passes_the_check(log: list[SessionAction]) -> None:
    messages = fold(log).messages
    for row in (messages, resumable(messages)):
        exported = to_openai_chat(row, system="Be kind.")
        assert check_openai_chat(exported.messages) == ()
        sent = [c["id"] for m in exported.messages for c in m.get("tool_calls", ())]
        answered = [m["tool_call_id"] for m in exported.messages if m["role"] == "tool"]
        assert sent == answered
        assert len(sent) == len(calls_of(row))


@given(logs)
def test_nothing_that_was_said_is_lost(log: list[SessionAction]) -> None:
    messages = fold(log).messages
    sent = "\x1e".join(m["content"] or "" for m in to_openai_chat(messages).messages if m["role"] != "tool")
    at = 0
    for text in (p.text for m in messages for p in m.parts if isinstance(p, TextPart) and p.text.isascii()):
        assert text in sent[at:]
        at = sent.index(text, at) + len(text)


# ---- the checker itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([], "not-empty"),
        (["hi"], "shape"),
        ([{"role": "robot", "content": "x"}], "role"),
        ([{"role": "user", "content": None}], "content"),
        ([user(), says(None)], "content"),
        ([user("\ud83d")], "unicode"),
        ([{**user(), "tool_calls": []}], "shape"),
        ([user(), {"role": "assistant", "content": "x", "tool_calls": []}], "shape"),
        ([user(), {"role": "assistant", "content": None, "tool_calls": ["c"]}], "shape"),
        ([user(), calls("c")], "call-without-result"),
        ([user(), calls("c"), user(), result("c")], "call-without-result"),
        ([user(), calls("c"), user(), result("c")], "result-without-call"),
        ([user(), calls("c"), result("c"), result("c")], "result-without-call"),
        ([user(), result("c")], "result-without-call"),
        ([user(), calls("c"), result("c"), calls("c"), result("c")], "id-unique"),
        ([user(), calls(""), result("")], "id"),
        ([user(), calls("x" * 41), result("x" * 41)], "id"),
        (
            [user(), {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function"}]}],
            "shape",
        ),
        (
            [
                user(),
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "a b", "arguments": ""}}],
                },
                result("c"),
            ],
            "name",
        ),
        (
            [
                user(),
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "t", "arguments": {}}}],
                },
                result("c"),
            ],
            "shape",
        ),
    ],
)
def test_the_checker_names_the_rule_that_is_broken(messages: list[Any], rule: str) -> None:
    assert rule in [violation.rule for violation in check_openai_chat(messages)]


def test_the_checker_takes_what_the_provider_takes() -> None:
    assert check_openai_chat([user(), calls("a", "b", content="x"), result("b"), result("a"), says("z")]) == ()


def test_the_checker_takes_a_request_as_well() -> None:
    assert check_openai_chat({"model": "m", "messages": [user()]}) == ()
    (violation,) = check_openai_chat({"messages": [user(), result("c")]})
    assert (violation.rule, violation.path) == ("result-without-call", "$.messages[1]")
    for nothing in ({}, {"messages": []}, {"messages": "hi"}):
        (violation,) = check_openai_chat(nothing)
        assert (violation.rule, violation.path) == ("not-empty", "$.messages")


def test_a_conversation_without_anything_to_send_is_told() -> None:
    exported = to_openai_chat(())
    assert exported.request == {"messages": []}
    assert [found.code for found in exported.healed] == ["nothing-to-send"]
    assert to_openai_chat((), system="Be kind.").healed == ()


def test_a_message_of_a_picture_alone_is_sent_without_words_and_told() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    imported = from_openai_chat([{"role": "user", "content": [picture]}])
    exported = to_openai_chat(folded(imported).messages)
    assert exported.messages == [user("")]
    assert [found.code for found in exported.healed] == ["empty-text"]
