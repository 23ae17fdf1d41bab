"""Healing: every call once, with exactly one outcome, whatever the log holds."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from protocol_logs import calls_of, logs

from talkfold.actions import SessionAction
from talkfold.fold import fold
from talkfold.healing import FAILED_SILENTLY, NEUTRAL, NO_RESULT, Rules, heal
from talkfold.model import UNSET, AgentMessage, ReasoningPart, TextPart, ToolPart
from talkfold.protocols.anthropic_messages import ANTHROPIC
from talkfold.protocols.openai_chat import OPENAI

ALL_RULES = pytest.mark.parametrize("rules", [NEUTRAL, OPENAI, ANTHROPIC], ids=["neutral", "openai", "anthropic"])


def one(part: ToolPart) -> tuple[AgentMessage, ...]:
    return (AgentMessage("u", "user", (TextPart("hi"),)), AgentMessage("a", "assistant", (part,)))


def call(call_id: str = "c", **fields: Any) -> ToolPart:
    return ToolPart(**{"id": call_id, "name": "t", "input": {}, "state": "done", "output": {"content": []}, **fields})


@pytest.mark.parametrize(
    ("part", "outcome", "codes"),
    [
        (call(state="running", output=UNSET), ("cancelled", UNSET, NO_RESULT), ["open-call"]),
        (
            call(state="awaiting-confirmation", output=UNSET, prompt="Press it"),
            ("cancelled", UNSET, NO_RESULT),
            ["open-call"],
        ),
        (call(state="cancelled", output=UNSET), ("cancelled", UNSET, NO_RESULT), ["cancelled-call"]),
        (
            call(state="cancelled", output=UNSET, error="Error [cancelled] Shop closed."),
            ("cancelled", UNSET, "Error [cancelled] Shop closed."),
            [],
        ),
        (call(state="error", output=UNSET, error="no"), ("error", UNSET, "no"), []),
        (call(state="error", output=UNSET, error=""), ("error", UNSET, FAILED_SILENTLY), ["no-error-text"]),
        (call(output=None), ("done", None, None), []),
        (call(output=UNSET), ("done", {"content": []}, None), ["no-output"]),
    ],
)
def test_every_state_of_a_call_gets_its_one_outcome(part: ToolPart, outcome: tuple[Any, ...], codes: list[str]) -> None:
    healing = heal(one(part))
    (healed,) = calls_of(healing.messages)
    assert (healed.state, healed.output, healed.error) == outcome
    assert healed.prompt is None
    assert [found.code for found in healing.healed] == codes
    assert all((found.message_id, found.call_id) == ("a", "c") for found in healing.healed)


def test_the_neutral_outcome_blames_nobody() -> None:
    for text in (NO_RESULT, FAILED_SILENTLY):
        assert "user" not in text.lower()
        assert "cancel" not in text.lower()


def renamed(ids: list[str], rules: Rules = NEUTRAL) -> list[tuple[str, str | None]]:
    healing = heal((AgentMessage("a", "assistant", tuple(map(call, ids))),), rules)
    why = iter(found.code for found in healing.healed)
    return [
        (part.id, None if part.id == came else next(why))
        for part, came in zip(calls_of(healing.messages), ids, strict=True)
    ]


def test_the_first_call_with_an_id_keeps_it_and_the_next_get_numbers() -> None:
    assert renamed(["c", "c", "d", "c"]) == [
        ("c", None),
        ("c-2", "reused-id"),
        ("d", None),
        ("c-3", "reused-id"),
    ]


def test_a_new_id_is_never_one_that_another_call_came_with() -> None:
    assert renamed(["c", "c", "c-2"]) == [("c", None), ("c-3", "reused-id"), ("c-2", None)]


def test_empty_ids_are_given_one() -> None:
    assert renamed(["", "call", ""]) == [("call-2", "empty-id"), ("call", None), ("call-3", "empty-id")]


def test_ids_that_a_provider_refuses() -> None:
    assert renamed(["a|1", "a_1"], ANTHROPIC) == [("a_1-2", "illegal-id"), ("a_1", None)]
    assert renamed(["a|1"], OPENAI) == [("a|1", None)]
    (first, _), (second, _) = renamed(["x" * 41, "x" * 40 + "y"], OPENAI)
    assert first == "x" * 40
    assert second == "x" * 38 + "-2"


def test_many_calls_of_one_id_take_linear_time() -> None:
    # Ten thousand renames that each tried all numbers before would take minutes.
    assert len({given_id for given_id, _ in renamed(["c"] * 10_000)}) == 10_000


def test_tool_names_that_a_provider_refuses() -> None:
    healing = heal(one(call(name="functions.look up")), OPENAI)
    assert calls_of(healing.messages)[0].name == "functions_look_up"
    assert [found.code for found in healing.healed] == ["illegal-name"]
    assert calls_of(heal(one(call(name="z" * 70)), OPENAI).messages)[0].name == "z" * 64
    assert heal(one(call(name="z" * 70)), ANTHROPIC).healed == ()


@pytest.mark.parametrize(
    ("came", "sent"), [("hello", {"input": "hello"}), ([1], {"input": [1]}), (0, {"input": 0}), (None, {}), ("", {})]
)
def test_an_input_that_is_no_object_is_wrapped_where_it_must_be_one(came: Any, sent: Any) -> None:
    healing = heal(one(call(input=came)), ANTHROPIC)
    assert calls_of(healing.messages)[0].input == sent
    assert [found.code for found in healing.healed] == ["input-wrapped"]
    assert heal(one(call(input=came)), OPENAI).healed == ()


def test_lone_halves_become_the_replacement_character_and_pairs_their_character() -> None:
    messages = (
        AgentMessage("u", "user", (TextPart("a\ud83db"),)),
        AgentMessage("a", "assistant", (call(output={"\ud83d\ude00": ["\ude00", 1.0]}),)),
    )
    healing = heal(messages)
    assert healing.messages[0].parts == (TextPart("a\ufffdb"),)
    assert calls_of(healing.messages)[0].output == {"\U0001f600": ["\ufffd", 1.0]}
    assert [(found.code, found.message_id) for found in healing.healed] == [
        ("lone-surrogate", "u"),
        ("lone-surrogate", "a"),
    ]


def test_only_the_persons_words_stand_in_their_messages() -> None:
    healing = heal((AgentMessage("u", "user", (TextPart("hi"), call(), ReasoningPart("hm"))),))
    assert healing.messages == (AgentMessage("u", "user", (TextPart("hi"),)),)
    assert [found.code for found in healing.healed] == ["misplaced-part", "misplaced-part"]


def test_a_sound_conversation_comes_back_as_it_is() -> None:
    messages = one(call())
    healing = heal(messages)
    assert healing.healed == ()
    assert all(after is before for after, before in zip(healing.messages, messages, strict=True))


@ALL_RULES
@given(log=logs)
def test_whatever_the_log_holds_every_call_has_one_id_and_one_outcome(rules: Rules, log: list[SessionAction]) -> None:
    messages = fold(log).messages
    healing = heal(messages, rules)
    before, after = calls_of(messages), calls_of(healing.messages)
    assert len(before) == len(after)
    assert len({part.id for part in after}) == len(after)
    assert all(part.id for part in after)
    for part in after:
        assert (part.output is UNSET) == (part.state != "done")
        assert bool(part.error) == (part.state in ("error", "cancelled"))
    assert [(m.id, m.role) for m in healing.messages] == [(m.id, m.role) for m in messages]


@ALL_RULES
@given(log=logs)
def test_healing_is_idempotent_and_changes_nothing_in_place(rules: Rules, log: list[SessionAction]) -> None:
    messages = fold(log).messages
    copy = deepcopy(messages)
    healing = heal(messages, rules)
    assert messages == copy
    again = heal(healing.messages, rules)
    assert again.healed == ()
    assert all(a is b for a, b in zip(again.messages, healing.messages, strict=True))


@given(log=logs)
def test_what_was_changed_was_said(log: list[SessionAction]) -> None:
    messages = fold(log).messages
    healing = heal(messages, ANTHROPIC)
    told = {found.message_id for found in healing.healed}
    for before, after in zip(messages, healing.messages, strict=True):
        assert after is before or before.id in told
