"""A tool's output: an MCP result, exact; and what Python values become."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from talkfold import InvalidAction, NotJsonValue, Part, TooDeep, TooLarge, ToolError, ToolResult, encode_action
from talkfold.codec import decode_json
from talkfold.runs import ToolErrorCode, ToolOutput, error_output, output_of, tool_outcome
from talkfold.runs.output import MAX_OUTPUT_BYTES

EXACT = (
    b'{"zeta":1,"_meta":{"b":2,"a":[1.0,10000000000000000000000,-0.0]},"structuredContent":null,'
    b'"content":[{"type":"hologram","data":{"y":1,"x":2}},{"text":"half \\ud83d","type":"text","annotations":{}}],'
    b'"isError":false}'
)
"""A result with a field, a block and numbers that no program knows, and keys in no usual order."""


def test_json_in_and_out_is_the_same_bytes() -> None:
    assert ToolOutput.from_json(EXACT).to_json() == EXACT


def test_the_accessors() -> None:
    output = ToolOutput.from_json(EXACT)
    assert [block["type"] for block in output.content] == ["hologram", "text"]
    assert output.text == "half \ud83d"
    assert output.is_error is False
    assert output.structured_content is None
    assert output.meta["b"] == 2
    plain = ToolOutput({"content": []})
    assert (plain.text, plain.is_error, plain.structured_content, plain.meta) == ("", False, msgspec.UNSET, {})


def test_text_blocks_are_lines() -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "image", "data": "", "mimeType": "x"}]
    assert ToolOutput({"content": [*blocks, {"type": "text", "text": "two"}]}).text == "one\ntwo"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ([], "$"),
        ({}, "$.content"),
        ({"content": "text"}, "$.content"),
        ({"content": [{"type": "text"}, "text"]}, "$.content[1]"),
        ({"content": [{"text": "no type"}]}, "$.content[0]"),
        ({"content": [], "isError": None}, "$.isError"),
        ({"content": [], "_meta": 1}, "$._meta"),
    ],
)
def test_what_is_no_result_is_refused_with_the_path(raw: Any, path: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        ToolOutput(raw)
    assert caught.value.path == path


CODES: tuple[ToolErrorCode, ...] = ("not_found", "invalid_input", "failed", "timeout", "cancelled", "unavailable")


@pytest.mark.parametrize("code", CODES)
def test_an_error_begins_with_its_code(code: ToolErrorCode) -> None:
    output = error_output(code, "the shop is closed")
    assert output.raw == {
        "content": [{"type": "text", "text": f"Error [{code}] the shop is closed"}],
        "isError": True,
    }


class Colour(enum.Enum):
    BLUE = "blue"


class Mug(msgspec.Struct, rename="camel"):
    colour: Colour
    bought_on: date
    note: str | msgspec.UnsetType | None = msgspec.UNSET


@dataclass
class Basket:
    mugs: tuple[Mug, ...]
    total: Decimal


BASKET = Basket((Mug(Colour.BLUE, date(2026, 1, 2)),), Decimal("25.00"))
BASKET_JSON = {"mugs": [{"colour": "blue", "boughtOn": "2026-01-02"}], "total": "25.00"}


class Markup(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (None, {"content": [{"type": "text", "text": ""}]}),
        ("two mugs", {"content": [{"type": "text", "text": "two mugs"}]}),
        (Markup("<b>"), {"content": [{"type": "text", "text": "<b>"}]}),
        (Colour.BLUE, {"content": [{"type": "text", "text": "blue"}]}),
        (3, {"content": [{"type": "text", "text": "3"}], "structuredContent": 3}),
        (True, {"content": [{"type": "text", "text": "true"}], "structuredContent": True}),
        (
            [1, (2.0, None)],
            {"content": [{"type": "text", "text": "[1,[2.0,null]]"}], "structuredContent": [1, [2.0, None]]},
        ),
        (
            {"b": 1, "a": 2},
            {"content": [{"type": "text", "text": '{"b":1,"a":2}'}], "structuredContent": {"b": 1, "a": 2}},
        ),
        # A dict whose content is no list of blocks is the tool's own data.
        (
            {"content": ["x"]},
            {"content": [{"type": "text", "text": '{"content":["x"]}'}], "structuredContent": {"content": ["x"]}},
        ),
    ],
)
def test_what_a_returned_value_becomes(value: object, raw: dict[str, Any]) -> None:
    assert output_of(value).raw == raw


def test_a_struct_or_dataclass_is_a_text_for_the_model_and_data_for_programs() -> None:
    output = output_of(BASKET)
    assert output.structured_content == BASKET_JSON
    assert decode_json(output.text) == BASKET_JSON


def test_a_result_is_taken_as_it_is() -> None:
    raw = decode_json(EXACT)
    assert output_of(raw).to_json() == EXACT
    assert output_of(ToolOutput(raw)).to_json() == EXACT


def test_the_tool_cannot_change_it_afterwards() -> None:
    block = {"type": "text", "text": "one"}
    output = output_of({"content": [block]})
    block["text"] = "two"
    assert output.text == "one"


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        {"price": math.inf},
        {"content": [{"type": "text", "text": "x", "score": math.nan}]},
        Basket((), Decimal(1)).__class__,
        object(),
        b"bytes",
        {"picture": b"bytes"},
        {1: "a key that is no text"},
        lambda: None,
    ],
)
def test_what_json_cannot_hold_is_refused_and_never_turned_into_something_alike(value: object) -> None:
    with pytest.raises(NotJsonValue):
        output_of(value)


def test_a_value_without_end_is_refused() -> None:
    with pytest.raises(TooDeep):
        output_of(_circle())


def _nested(depth: int) -> ToolOutput:
    """An output whose brackets nest ``depth`` deep; its own object is the first."""
    value: Any = 0
    for _ in range(depth - 1):
        value = [value]
    return ToolOutput({"content": [], "structuredContent": value})


def test_the_limits_are_those_of_the_log() -> None:
    """The deepest output that is let through can be logged; one level more could not, and is refused here."""
    deepest = output_of(_nested(198))
    assert encode_action(Part(ToolResult("c1", deepest.raw)))
    with pytest.raises(TooDeep):
        output_of(_nested(199))
    with pytest.raises(TooDeep):
        encode_action(Part(ToolResult("c1", _nested(199).raw)))
    around = len(output_of("").to_json())
    largest = output_of("x" * (MAX_OUTPUT_BYTES - around))
    assert encode_action(Part(ToolResult("c1", largest.raw)))
    for size in (MAX_OUTPUT_BYTES - around + 1, 16 * 2**20):
        with pytest.raises(TooLarge):
            output_of("x" * size)


def test_the_part_that_ends_a_call() -> None:
    assert tool_outcome("c1", output_of("done")) == ToolResult("c1", {"content": [{"type": "text", "text": "done"}]})
    assert tool_outcome("c1", error_output("cancelled", "stopped")) == ToolError("c1", "Error [cancelled] stopped")
