"""JSON there and back: equal in value, in number spelling where it carries meaning, and in the order of keys."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import alike, same, same_messages

from talkfold import (
    MessageStart,
    Part,
    Reasoning,
    Send,
    SessionAction,
    SessionState,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
    ToolResult,
    decode_action,
    decode_messages,
    decode_state,
    encode_action,
    encode_messages,
    encode_state,
)
from talkfold.codec import (
    canonical_body,
    decode_actions,
    decode_json,
    encode_actions,
    encode_json,
    iter_actions,
    restore_state,
)
from talkfold.codec.actions import _PAGE
from talkfold.testing.strategies import actions, json_values, states, wild_logs

pytestmark = pytest.mark.timeout(900)  # the long profile tries twenty times as often


def carrying(value: Any) -> list[SessionAction]:
    """The actions that have a field for any JSON."""
    return [
        Part(ToolCall("m", "c", "f", value)),
        Part(ToolCall("m", "c", "f", {}, value)),
        Part(ToolResult("c", value), "d"),
        Part(Reasoning("m", "hm", value)),
    ]


@given(actions())
def test_actions(action: SessionAction) -> None:
    body = encode_action(action)
    assert alike(decode_action(body), action)
    assert alike(decode_action(body.decode()), action)
    assert canonical_body(body) == (action, body)
    assert b"\n" not in body


@given(json_values())
def test_any_json_in_every_field_for_it(value: Any) -> None:
    for action in carrying(value):
        back = decode_action(encode_action(action))
        assert alike(back, action)
    assert encode_json(decode_json(encode_json(value))) == encode_json(value)


@given(json_values())
def test_what_others_write_is_read(value: Any) -> None:
    """The same value, as the standard library writes it in its ways."""
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=1)):
        action = decode_action(f'{{"type":"part","part":{{"output":{text},"type":"tool-result","id":"c"}}}}')
        assert alike(action, Part(ToolResult("c", value)))


@given(states())
def test_states_and_messages(state: SessionState) -> None:
    body = encode_state(state)
    assert same(decode_state(body), state)
    assert same(decode_state(body.decode()), state)
    assert same(restore_state(body), state)
    assert same_messages(decode_messages(encode_messages(state.messages)), state.messages)
    assert encode_messages(iter(state.messages)) == encode_messages(state.messages)


@given(actions())
def test_the_exact_path_reads_the_same(action: SessionAction) -> None:
    """Half a surrogate pair anywhere sends the text another way; it must not make a difference."""
    body = encode_action(action)
    for unknown in (rb'"\ud83d":1,', rb'"later":{"\udfff":[1.0,"\ud83d"]},', rb'"later":["\ud83d\ude00\ud83d"],'):
        assert alike(decode_action(body.replace(b"{", b"{" + unknown, 1)), action)
        assert decode_actions([body.replace(b"{", b"{" + unknown, 1)]) == [action]


# ---- values that others lose ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1.0",
        "-0.0",
        "1e22",
        "5e-324",
        "9007199254740993",
        "123456789012345678901234567890",
        "-" + "9" * 4300,
        r'"\ud83d"',
        r'"\ude00\ud83d"',
        r'"a\u0000b"',
        '{"b":1,"a":2}',
        '{"":{"__proto__":null}}',
        r'{"\ud83d":{"\ude00":[]}}',
        "[" * 198 + "]" * 198,
        '[{"_meta":{"x":1},"type":"unknown"}]',
        "null",
    ],
)
def test_exact(text: str) -> None:
    body = f'{{"type":"part","part":{{"type":"tool-result","id":"c","output":{text}}}}}'.encode()
    written = encode_action(decode_action(body))
    assert encode_action(decode_action(written)) == written
    assert _spelling(written.decode()) == _spelling(body.decode())


def _spelling(text: str) -> object:
    """What Python's own reader sees, with each number as its kind and value, and keys in order."""

    def number(kind: str) -> Any:
        return lambda digits: (kind, repr(float(digits)) if kind == "float" else digits)

    return json.loads(
        text, parse_int=number("int"), parse_float=number("float"), object_pairs_hook=lambda pairs: ("object", pairs)
    )


def test_a_pair_of_halves_is_its_character() -> None:
    assert decode_action(rb'{"type":"send","id":"u","text":"\ud83d\ude00"}') == Send("u", "\U0001f600")
    assert decode_action(encode_action(Send("u", "\ud83d\ude00"))) == Send("u", "\U0001f600")


@pytest.mark.parametrize("text", ["\ud83d", "a\ude00b", "\udc00\ud800", "\\\\\ud83d", "\0"])
def test_a_raw_half_in_a_str_is_read_as_its_escape(text: str) -> None:
    raw = '{"type":"send","id":"u","text":"' + text.replace("\0", "\\u0000") + '"}'
    assert decode_action(raw) == Send("u", text.replace("\\\\", "\\"))
    action, body = canonical_body(raw)
    assert decode_action(body) == action
    body.decode()


def test_what_is_not_set_is_absent() -> None:
    assert encode_action(Part(MessageStart("m"))) == b'{"type":"part","part":{"type":"message-start","messageId":"m"}}'
    assert json.loads(encode_action(Part(ToolCall("m", "c", "f", None, None))))["part"]["providerMetadata"] is None


# ---- the body that a log keeps -----------------------------------------------------------------------------------


def test_the_body_is_what_came_but_for_white_space() -> None:
    data = b' \r\n{"type" : "send",\n "id":"u","later":{"a":1.50,\r"b":[ ]},"text":"a\\nb" }\n\t'
    action, body = canonical_body(data)
    assert action == Send("u", "a\nb")
    assert body == b'{"type" : "send",  "id":"u","later":{"a":1.50, "b":[ ]},"text":"a\\nb" }'
    assert json.loads(body) == json.loads(data)
    assert canonical_body(body) == (action, body)


@given(actions(), st.sampled_from([None, 0, 2]))
def test_a_body_keeps_unknown_fields(action: SessionAction, indent: int | None) -> None:
    document = json.loads(encode_action(action)) | {"later": {"b": 1.0, "a": [2**70, "\ud83d"]}}
    text = json.dumps(document, indent=indent)
    found, body = canonical_body(text)
    assert found == action
    assert _spelling(body.decode()) == _spelling(text)
    assert not re.search(rb"[\r\n]", body)


# ---- many at once ------------------------------------------------------------------------------------------------


@given(wild_logs())
def test_many_are_what_each_is(log: list[SessionAction]) -> None:
    bodies = [encode_action(action) for action in log]
    assert encode_actions(log) == bodies
    assert encode_actions(tuple(log)) == bodies
    assert decode_actions(bodies) == [decode_action(body) for body in bodies] == log
    assert list(iter_actions(bodies)) == log


def test_more_than_a_page() -> None:
    log: list[SessionAction] = [Part(TextDelta("m", f"{number} Ünï")) for number in range(2 * _PAGE + 7)]
    log[_PAGE] = Send("u", "\ud83d")
    bodies = encode_actions(log)
    assert bodies == [encode_action(action) for action in log]
    assert list(iter_actions(bodies)) == decode_actions(bodies) == log


def test_none_at_all() -> None:
    assert encode_actions([]) == decode_actions([]) == list(iter_actions([])) == []


@pytest.mark.parametrize("bad", [b"", b"{}", b"null", b'{"type":"stop"}}', b'{"type":"stop"},{"type":"stop"}', b"\xff"])
def test_the_one_at_fault_is_named(bad: bytes) -> None:
    """Also when the bodies, put side by side, would read as more or fewer actions."""
    from talkfold import InvalidAction, InvalidJson

    bodies = [encode_action(Stop())] * 3
    bodies[1] = bad
    with pytest.raises((InvalidAction, InvalidJson), match=r"action \[8\]"):
        decode_actions(bodies, 7)
    bodies = [encode_action(Stop())] * (_PAGE + 5)
    bodies[_PAGE + 2] = bad
    with pytest.raises((InvalidAction, InvalidJson), match=rf"action \[{_PAGE + 2}\]"):
        list(iter_actions(bodies))


def test_steps_are_numbers_of_any_kind() -> None:
    for step in (0, 1, 1.0, 2.5, 2**53 + 1, 10**30):
        assert alike(decode_action(encode_action(Part(StepFinish(step)))), Part(StepFinish(step)))
