"""What is no JSON, no action or too much is refused, with the place and before anything happens."""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from talkfold import (
    AgentMessage,
    AgentRun,
    Finish,
    InvalidAction,
    InvalidJson,
    MessageStart,
    NotJsonValue,
    Part,
    Reasoning,
    ReasoningPart,
    RunError,
    Send,
    SessionState,
    StepFinish,
    Stop,
    TalkfoldError,
    TextDelta,
    TextPart,
    TooDeep,
    TooLarge,
    ToolCall,
    ToolPart,
    ToolPhase,
    ToolResult,
    decode_action,
    decode_messages,
    decode_state,
    encode_action,
    encode_messages,
    encode_state,
)
from talkfold.codec import (
    MAX_ACTION_BYTES,
    MAX_DEPTH,
    MAX_DOCUMENT_BYTES,
    MAX_DOCUMENT_DEPTH,
    canonical_body,
    decode_json,
    encode_actions,
    encode_json,
    restore_state,
)


def result(output: str, unknown: str = "") -> bytes:
    """An action whose output, or whose unknown field, is this text."""
    return f'{{"type":"part","part":{{"type":"tool-result","id":"c","output":{output}}}{unknown}}}'.encode()


# ---- no JSON ------------------------------------------------------------------------------------------------

NO_WORDS = ["NaN", "Infinity", "-Infinity", "'a'", "", "\\"]
NO_JSON = [
    *NO_WORDS,
    "NaN",
    "Infinity",
    "-Infinity",
    "01",
    "+1",
    "1.",
    ".5",
    "'a'",
    "[1,]",
    '{"a":1,}',
    '"\\q"',
    '"a\nb"',
    "",
    "\\",
]


@pytest.mark.parametrize("half", ["", r',"x":"\ud83d"'], ids=["plain", "with half a pair"])
@pytest.mark.parametrize("text", [*NO_JSON, "1e999", "-1e999", "9" * 4301])
def test_no_json_where_a_value_belongs(text: str, half: str) -> None:
    for read in (decode_action, canonical_body):
        with pytest.raises(InvalidJson):
            read(result(text, half))


@pytest.mark.parametrize("half", ["", r',"x":"\ud83d"'], ids=["plain", "with half a pair"])
def test_an_integer_that_python_does_not_read(half: str) -> None:
    with pytest.raises(InvalidJson, match="an integer has more digits than Python reads"):
        decode_action(result("9" * 4301, half))


@pytest.mark.parametrize("half", ["", r',"x":"\ud83d"'], ids=["plain", "with half a pair"])
@pytest.mark.parametrize("text", NO_JSON)
def test_no_json_in_an_unknown_field(text: str, half: str) -> None:
    with pytest.raises(InvalidJson):
        decode_action(result("1", f',"later":{text}{half}'))


@pytest.mark.parametrize("read", [decode_action, canonical_body, decode_json, decode_state, decode_messages])
def test_a_byte_order_mark_is_called_by_its_name(read: Any) -> None:
    for text in (b"\xef\xbb\xbf[]", "\ufeff{}"):
        with pytest.raises(InvalidJson, match="byte order mark; save it without one"):
            read(text)


@pytest.mark.parametrize(
    "data", [b"", b" ", b"{", b'{"type":"stop"', b'{"type":"stop"}{}', b'{"type":"stop"}\0', b"\xef\xbb\xbf{}", b"nope"]
)
def test_no_document(data: bytes) -> None:
    for text in (data, data.decode()):
        for read in (decode_action, canonical_body, decode_json):
            with pytest.raises(InvalidJson):
                read(text)
        for read in (decode_state, decode_messages):  # which may notice first that it would be no state either
            with pytest.raises((InvalidJson, InvalidAction)):
                read(text)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\xbd", b"\xc0\x80", b"\xf5\x80\x80\x80"])
@pytest.mark.parametrize("place", ["known", "unknown", "key"])
def test_bytes_that_are_no_utf8(bad: bytes, place: str) -> None:
    text = {"known": b'"text":"%s"', "unknown": b'"text":"","x":["%s"]', "key": b'"text":"","x%s":1'}[place] % bad
    data = b'{"type":"send","id":"u",' + text + b"}"
    with pytest.raises(InvalidJson, match="UTF-8") as caught:
        decode_action(data)
    assert caught.value.position == data.index(bad)


def test_the_position_is_a_byte() -> None:
    """In characters, it would be another."""
    for half in (b"", rb"\ud83d"):
        data = '{"type":"send","id":"Ünï'.encode() + half + b'","text":?}'
        with pytest.raises(InvalidJson) as caught:
            decode_action(data)
        assert caught.value.position == data.index(b"?")


@pytest.mark.parametrize("raw", ['"\\\ud83d"', '"\\\\\\\ude00"'])
def test_half_a_pair_is_no_escape(raw: str) -> None:
    """As an escape of its own behind the backslash it would be read as quite another text."""
    with pytest.raises(InvalidJson):
        decode_action('{"type":"send","id":"u","text":' + raw + "}")


# ---- no action --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "path", "said"),
    [
        ("[]", "$", "array"),
        ("null", "$", "null"),
        ("{}", "$", "`type`"),
        ('{"type":"nope"}', "$.type", "unknown type 'nope'; known are send, part, toolPhase, stop, retry, reset"),
        ('{"type":"text-delta","messageId":"m","delta":""}', "$.type", "is a stream part"),
        ('{"type":"part"}', "$", "`part`"),
        ('{"type":"part","part":{"type":"nope"}}', "$.part.type", "known are message-start, text-delta, reasoning"),
        ('{"type":"part","part":{"type":"stop"}}', "$.part.type", "unknown type 'stop'"),
        ('{"type":"part","part":{"type":1}}', "$.part.type", "str"),
        ('{"type":"part","part":{"type":"message-start"}}', "$.part", "`messageId`"),
        ('{"type":"part","part":{"type":"message-start","messageId":1}}', "$.part.messageId", "`str`"),
        ('{"type":"part","part":{"type":"finish","reason":"enough"}}', "$.part.reason", "'enough'"),
        ('{"type":"part","part":{"type":"tool-result","id":"c"}}', "$.part", "`output`"),
        ('{"type":"part","part":{"type":"step-finish","step":"1"}}', "$.part.step", "int | float"),
        ('{"type":"part","part":{"type":"finish","reason":"stop"},"within":1}', "$.within", "str"),
        ('{"type":"toolPhase","name":"f","state":"done"}', "$.state", "'done'"),
        ('{"type":"send","id":"u","text":null}', "$.text", "null"),
    ],
)
def test_json_that_is_no_action(data: str, path: str, said: str) -> None:
    for text in (data, data.replace("{", r'{"x":"\ud83d",', 1) if data.startswith('{"') else data):
        with pytest.raises(InvalidAction) as caught:
            decode_action(text)
        assert caught.value.path == path
        assert said in caught.value.reason
        assert path in caught.value.next_step


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ('{"messages":[],"status":"busy"}', "$.status"),
        ('{"messages":[{"id":"a","role":"system","parts":[]}],"status":"idle"}', "$.messages[0].role"),
        (
            '{"messages":[{"id":"a","role":"user","parts":[{"type":"image"}]}],"status":"idle"}',
            "$.messages[0].parts[0].type",
        ),
        ('{"messages":[]}', "$"),
    ],
)
def test_json_that_is_no_state(data: str, path: str) -> None:
    for read in (decode_state, lambda text: restore_state(text.encode())):
        with pytest.raises(InvalidAction) as caught:
            read(data)
        assert caught.value.path == path


# ---- values that JSON cannot hold ---------------------------------------------------------------------------------

CYCLE: list[Any] = []
CYCLE.append(CYCLE)


class Word(str):
    """Looks like a str; would come back as another type."""


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (math.nan, ""),
        ([1, math.inf], "[1]"),
        ({"a": [{"b": -math.inf}]}, ".a[0].b"),
        ((1, 2), ""),
        ({"a": (1,)}, ".a"),
        ({1}, ""),
        (frozenset(), ""),
        (b"bytes", ""),
        ({1: "a"}, ""),
        ({"a": {None: 1}}, ".a"),
        (datetime(2026, 1, 1, tzinfo=UTC), ""),
        (Decimal(1), ""),
        (Word("a"), ""),
        ({Word("a"): 1}, ""),
        (object(), ""),
        ([TextPart("a")], "[0]"),
        (10**5000, ""),
        (1j, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_hold(value: Any, at: str) -> None:
    for action, path in [
        (Part(ToolCall("m", "c", "f", value)), "$.part.input"),
        (Part(ToolCall("m", "c", "f", 1, value)), "$.part.providerMetadata"),
        (Part(ToolResult("c", value)), "$.part.output"),
        (Part(Reasoning("m", "hm", value)), "$.part.providerMetadata"),
    ]:
        for write in (lambda action: encode_action(action), lambda action: encode_actions([Stop(), action])):
            with pytest.raises(NotJsonValue) as caught:
                write(action)
            assert caught.value.path == path + at
    call = ToolPart("c", "f", value, "running")
    nested = ToolPart(
        "d", "delegate_to_x", 1, "running", agent=AgentRun("x", (AgentMessage("n", "assistant", (call,)),))
    )
    for part, path in [
        (call, "parts[1].input"),
        (ToolPart("c", "f", 1, "done", output=value), "parts[1].output"),
        (ToolPart("c", "f", 1, "done", provider_metadata=value), "parts[1].providerMetadata"),
        (ReasoningPart("", value), "parts[1].providerMetadata"),
        (nested, "parts[1].agent.messages[0].parts[0].input"),
    ]:
        messages = (AgentMessage("a", "assistant", (TextPart(""), part)),)
        with pytest.raises(NotJsonValue) as caught:
            encode_messages(messages)
        assert caught.value.path == f"$[0].{path}{at}"
        with pytest.raises(NotJsonValue) as caught:
            encode_state(SessionState(messages, "idle"))
        assert caught.value.path == f"$.messages[0].{path}{at}"
    with pytest.raises(NotJsonValue) as caught:
        encode_json({"k": value}, "metadata")
    assert caught.value.path == f"metadata.k{at}"


def test_a_value_inside_itself() -> None:
    for write in (encode_action, lambda action: encode_actions([action])):
        with pytest.raises(TooDeep):
            write(Part(ToolResult("c", CYCLE)))
    with pytest.raises(TooDeep):
        encode_json(CYCLE)


@pytest.mark.parametrize(
    ("action", "path"),
    [
        (Send(1, "a"), "$.id"),
        (Send("u", b"abc"), "$.text"),
        (Send("u", None), "$.text"),
        (Part(TextDelta("m", datetime(2026, 1, 1, tzinfo=UTC))), "$.part.delta"),
        (Part(TextDelta("m", object())), "$.part.delta"),
        (Part(MessageStart("m"), 7), "$.within"),
        (Part(StepFinish(math.nan)), "$.part.step"),
        (Part(StepFinish(True)), "$.part.step"),
        (Part(StepFinish(Decimal(1))), "$.part.step"),
        (Part(Finish("enough")), "$.part.reason"),
        (Part(Finish(object())), "$.part.reason"),
        (Part(RunError("lost", "other")), "$.part.code"),
        (ToolPhase("f", "done"), "$.state"),
        (ToolPhase("f", "running", 1), "$.prompt"),
        (Part(None), "$.part"),
        (Part({"type": "message-start", "messageId": "m"}), "$.part"),
        ({"type": "stop"}, "$"),
        (None, "$"),
        ("stop", "$"),
    ],
)
def test_a_field_of_the_wrong_type(action: Any, path: str) -> None:
    """Also where it would be written as a string that reads back well, and as something else."""
    for write in (encode_action, lambda action: encode_actions([Stop(), action])):
        with pytest.raises(InvalidAction) as caught:
            write(action)
        assert caught.value.path == path


# ---- too much -------------------------------------------------------------------------------------------------------


def test_the_limits_are_stated() -> None:
    assert (MAX_ACTION_BYTES, MAX_DEPTH) == (16 * 1024 * 1024, 200)
    assert (MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH) == (256 * 1024 * 1024, 600)


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_depth_is_counted_exactly(brackets: str) -> None:
    opened, closed = ('{"a":', "}") if brackets == "{}" else ("[", "]")

    def deep(levels: int) -> str:
        return opened * levels + "1" + closed * levels

    inside = MAX_DEPTH - 2  # the action's own object, and the part's
    strings = '","x":"' + '[{\\"' * 300
    for data in (result(deep(inside)), result(deep(inside)).replace(b'"id":"c', b'"id":"c' + strings.encode())):
        action = decode_action(data)
        assert decode_action(encode_action(action)) == action
    for data in (result(deep(inside + 1)), result("1", f',"later":{deep(MAX_DEPTH)}')):
        for read in (decode_action, canonical_body):
            with pytest.raises(TooDeep) as caught:
                read(data)
            assert caught.value.limit == MAX_DEPTH
    value = decode_json(deep(MAX_DEPTH))
    assert decode_json(encode_json(value)) == value
    with pytest.raises(TooDeep):
        decode_json(deep(MAX_DEPTH + 1))
    with pytest.raises(TooDeep):
        encode_action(Part(ToolResult("c", value)))
    with pytest.raises(TooDeep):
        encode_json([value])


def test_depth_may_be_set() -> None:
    with pytest.raises(TooDeep):
        decode_action(result("[[]]"), max_depth=3)
    assert decode_action(result("[[]]"), max_depth=4) == Part(ToolResult("c", [[]]))
    with pytest.raises(TooDeep):
        encode_action(Part(ToolResult("c", [[]])), max_depth=3)


def test_deep_comes_before_everything_else() -> None:
    """Nothing is read of what nests too deep, whatever else is wrong with it."""
    with pytest.raises(TooDeep):
        decode_action(b"[" * 100_000)
    with pytest.raises(TooDeep):
        decode_state(b'{"messages":' + b"[" * 100_000)


def test_size() -> None:
    body = encode_action(Send("u", "Ünï"))
    assert decode_action(body, max_bytes=len(body)) == decode_action(body.decode(), max_bytes=len(body))
    for call in (
        lambda: decode_action(body, max_bytes=len(body) - 1),
        lambda: decode_action(body.decode(), max_bytes=len(body) - 1),
        lambda: canonical_body(body, max_bytes=len(body) - 1),
        lambda: encode_action(Send("u", "Ünï"), max_bytes=len(body) - 1),
    ):
        with pytest.raises(TooLarge) as caught:
            call()
        assert caught.value.limit == len(body) - 1
    state = SessionState((AgentMessage("u", "user", (TextPart("x" * 100),)),), "idle")
    for call in (
        lambda: encode_state(state, max_bytes=100),
        lambda: encode_messages(state.messages, max_bytes=100),
        lambda: decode_state(encode_state(state), max_bytes=100),
        lambda: decode_messages(encode_messages(state.messages), max_bytes=100),
    ):
        with pytest.raises(TooLarge):
            call()


def test_size_is_looked_at_first() -> None:
    with pytest.raises(TooLarge) as caught:
        decode_action(b"[" * (MAX_ACTION_BYTES + 1))
    assert (caught.value.size, caught.value.limit) == (MAX_ACTION_BYTES + 1, MAX_ACTION_BYTES)
    large = Send("u", "x" * MAX_ACTION_BYTES)
    with pytest.raises(TooLarge):
        encode_action(large)
    with pytest.raises(TooLarge):
        encode_actions([Stop(), large])


def test_no_recursion_error_whatever_the_stack() -> None:
    """With hardly any stack left, a legal document is refused with a clear error, or it is read."""
    value = decode_json("[" * 190 + "]" * 190)
    body = encode_action(Part(ToolResult("c", value)))
    half = body.replace(b'"c"', rb'"\ud83d"')
    state = SessionState((AgentMessage("a", "assistant", (ToolPart("c", "f", value, "running"),)),), "idle")
    written = encode_state(state)
    calls = [
        lambda: decode_action(body),
        lambda: decode_action(half),
        lambda: canonical_body(half),
        lambda: encode_action(decode_action(body)),
        lambda: encode_actions([Part(ToolResult("\ud83d", value))]),
        lambda: decode_state(written),
        lambda: encode_state(state),
        lambda: encode_json(value),
    ]
    outcomes: set[str] = set()

    def deeper(levels: int, call: Any) -> None:
        if levels:
            deeper(levels - 1, call)
            return
        try:
            call()
            outcomes.add("read")
        except TalkfoldError as error:
            outcomes.add(error.code)

    frames = len(_stack())
    for call in calls:
        for left in (400, 250, 150, 100, 60, 40, 25):
            deeper(sys.getrecursionlimit() - frames - left, call)
    assert outcomes == {"read", "too_deep"}


def _stack() -> list[Any]:
    frame, frames = sys._getframe(), []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames
