"""A model's arguments: what fits, and what the model is told about what does not."""

from __future__ import annotations

import copy
import math
from typing import Any, Literal

import pytest
from msgspec import Struct

from talkfold.runs import tool
from talkfold.runs.tool_arguments import InvalidInput, read_arguments


class Item(Struct):
    sku: str
    count: int = 1


class Parcel(Struct, rename="camel", forbid_unknown_fields=True):
    ship_to: str
    weight: float

    def __post_init__(self) -> None:
        if self.weight <= 0:
            raise ValueError("weight must be above 0")


class Odd(Struct):
    sku: str

    def __post_init__(self) -> None:
        raise LookupError("no such article")


def put(sku: str, count: int, colour: Literal["blue", "red"] = "blue", items: list[Item] | None = None) -> None: ...


def send(parcel: Parcel) -> None: ...


def free(anything: Any, price: float = 1.5) -> None: ...


def odd(what: Odd) -> None: ...


def nothing() -> None: ...


def _read(function: Any, given: Any) -> dict[str, Any] | InvalidInput:
    return read_arguments(tool(function).takes, given)


@pytest.mark.parametrize(
    ("function", "given", "arguments"),
    [
        (put, {"sku": "mug", "count": 2}, {"sku": "mug", "count": 2}),
        (
            put,
            {"count": 2, "sku": "mug", "items": [{"sku": "cup"}]},
            {"sku": "mug", "count": 2, "items": [Item("cup")]},
        ),
        # JSON Schema: a number without a fraction is an integer, however it is written.
        (put, {"sku": "mug", "count": 2.0}, {"sku": "mug", "count": 2}),
        (
            put,
            {"sku": "mug", "count": 1, "items": [{"sku": "c", "count": 3.0}]},
            {"sku": "mug", "count": 1, "items": [Item("c", 3)]},
        ),
        (put, {"sku": "half \ud83d", "count": 1}, {"sku": "half \ud83d", "count": 1}),
        (send, {"shipTo": "me", "weight": 2}, {"parcel": Parcel("me", 2)}),
        (free, {"anything": {"b": 1.0, "a": [10**30, None]}}, {"anything": {"b": 1.0, "a": [10**30, None]}}),
        (nothing, {}, {}),
    ],
)
def test_what_fits(function: Any, given: Any, arguments: dict[str, Any]) -> None:
    assert _read(function, given) == arguments


def test_a_whole_number_where_a_fraction_may_be_stays_what_it_is() -> None:
    arguments = _read(free, {"anything": 1.0, "price": 2.0})
    assert isinstance(arguments, dict)
    assert [type(arguments["anything"]), type(arguments["price"])] == [float, float]


PUT = "The arguments are: sku, count, colour (optional), items (optional). Correct them and call again."


@pytest.mark.parametrize(
    ("function", "given", "text"),
    [
        (put, {}, f"sku: missing; count: missing. {PUT}"),
        (put, {"sku": 1, "count": "2"}, f"sku: expected str, got int; count: expected int, got str. {PUT}"),
        (put, {"sku": "mug", "count": 1.5}, f"count: expected int, got float. {PUT}"),
        (put, {"sku": "mug", "count": True}, f"count: expected int, got bool. {PUT}"),
        (put, {"sku": "mug", "count": None}, f"count: expected int, got null. {PUT}"),
        (put, {"sku": "mug", "count": 1, "colour": "pink"}, f"colour: invalid enum value 'pink'. {PUT}"),
        (put, {"sku": "mug", "cuont": 1}, f"count: missing; cuont: no such argument (did you mean count?). {PUT}"),
        (put, {"sku": "mug", "count": 1, "zzz": 1}, f"zzz: no such argument. {PUT}"),
        (
            put,
            {"sku": "m", "count": 1, "items": [{"sku": "a"}, {"sku": 2}]},
            f"items[1].sku: expected str, got int. {PUT}",
        ),
        (put, {"sku": "m", "count": 1, "items": {}}, f"items: expected array | null, got object. {PUT}"),
        (put, None, "the input must be an object with the arguments, not null"),
        (put, [], "the input must be an object with the arguments, not an array"),
        (put, '{"sku": "mug"}', "the input must be an object with the arguments, not a text"),
        (put, 3, "the input must be an object with the arguments, not a number"),
        (put, False, "the input must be an object with the arguments, not true or false"),
        (
            send,
            {"shipTo": "me", "weight": -1},
            "weight must be above 0. The arguments are: shipTo, weight. Correct them and call again.",
        ),
        (
            send,
            {"ship_to": "me", "weight": 1},
            "shipTo: missing; ship_to: no such argument (did you mean shipTo?). "
            "The arguments are: shipTo, weight. Correct them and call again.",
        ),
        (odd, {"sku": "x"}, "LookupError: no such article. The arguments are: sku. Correct them and call again."),
        (nothing, {"a": 1}, "a: no such argument. The arguments are: none. Correct them and call again."),
    ],
)
def test_all_that_is_wrong_is_said_at_once(function: Any, given: Any, text: str) -> None:
    assert _read(function, given) == InvalidInput(text)


@pytest.mark.parametrize("given", [{"anything": math.nan}, {"anything": (1, 2)}, {"anything": {1: 2}}, object()])
def test_what_is_no_json_does_not_fit(given: Any) -> None:
    found = _read(free, given)
    assert isinstance(found, InvalidInput)
    assert "no JSON value" in found.text


def test_the_arguments_share_nothing_with_the_call() -> None:
    given = {"anything": {"list": [1]}}
    before = copy.deepcopy(given)
    arguments = _read(free, given)
    assert isinstance(arguments, dict)
    arguments["anything"]["list"].append(2)
    assert given == before
