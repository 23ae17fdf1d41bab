"""What is posted to be logged: bodies as they came, envelopes beside them, and faults told by their place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talkfold import encode_action
from talkfold.codec import decode_batch, decode_batch_lines
from talkfold.errors import InvalidAction, InvalidJson, TalkfoldError, TooDeep, TooLarge
from talkfold.log import Entry
from talkfold.testing.strategies import actions

STOP = b'{"type":"stop"}'


def test_one_action_with_or_without_an_envelope() -> None:
    assert decode_batch(b' {"type": "stop", "why":1}\n') == [Entry(b'{"type": "stop", "why":1}')]
    item = b'{"action":{"type":"stop"},"run":"r","actor":"a","time":"2026-01-31T12:00:00.000Z","meta":{"n":1.50}}'
    assert decode_batch(item) == [Entry(STOP, 1_769_860_800_000, "r", "a", {"n": 1.5})]


@given(st.lists(actions(), max_size=5))
def test_an_array_and_lines_give_every_body_as_it_came(made: list[object]) -> None:
    bodies = [encode_action(each) for each in made]  # type: ignore[arg-type]
    whole = [Entry(each) for each in bodies]
    assert decode_batch(b"[ " + b" ,\n".join(bodies) + b"]") == whole
    assert decode_batch_lines(b"\n\n".join(bodies)) == whole


def test_an_array_with_half_a_surrogate_pair_keeps_its_bytes() -> None:
    said = b'{"type":"send", "id":"u","text":"\\ud83d [,] \\" \xc3\xa9"}'
    assert [entry.action for entry in decode_batch(b"[" + said + b" , " + STOP + b"]")] == [said, STOP]


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b'{"type":"halt"}', "$.type"),
        (b'[{"type":"stop"},{"type":"send","id":1,"text":""}]', "$[1].id"),
        (b'[{"type":"stop"},{"action":{"type":"part","part":{"type":"text"}}}]', "$[1].action.part.type"),
        (b'[{"action":{"type":"stop"},"meta":3}]', "$[0].meta"),
        (b'[{"action":{"type":"stop"},"time":"now"}]', "$[0].time"),
        (b'[{"action":{"type":"stop"},"run":null}]', "$[0].run"),
        (b"[[]]", "$[0]"),
        (b"7", "$"),
    ],
)
def test_a_fault_is_told_by_its_place(data: bytes, path: str) -> None:
    with pytest.raises(InvalidAction) as refused:
        decode_batch(data)
    assert refused.value.path == path


def test_a_line_is_told_by_its_place_among_the_actions() -> None:
    with pytest.raises(InvalidAction) as refused:
        decode_batch_lines(STOP + b"\n\n" + b'{"type":"halt"}')
    assert refused.value.path == "$[1].type"


@pytest.mark.parametrize("data", [b"", b"[", b'[{"type":"stop"}', b"[1 2]", b'["\\ud800", 1 2]', b"\xff", b"[NaN]"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises((InvalidJson, InvalidAction)):
        decode_batch(data)


def test_limits_hold_before_anything_is_read() -> None:
    with pytest.raises(TooLarge):
        decode_batch(b"[" + b",".join([STOP] * 10) + b"]", max_bytes=99)
    with pytest.raises(TooLarge):
        decode_batch_lines(b"\n".join([STOP] * 10), max_bytes=99)
    with pytest.raises(TooDeep):
        decode_batch(b"[" * 100_000 + b"]" * 100_000)


@given(
    st.binary(max_size=60)
    | st.recursive(st.none() | st.text(max_size=3), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_anything_else_is_an_error_of_ours(data: bytes) -> None:
    for decode in (decode_batch, decode_batch_lines):
        try:
            decode(data)
        except TalkfoldError:
            pass
