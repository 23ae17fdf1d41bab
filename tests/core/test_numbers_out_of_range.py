"""Numbers that Python does not hold: refused where a document's meaning is read from, kept where nobody looks.

Half a surrogate pair anywhere in the text sends it another way through the codec. It must make no difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talkfold import InvalidAction, InvalidJson, Stop, TalkfoldError, decode_action, decode_messages, decode_state
from talkfold.codec import (
    canonical_body,
    decode_actions,
    decode_json,
    decode_line,
    decode_logged,
    encode_action,
    encode_messages,
    encode_state,
)
from talkfold.testing.strategies import actions, json_values, messages, states

Read = Callable[[bytes], Any]
Path = tuple[str | int, ...]

HUGE = ("1e400", "-1e400", "9" * 4301, "-" + "9" * 4301, "9" * 400 + ".5", "1" + "0" * 5000 + "E-1")
ORDINARY = ("1e308", "9" * 4300, "9" * 400, "1" + "0" * 5000 + "e-5000", "1e-99999", "-0.0", "7")
WORDS = {"type", "state", "reason", "code", "role", "status"}
"""Fields where only fixed words may stand, and no text with half a pair."""


def kept_verbatim(data: bytes) -> None:
    action, body = canonical_body(data)
    assert body == data
    assert decode_actions([body]) == [action]


def in_a_line(data: bytes) -> None:
    """As a logged action; what is nobody's stands in its envelope too."""
    line = b'{"number":1,"time":"2026-01-31T12:00:00.000Z","action":' + data + b',"later":[1e400,%s]}' % (b"9" * 4301)
    assert decode_line(1, line).body == decode_logged(line).body == data


READERS: list[Read] = [decode_action, kept_verbatim, in_a_line, decode_state, decode_messages, decode_json]


def outcome(read: Read, data: bytes) -> str:
    try:
        read(data)
    except TalkfoldError as error:
        return error.code
    return "read"


# ---- any document ---------------------------------------------------------------------------------------------


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value inside."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inside:
        yield (*path, key)
        yield from places(child, (*path, key))


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


@st.composite
def documents(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A document with such a number at any place, and the same with half a pair at the end of some text."""
    written = st.one_of(actions().map(encode_action), states().map(encode_state), messages().map(encode_messages))
    document = draw(written.map(json.loads) | st.lists(json_values(), min_size=1))
    objects = [path for path in ((), *places(document)) if isinstance(at(document, path), dict)]
    for path in draw(st.lists(st.sampled_from(objects), max_size=2)) if objects else ():
        at(document, path)["later"] = draw(st.sampled_from(({"a": [1, "x"]}, [[2]], "text", 3)))
    if not document:
        document = {"later": None}
    *around, last = draw(st.sampled_from([*places(document)]))
    at(document, tuple(around))[last] = "the number"
    texts = [
        path
        for path in places(document)
        if isinstance(text := at(document, path), str) and text != "the number" and path[-1] not in WORDS
    ]

    digits = draw(st.sampled_from(HUGE + ORDINARY))

    def spelled() -> bytes:
        return json.dumps(document).replace('"the number"', digits).encode()

    plain = spelled()
    if texts and draw(st.integers(0, 3)):
        *around, last = draw(st.sampled_from(texts))
        at(document, tuple(around))[last] += "\ud83d"
    elif isinstance(document, dict):
        document["half"] = "\ud83d"
    return plain, spelled()


@given(documents())
def test_half_a_pair_elsewhere_makes_no_difference(document: tuple[bytes, bytes]) -> None:
    plain, half = document
    for read in READERS:
        assert outcome(read, half) == outcome(read, plain)


# ---- what is right -----------------------------------------------------------------------------------------------

HALF = pytest.mark.parametrize("half", [b"", rb',"half":"\ud83d"'], ids=["plain", "with half a pair"])
EACH = pytest.mark.parametrize("number", HUGE, ids=lambda number: number[:7])


@HALF
@EACH
@pytest.mark.parametrize(
    "text",
    [
        '{"type":"send","id":"u","text":"a","later":%s}',
        '{"later":{"deep":[%s]},"type":"stop"}',
        '{"type":"part","part":{"later":[{"id":%s}],"type":"tool-result","id":"c","output":1.0}}',
        '{"type":"part","within":"d","part":{"type":"text-delta","messageId":"m","delta":"a","output":%s}}',
    ],
)
def test_in_an_unknown_field_it_is_kept(text: str, number: str, half: bytes) -> None:
    data = (text % number).encode()[:-1] + half + b"}"
    assert decode_action(data) == decode_action((text % 0).encode())
    kept_verbatim(data)
    in_a_line(data)


@HALF
@EACH
@pytest.mark.parametrize(
    "text",
    [
        '{"type":"part","part":{"type":"tool-result","id":"c","output":%s}}',
        '{"type":"part","part":{"type":"tool-result","id":"c","output":{"later":[%s]}}}',
        '{"type":"part","part":{"type":"tool-call","messageId":"m","id":"c","name":"f","input":[{"a":%s}]}}',
        '{"type":"part","part":{"type":"reasoning","messageId":"m","text":"hm","providerMetadata":{"a":%s}}}',
    ],
)
def test_in_a_free_field_it_is_no_json(text: str, number: str, half: bytes) -> None:
    data = (text % number).encode()[:-1] + half + b"}"
    for read in (decode_action, kept_verbatim, in_a_line):
        with pytest.raises(InvalidJson, match=r"out of range|more digits than Python reads"):
            read(data)


@HALF
@EACH
def test_in_meta_it_is_no_json(number: str, half: bytes) -> None:
    line = b'{"number":1,"time":"2026-01-31T12:00:00.000Z","action":{"type":"stop"},"meta":{"a":[%s]%s}}'
    assert decode_logged(line % (b"1", half)).action == Stop()
    with pytest.raises(InvalidJson, match=r"out of range|more digits than Python reads"):
        decode_logged(line % (number.encode(), half))


@HALF
@EACH
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"type":"part","part":{"type":"step-finish","step":%s}}', "$.part.step"),
        ('{"type":"part","part":{"type":"message-start","messageId":%s}}', "$.part.messageId"),
        ('{"type":"send","id":"u","text":%s}', "$.text"),
        ('{"type":"toolPhase","name":"f","state":%s}', "$.state"),
        ('{"type":"part","part":%s}', "$.part"),
        ('{"type":%s}', "$.type"),
    ],
)
def test_in_a_field_with_a_type_it_is_refused_there(text: str, path: str, number: str, half: bytes) -> None:
    data = (text % number).encode()[:-1] + half + b"}"
    with pytest.raises(InvalidAction) as caught:
        decode_action(data)
    assert caught.value.path == path
    for read in (kept_verbatim, in_a_line):
        assert outcome(read, data) == "invalid_action"


@EACH
def test_what_it_says_names_what_was_found(number: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        decode_action(f'{{"type":"part","part":{{"type":"step-finish","step":{number}}}}}')
    assert caught.value.reason == "expected `int | float`, got `number out of range`"


@HALF
def test_of_a_key_twice_the_last_counts(half: bytes) -> None:
    data = b'{"type":"part","part":{"type":"tool-result","id":"c","output":{"a":1e400,"a":1}}%s}' % half
    assert decode_action(data) == decode_action(data.replace(b'"a":1e400,', b""))
