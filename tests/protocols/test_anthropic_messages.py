"""Anthropic's Messages API: the conversation as a request that the provider takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from protocol_logs import calls_of, logs

from talkfold.actions import SessionAction
from talkfold.fold import fold
from talkfold.healing import FAILED_SILENTLY, NO_RESULT, ProviderExport
from talkfold.model import UNSET, AgentMessage, AgentPart, ReasoningPart, TextPart, ToolPart
from talkfold.protocols.anthropic_messages import check_anthropic, to_anthropic
from talkfold.protocols.system_prompt import SystemPrompt
from talkfold.resumable import resumable

Message = dict[str, Any]
SIGNED = {"anthropic": {"signature": "sig"}}
REDACTED = {"anthropic": {"redactedData": "data"}}


def person(text: str = "hi", message_id: str = "u") -> AgentMessage:
    return AgentMessage(message_id, "user", (TextPart(text),))


def model(*parts: AgentPart, message_id: str = "a") -> AgentMessage:
    return AgentMessage(message_id, "assistant", parts)


def call(call_id: str = "c", **fields: Any) -> ToolPart:
    output = {"content": [{"type": "text", "text": "ok"}]}
    return ToolPart(**{"id": call_id, "name": "t", "input": {}, "state": "done", "output": output, **fields})


def text(value: str) -> Message:
    return {"type": "text", "text": value}


def use(call_id: str = "c") -> Message:
    return {"type": "tool_use", "id": call_id, "name": "t", "input": {}}


def result(call_id: str = "c", content: Any = "ok", **fields: Any) -> Message:
    body = {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}
    return {key: value for key, value in body.items() if value is not None}


def user(*blocks: Message) -> Message:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Message) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def sent(*messages: AgentMessage) -> list[Message]:
    exported = to_anthropic(messages)
    assert check_anthropic(exported.request) == ()
    return exported.messages


def codes(exported: ProviderExport) -> list[str]:
    return [found.code for found in exported.healed]


def test_results_begin_the_message_after_their_calls() -> None:
    thought = ReasoningPart("hm", SIGNED)
    assert sent(
        person(),
        model(TextPart("a"), call("c"), call("d"), thought, call("e"), TextPart("z")),
        person("more"),
    ) == [
        user(text("hi")),
        assistant(text("a"), use("c"), use("d")),
        user(result("c"), result("d")),
        assistant({"type": "thinking", "thinking": "hm", "signature": "sig"}, use("e")),
        user(result("e")),
        assistant(text("z")),
        user(text("more")),
    ]


def test_what_the_person_says_after_a_call_stands_behind_its_result() -> None:
    exported = to_anthropic((person(), model(call()), person("and?", "v")))
    assert exported.messages == [user(text("hi")), assistant(use()), user(result(), text("and?"))]
    assert exported.healed == ()


def test_messages_of_one_role_in_a_row_are_merged_and_told() -> None:
    exported = to_anthropic((person("a"), person("b", "v"), model(TextPart("c")), model(TextPart("d"), message_id="b")))
    assert exported.messages == [user(text("a"), text("b")), assistant(text("c"), text("d"))]
    assert [(found.code, found.message_id) for found in exported.healed] == [
        ("turns-merged", "v"),
        ("turns-merged", "b"),
    ]


def test_an_assistant_that_speaks_first_gets_a_neutral_message_before_it() -> None:
    exported = to_anthropic((model(TextPart("Welcome!")), person()))
    assert [message["role"] for message in exported.messages] == ["user", "assistant", "user"]
    assert check_anthropic(exported.request) == ()
    assert codes(exported) == ["assistant-first"]


def test_only_signed_thinking_goes_back() -> None:
    exported = to_anthropic(
        (
            person(),
            model(
                ReasoningPart("plain"),
                ReasoningPart("foreign", {"openai": {"id": "rs"}, "google": {"thoughtSignature": "g"}}),
                ReasoningPart("", SIGNED),
                ReasoningPart("", REDACTED),
                call(provider_metadata={"google": {"thoughtSignature": "g"}}),
            ),
        )
    )
    assert exported.messages[1] == assistant(
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "data"},
        use(),
    )
    assert codes(exported) == ["unsigned-reasoning", "unsigned-reasoning"]


def test_signed_thinking_is_sent_to_the_letter_or_not_at_all() -> None:
    exported = to_anthropic((person(), model(ReasoningPart("half \ud83d", SIGNED), call())))
    assert exported.messages[1] == assistant(use())
    assert codes(exported) == ["unsigned-reasoning"]


def test_no_message_ends_with_thinking() -> None:
    thought = ReasoningPart("hm", SIGNED)
    exported = to_anthropic((person(), model(TextPart("a"), thought, thought), person("b", "v"), model(thought)))
    assert exported.messages == [user(text("hi")), assistant(text("a")), user(text("b"))]
    assert codes(exported) == ["thinking-at-end"] * 3


def test_thinking_stays_when_the_next_message_of_the_model_goes_on() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    assert sent(person(), model(ReasoningPart("hm", SIGNED)), model(call(), message_id="b"))[1] == assistant(
        thought, use()
    )


def test_blank_texts() -> None:
    exported = to_anthropic((person(" \n"), model(TextPart(""), call(), TextPart(" ")), person("", "v")))
    assert exported.messages == [
        user(text("(no text)")),
        assistant(use()),
        user(result(), text("(no text)")),
    ]
    assert codes(exported) == ["empty-text"] * 4


def test_a_last_text_loses_its_white_space_and_an_earlier_one_keeps_it() -> None:
    exported = to_anthropic((person(), model(TextPart("a ")), person("b", "v"), model(TextPart("c \n"))))
    assert [message["content"][0]["text"] for message in exported.messages] == ["hi", "a ", "b", "c"]
    assert codes(exported) == ["trailing-space"]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (call(state="error", output=UNSET, error="no"), result(content="no", is_error=True)),
        (call(state="running", output=UNSET), result(content=NO_RESULT, is_error=True)),
        (
            call(state="cancelled", output=UNSET, error="Error [cancelled] Shop closed."),
            result(content="Error [cancelled] Shop closed.", is_error=True),
        ),
        (call(output={"content": [], "isError": True}), result(content=FAILED_SILENTLY, is_error=True)),
        (call(output={"content": [text("bad")], "isError": True}), result(content="bad", is_error=True)),
        (call(output={"content": [text("")]}), result(content=None)),
        (call(output=7), result(content="7")),
        (
            call(output={"content": [text("a"), text(""), {"type": "image", "mimeType": "image/png", "data": "AAAA"}]}),
            result(
                content=[
                    text("a"),
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ]
            ),
        ),
        (
            call(output={"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}], "isError": True}),
            result(content='{"type":"image","mimeType":"image/png","data":"AAAA"}', is_error=True),
        ),
        (
            call(output={"content": [{"type": "image", "mimeType": "image/tiff", "data": "AAAA"}]}),
            result(content='{"type":"image","mimeType":"image/tiff","data":"AAAA"}'),
        ),
    ],
)
def test_the_outcome_of_a_call(part: ToolPart, block: Message) -> None:
    assert sent(person(), model(part))[2] == user(block)


@pytest.mark.parametrize("data", ["", "a!b", "A", "AA", "\u00e4AAA", 7, None])
def test_a_picture_without_base64_is_none(data: Any) -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": data}
    exported = to_anthropic((person(), model(call(output={"content": [picture]}))))
    assert exported.messages[2] == user(result(content=json.dumps(picture, ensure_ascii=False, separators=(",", ":"))))
    assert codes(exported) == ["illegal-picture"]
    source = {"type": "base64", "media_type": "image/png", "data": data}
    shown = user(result(content=[{"type": "image", "source": source}]))
    checked = check_anthropic({"messages": [user(text("hi")), assistant(use()), shown]})
    assert [violation.rule for violation in checked] == ["image"]


def test_system_prompts_stand_beside_the_messages() -> None:
    prompts = [SystemPrompt("a"), SystemPrompt(" "), SystemPrompt("b", after="u"), SystemPrompt("c", after="gone")]
    exported = to_anthropic((person(),), system=prompts)
    assert exported.request == {"system": "a\n\nb", "messages": [user(text("hi"))]}
    assert codes(exported) == ["system-left-out", "system-moved"]
    assert to_anthropic((person(),), system="").request == {"messages": [user(text("hi"))]}


def test_a_conversation_without_anything_to_send() -> None:
    exported = to_anthropic((model(), model(ReasoningPart("hm"), message_id="b")))
    assert exported.messages == []
    assert codes(exported) == ["empty-message", "unsigned-reasoning", "empty-message", "nothing-to-send"]
    assert codes(to_anthropic((), system="Be kind.")) == ["nothing-to-send"]


@given(logs)
def test_whatever_the_log_holds_the_export_passes_the_check(log: list[SessionAction]) -> None:
    messages = fold(log).messages
    for row in (messages, resumable(messages)):
        exported = to_anthropic(row, system="Be kind.")
        blocks = [block for message in exported.messages for block in message["content"]]
        violations = check_anthropic(exported.request)
        if blocks:
            assert violations == ()
        else:
            # Only a conversation in which nobody says or calls anything has nothing to send.
            assert [violation.rule for violation in violations] == ["not-empty"]
            assert all(message.role == "assistant" for message in row)
            assert not calls_of(row)
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert uses == results
        assert len(uses) == len(calls_of(row))
        json.dumps(exported.messages, ensure_ascii=False, allow_nan=False).encode()


@given(logs)
def test_nothing_that_was_said_is_lost(log: list[SessionAction]) -> None:
    messages = fold(log).messages
    blocks = [block for message in to_anthropic(messages).messages for block in message["content"]]
    sent = "\x1e".join(block["text"] for block in blocks if block["type"] == "text")
    at = 0
    for text in (p.text.strip() for m in messages for p in m.parts if isinstance(p, TextPart) and p.text.isascii()):
        assert text in sent[at:]
        at = sent.index(text, at) + len(text)


# ---- the checker itself -------------------------------------------------------------------------------------

GOOD = [
    user(text("hi")),
    assistant({"type": "thinking", "thinking": "", "signature": "s"}, text("a "), use("c"), use("d")),
    user(result("d"), result("c", None), text("more")),
    assistant(text("z")),
]


def test_the_checker_takes_what_the_provider_takes() -> None:
    assert check_anthropic({"system": "x", "messages": GOOD}) == ()
    assert check_anthropic({"messages": [{"role": "user", "content": "hi"}]}) == ()


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        (None, "not-empty"),
        ([], "not-empty"),
        (["hi"], "role"),
        ([{"role": "system", "content": "x"}], "role"),
        ([assistant(text("a"))], "alternate"),
        ([user(text("a")), user(text("b"))], "alternate"),
        ([user()], "content"),
        ([{"role": "user"}], "content"),
        ([user(text("\ud83d"))], "unicode"),
        ([user(text(" "))], "blank-text"),
        ([{"role": "user", "content": ""}], "blank-text"),
        ([user(use())], "block"),
        ([user(text("a")), assistant(result())], "block"),
        ([user("a")], "block"),  # type: ignore[arg-type]
        ([user(text("a")), assistant(use())], "call-without-result"),
        ([user(text("a")), assistant(use()), user(text("b"))], "call-without-result"),
        ([user(text("a")), assistant(use()), user(result(), result())], "call-without-result"),
        ([user(text("a")), assistant(use()), user(result(), result("d"))], "result-without-call"),
        ([user(text("a")), assistant(text("b")), user(result())], "result-without-call"),
        ([user(result())], "result-without-call"),
        ([user(text("a")), assistant(use()), user(text("b"), result())], "results-first"),
        ([*GOOD, user(text("a")), assistant(use("c")), user(result("c"))], "id-unique"),
        ([user(text("a")), assistant(use("a.b")), user(result("a.b"))], "id"),
        ([user(text("a")), assistant({**use(), "name": "a b"}), user(result())], "name"),
        ([user(text("a")), assistant({**use(), "input": []}), user(result())], "input"),
        ([user(text("a")), assistant(use()), user(result(content="", is_error=True))], "blank-text"),
        ([user(text("a")), assistant(use()), user(result(content=None, is_error=True))], "error-text"),
        ([user(text("a")), assistant(use()), user(result(content=[use("d")]))], "block"),
        (
            [user(text("a")), assistant(use()), user(result(content=[{"type": "image", "source": {}}], is_error=True))],
            "error-text",
        ),
        (
            [
                user(text("a")),
                assistant(use()),
                user(result(content=[{"type": "image", "source": {"type": "base64", "media_type": "x"}}])),
            ],
            "image",
        ),
        ([user(text("a")), assistant({"type": "thinking", "thinking": "x"}, text("b"))], "signature"),
        ([user(text("a")), assistant({"type": "redacted_thinking"}, text("b"))], "signature"),
        (
            [user(text("a")), assistant({"type": "thinking", "thinking": "x", "signature": "s"}), user(text("b"))],
            "thinking-last",
        ),
        ([user(text("a")), assistant(text("b "))], "trailing-space"),
    ],
)
def test_the_checker_names_the_rule_that_is_broken(messages: Any, rule: str) -> None:
    assert rule in [violation.rule for violation in check_anthropic({"messages": messages})]


@pytest.mark.parametrize("system", ["", " ", None, [], "\ud83d"])
def test_the_checker_looks_at_the_system_prompt(system: Any) -> None:
    (violation,) = check_anthropic({"system": system, "messages": GOOD})
    assert violation.rule in ("system", "unicode")
