"""What the model is told of a function: the schemas are stated from JSON Schema 2020-12 and the rules of the docs."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from talkfold import InvalidArgument
from talkfold.runs import Tool, ToolContext, tool
from talkfold.runs.docstring import described


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Address(Struct):
    """Where it goes."""

    street: str
    floor: int = 0


@dataclass
class Wrapping:
    paper: str
    bow: bool = False


class Order(Struct, rename="camel", forbid_unknown_fields=True):
    """What the person orders."""

    sku: str
    ship_to: Address


class Category(Struct):
    name: str
    inside: list[Category] = []


def nothing() -> None:
    """Do nothing."""


def search(words: str, limit: Annotated[int, Meta(ge=1, le=50)] = 10) -> None:
    """Find articles.

    All words must be there.

    Args:
        words: What to look for,
            in any language.
        limit: How many at most.

    Returns:
        The articles.
    """


def buy(size: Size, address: Address, wrapping: Wrapping | None = None, tags: list[str] = ["a"]) -> None:  # noqa: B006
    """Buy."""


def sort_by(key: Literal["price", "name"], extra: dict[str, float]) -> None:
    """Sort.

    Parameters
    ----------
    key : str
        What to sort by.
    """


def order(what: Order) -> None:
    """Order it."""


def file_under(category: Category) -> None:
    """File it."""


def with_context(context: ToolContext, sku: Annotated[str, Meta(description="Its own words.")]) -> None:
    """Add.

    :param sku: The docstring's words.
    """


GOLDEN: dict[Any, dict[str, Any]] = {
    nothing: {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    # A default makes an argument optional and is told; bounds are told; the docstring describes.
    search: {
        "type": "object",
        "properties": {
            "words": {"type": "string", "description": "What to look for, in any language."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "default": 10,
                "description": "How many at most.",
            },
        },
        "required": ["words"],
        "additionalProperties": False,
    },
    # Types with a name are definitions. A default that the tool could change is not told, only that there is one.
    buy: {
        "type": "object",
        "properties": {
            "size": {"$ref": "#/$defs/Size"},
            "address": {"$ref": "#/$defs/Address"},
            "wrapping": {"anyOf": [{"$ref": "#/$defs/Wrapping"}, {"type": "null"}], "default": None},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["size", "address"],
        "additionalProperties": False,
        "$defs": {
            "Size": {"title": "Size", "enum": ["large", "small"]},
            "Address": {
                "title": "Address",
                "description": "Where it goes.",
                "type": "object",
                "properties": {"street": {"type": "string"}, "floor": {"type": "integer", "default": 0}},
                "required": ["street"],
            },
            "Wrapping": {
                "title": "Wrapping",
                "type": "object",
                "properties": {"paper": {"type": "string"}, "bow": {"type": "boolean", "default": False}},
                "required": ["paper"],
            },
        },
    },
    sort_by: {
        "type": "object",
        "properties": {
            "key": {"enum": ["name", "price"], "description": "What to sort by."},
            "extra": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "required": ["key", "extra"],
        "additionalProperties": False,
    },
    # A function's only parameter, when it is a Struct, is the input itself, under the Struct's names on the wire.
    order: {
        "title": "Order",
        "description": "What the person orders.",
        "type": "object",
        "properties": {"sku": {"type": "string"}, "shipTo": {"$ref": "#/$defs/Address"}},
        "required": ["sku", "shipTo"],
        "additionalProperties": False,
        "$defs": {
            "Address": {
                "title": "Address",
                "description": "Where it goes.",
                "type": "object",
                "properties": {"street": {"type": "string"}, "floor": {"type": "integer", "default": 0}},
                "required": ["street"],
            }
        },
    },
    # The context is nobody's argument, and a hint's own description is above the docstring's.
    with_context: {
        "type": "object",
        "properties": {"sku": {"type": "string", "description": "Its own words."}},
        "required": ["sku"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("function", GOLDEN, ids=lambda function: function.__name__)
def test_the_schema(function: Any) -> None:
    assert tool(function).descriptor.input_schema == GOLDEN[function]


def test_a_type_that_contains_itself_is_written_out_at_the_top_and_referred_to_below() -> None:
    schema = tool(file_under).descriptor.input_schema
    inside = {"type": "array", "items": {"$ref": "#/$defs/Category"}, "default": []}
    assert schema["type"] == "object"
    assert schema["properties"] == {"name": {"type": "string"}, "inside": inside}
    assert schema["$defs"]["Category"]["properties"]["inside"] == inside


def test_name_and_description() -> None:
    assert (tool(search).name, tool(search).descriptor.description) == (
        "search",
        "Find articles.\n\nAll words must be there.",
    )
    other: Tool[..., None] = tool(name="find", description="Find it.", timeout=3, confirm="Find?")(search)
    assert (other.name, other.descriptor.description, other.timeout, other.confirm) == ("find", "Find it.", 3, "Find?")
    assert tool(name="undocumented")(lambda: None).descriptor.description == ""


def test_a_tool_is_still_its_function() -> None:
    @tool
    def double(number: int) -> int:
        return 2 * number

    assert double(21) == 42
    assert double(number=4) == 8


def test_a_method_is_a_tool_of_its_object() -> None:
    class Shop:
        def price(self, sku: str) -> int:
            """The price."""
            return len(sku)

    made = tool(Shop().price)
    assert made.name == "price"
    assert made(sku="mug") == 3
    assert list(made.descriptor.input_schema["properties"]) == ["sku"]


def no_hint(words) -> None: ...  # type: ignore[no-untyped-def]


def rest(*words: str) -> None: ...


def named_rest(**words: str) -> None: ...


def positional(words: str, /) -> None: ...


def unknown_hint(words: NotThere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def no_json(words: complex) -> None: ...


def two_contexts(one: ToolContext, two: ToolContext) -> None: ...


def generator() -> Any:
    yield 1


async def async_generator() -> Any:
    yield 1


@pytest.mark.parametrize(
    "function",
    [
        no_hint,
        rest,
        named_rest,
        positional,
        unknown_hint,
        no_json,
        two_contexts,
        generator,
        async_generator,
        print,
        Order,
        lambda: None,
    ],
)
def test_what_no_model_could_call_is_refused_when_it_is_made(function: Any) -> None:
    with pytest.raises(InvalidArgument):
        tool(function)


async def asking(given: Any) -> str:
    return str(given)


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": "with space"},
        {"name": "x" * 65},
        {"name": "naïve"},
        {"name": "delegate_to_shop"},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"confirm": asking},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        tool(**options)(nothing)


GOOGLE = """Put it in.

More: text.

Args:
    sku: The article,
        as in the catalogue.
    count (int, optional): How many: at most 9.

Returns:
    basket: the basket
"""
NUMPY = """Put it in.

More: text.

Parameters
----------
sku : str
    The article, as in the catalogue.
count : int, optional
    How many: at most 9.

Returns
-------
basket : Basket
    The basket.
"""
SPHINX = """Put it in.

More: text.

:param str sku: The article,
    as in the catalogue.
:param count: How many: at most 9.
:type count: int
:returns: basket: the basket
"""


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["Google", "NumPy", "Sphinx"])
def test_three_ways_to_write_one_docstring(docstring: str) -> None:
    description, parameters = described(docstring)
    assert description == "Put it in.\n\nMore: text."
    assert parameters == {"sku": "The article, as in the catalogue.", "count": "How many: at most 9."}


@pytest.mark.parametrize("docstring", [None, "", "Args: that is no section.", "Note that this is none: either."])
def test_a_docstring_without_sections_is_description(docstring: str | None) -> None:
    assert described(docstring) == (docstring or "", {})
