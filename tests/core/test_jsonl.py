"""Files of lines: bare actions or logged ones, whole, torn by a crash, or damaged."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talkfold import (
    DamagedLine,
    Entry,
    InvalidAction,
    InvalidJson,
    LoggedAction,
    MessageStart,
    NotJsonValue,
    Part,
    Send,
    SessionAction,
    Stop,
    TextDelta,
    TooDeep,
    TooLarge,
    ToolCall,
    ToolResult,
    decode_action,
    encode_action,
)
from talkfold.codec import (
    MAX_ACTION_BYTES,
    MAX_LINE_BYTES,
    JsonLine,
    TornLine,
    decode_logged,
    encode_logged,
    read_jsonl,
)
from talkfold.testing.strategies import actions, json_values, texts

BARE: list[bytes] = [
    b'{"type":"send","id":"u","text":"Ze\xc3\xafn \\ud83d \\" \\u0000"}',
    encode_action(Part(MessageStart("m"))),
    b'{"type": "part", "part": {"type":"tool-call","messageId":"m","id":"c","name":"f",'
    b'"input":[true,null,-1.5e3,{"a":[]}]}}',
    '{"type":"part","part":{"type":"text-delta","messageId":"m","delta":"\U0001f600 é"},"x":{"b":false}}'.encode(),
    b'{"type":"stop"}',
]


def logged(number: int, body: bytes, **envelope: Any) -> LoggedAction:
    return LoggedAction(number, 1_769_860_800_000 + number, decode_action(body), body, bytes(32), **envelope)


LOGGED = [
    encode_logged(logged(number, body, run="r-1", meta={"a": [1.0, "\ud83d"]})) for number, body in enumerate(BARE, 1)
]


def read(data: bytes) -> list[JsonLine | TornLine]:
    """What is read of the bytes; the same as what is read of a file of them."""
    at_once, from_file = _outcome(data), _outcome(io.BytesIO(data))
    if isinstance(at_once, DamagedLine):
        assert isinstance(from_file, DamagedLine)
        assert (from_file.line, str(from_file)) == (at_once.line, str(at_once))
        raise at_once
    assert from_file == at_once
    return at_once


def _outcome(source: bytes | io.BytesIO) -> list[JsonLine | TornLine] | DamagedLine:
    try:
        return list(read_jsonl(source))
    except DamagedLine as error:
        return error


def whole(lines: Iterable[JsonLine | TornLine]) -> list[SessionAction]:
    return [line.action for line in lines if isinstance(line, JsonLine)]


ACTIONS = [decode_action(body) for body in BARE]

# ---- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [BARE, LOGGED], ids=["bare", "logged"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_cut_at_every_byte(rows: list[bytes], end: bytes) -> None:
    """A file that a crash cut short anywhere: all whole lines are read, the rest is told, nothing else happens."""
    data = end.join(rows) + end
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row) + len(end))
    for cut in range(len(data) + 1):
        lines = read(data[:cut])
        complete = sum(start + len(row) <= cut for start, row in zip(starts, rows, strict=False))
        assert whole(lines) == ACTIONS[:complete], cut
        left = data[starts[complete] : cut] if complete < len(rows) else b""
        if left.strip():
            assert lines[complete:] == [TornLine(complete + 1, len(left))], cut
        else:
            assert len(lines) == complete, cut


@pytest.mark.parametrize("nuls", [1, 4096])
def test_zeros_where_the_disk_did_not_get_to(nuls: int) -> None:
    """After a power cut a file may have its length and not its last bytes."""
    data = b"\n".join(BARE[:2]) + b"\n"
    assert read(data + bytes(nuls))[2:] == [TornLine(3, nuls)]
    half = BARE[2][:30] + bytes(nuls)
    assert read(data + half)[2:] == [TornLine(3, len(half))]


@pytest.mark.parametrize("rows", [BARE, LOGGED], ids=["bare", "logged"])
def test_a_line_that_was_cut_before_the_end_is_damage(rows: list[bytes]) -> None:
    for line, row in enumerate(rows, 1):
        for cut in range(1, len(row)):
            damaged = [*rows]
            damaged[line - 1] = row[:cut]
            with pytest.raises(DamagedLine) as caught:
                read(b"\n".join(damaged) + b"\n")
            assert caught.value.line == line


@pytest.mark.parametrize(
    "last",
    [
        b"nope",
        b"]",
        b"}",
        b'{"type":"nope"}',
        b'{"type":"stop"}}',
        b'{"type":"stop"} {',
        b'{"type":stop',
        b'{"type":"st\x01op',
        b'{"type":"stop",,',
        b'{"type" "stop"',
        b'{"a":[1}',
        b'{"a":01',
        b'{"a":"\\x',
        b'{"a":"\xff',
        b'["type"',
        b'"type"',
        b"1",
        b"\xff",
        b"\0{",
    ],
)
def test_a_last_line_that_no_crash_explains_is_damage(last: bytes) -> None:
    data = BARE[0] + b"\n" + last
    with pytest.raises(DamagedLine) as caught:
        read(data)
    assert caught.value.line == 2
    assert caught.value.reason.exit_code == 6


@pytest.mark.parametrize("last", [b'{"type":"', b"\0\0"])
def test_with_a_line_end_it_was_written_so(last: bytes) -> None:
    with pytest.raises(DamagedLine):
        read(BARE[0] + b"\n" + last + b"\n")


def test_what_came_before_the_damage_is_given() -> None:
    lines = read_jsonl(BARE[0] + b"\nnope\n")
    assert whole([next(lines)]) == ACTIONS[:1]
    with pytest.raises(DamagedLine, match="line 2"):
        next(lines)


def test_blank_lines_and_a_byte_order_mark_are_passed_over() -> None:
    data = b"\xef\xbb\xbf\n \t\r\n" + BARE[0] + b"\n\n\n" + b" " + BARE[4] + b"\r\n  "
    assert [(line.line, line.action) for line in read(data) if isinstance(line, JsonLine)] == [
        (3, ACTIONS[0]),
        (6, ACTIONS[4]),
    ]
    assert len(read(data)) == 2
    assert whole(read(b"\xef\xbb\xbf" + BARE[0])) == ACTIONS[:1]
    assert read(b"") == read(b"\n") == read(b"\xef\xbb\xbf") == []


def test_both_kinds_of_lines_with_their_bodies() -> None:
    lines = read(BARE[2] + b"\n" + LOGGED[3])
    assert [line.body for line in lines if isinstance(line, JsonLine)] == [BARE[2], BARE[3]]
    assert [line.logged for line in lines if isinstance(line, JsonLine)] == [None, decode_logged(LOGGED[3])]


def test_an_action_that_mentions_an_action_is_a_bare_one() -> None:
    data = b'{"type":"stop","note":"\\"action\\"","later":{"action":1}}'
    assert read(data) == [JsonLine(1, Stop(), data)]


def test_a_line_that_is_too_long_is_refused_before_it_is_read_whole() -> None:
    class Endless(io.RawIOBase):
        taken = 0

        def readable(self) -> bool:
            return True

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert size >= 0
            self.taken += size
            return b"x" * size

    source = Endless()
    with pytest.raises(DamagedLine) as caught:
        list(read_jsonl(source))  # type: ignore[arg-type]
    assert isinstance(caught.value.reason, TooLarge)
    assert source.taken <= MAX_LINE_BYTES + 2


# ---- one logged line ------------------------------------------------------------------------------------------


@given(
    actions(),
    st.integers(1, 2**63),
    st.integers(-62_135_596_800_000, 253_402_300_799_999),
    st.none() | texts(),
    st.none() | texts(),
    st.none() | st.dictionaries(texts(), json_values(), max_size=3),
    st.none() | st.binary(min_size=32, max_size=32),
)
def test_there_and_back(
    action: SessionAction,
    number: int,
    time: int,
    run: str | None,
    actor: str | None,
    meta: dict[str, Any] | None,
    digest: bytes | None,
) -> None:
    before = LoggedAction(number, time, action, encode_action(action), digest, run, actor, meta)
    line = encode_logged(before)
    assert b"\n" not in line
    after = decode_logged(line)
    assert after == before
    assert encode_logged(after) == line
    assert read(line + b"\n") == [JsonLine(1, action, before.body, after)]


def test_the_form_of_a_line() -> None:
    line = encode_logged(logged(3, BARE[1], actor="ada"))
    assert json.loads(line) == {
        "number": 3,
        "time": "2026-01-31T12:00:00.003Z",
        "actor": "ada",
        "hash": "00" * 32,
        "action": json.loads(BARE[1]),
    }
    assert BARE[1] in line, "verbatim"


def test_the_body_is_verbatim_whatever_is_in_it() -> None:
    body = b'{"later" : 1.50, "type":"stop","a":[ ],"\\ud83d":"\\u0041"}'
    assert decode_logged(encode_logged(logged(1, body))).body == body


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"number": "1"}, "$.number"),
        ({"number": 1.5}, "$.number"),
        ({"time": 3}, "$.time"),
        ({"time": "2026-01-31"}, "$.time"),
        ({"time": "2026-02-30T12:00:00.000Z"}, "$.time"),
        ({"time": "2026-01-31T12:00:00.000+01:00"}, "$.time"),
        ({"hash": "00"}, "$.hash"),
        ({"hash": "ZZ" * 32}, "$.hash"),
        ({"run": 1}, "$.run"),
        ({"actor": []}, "$.actor"),
        ({"meta": []}, "$.meta"),
        ({"action": {"type": "nope"}}, "$.action.type"),
        ({"action": {"type": "part", "part": {"type": "message-start"}}}, "$.action.part"),
        ({"action": 1}, "$.action"),
    ],
)
def test_a_field_of_a_line_that_is_wrong(change: dict[str, Any], path: str) -> None:
    for half in ({}, {"x": "\ud83d"}):
        document = json.loads(encode_logged(logged(1, BARE[4]))) | change | half
        with pytest.raises(InvalidAction) as caught:
            decode_logged(json.dumps(document))
        assert caught.value.path == path


@pytest.mark.parametrize("missing", ["number", "time", "action"])
def test_a_field_of_a_line_that_is_missing(missing: str) -> None:
    document = json.loads(encode_logged(logged(1, BARE[4])))
    del document[missing]
    with pytest.raises(InvalidAction, match=missing):
        decode_logged(json.dumps(document))


def test_limits_and_values() -> None:
    with pytest.raises(TooLarge):
        decode_logged(b"x" * (MAX_LINE_BYTES + 1))
    with pytest.raises(TooLarge):
        decode_logged(b'{"number":1,"time":"","action":{"type":"send","id":"' + b"x" * MAX_ACTION_BYTES + b'"}}')
    with pytest.raises(TooDeep):
        decode_logged(b"[" * 1000)
    with pytest.raises(InvalidJson):
        decode_logged(b'{"number":1,"time":NaN,"action":{}}')
    with pytest.raises(NotJsonValue) as caught:
        encode_logged(logged(1, BARE[4], meta={"a": [float("nan")]}))
    assert caught.value.path == "$.meta.a[0]"
    with pytest.raises(NotJsonValue):
        encode_logged(LoggedAction(1, 10**18, Stop(), BARE[4], None))


def test_an_entry_needs_no_envelope() -> None:
    assert Entry(Stop()) == Entry(Stop(), None, None, None, None)


def test_deep_and_long_actions_fit_into_a_line() -> None:
    value: Any = 1
    for _ in range(198):
        value = [value]
    for action in (
        Part(ToolResult("c", value)),
        Part(ToolCall("m", "c", "f", value)),
        Part(TextDelta("m", "x" * 10**6)),
    ):
        line = encode_logged(LoggedAction(1, 0, action, encode_action(action), None, meta={"deep": value}))
        assert decode_logged(line).action == action
        assert whole(read(line)) == [action]


def test_a_person_may_say_anything() -> None:
    for text in ("", "\n", "\r", "\u2028", '{"type":"stop"}', "\\", "\ud83d"):
        assert whole(read(encode_action(Send("u", text)) + b"\n")) == [Send("u", text)]
