"""Adapters that end wrongly, and those that yield what is no part or what no log takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from msgspec.structs import replace

from ...actions import Finish, MessageStart, Reasoning, RunError, Send, TextDelta, ToolResult
from ...codec import MAX_ACTION_BYTES, MAX_DEPTH
from ...runs import AgentFaultCode, AgentRunRequest
from .table import NO_PARTS, Parts, Table, first_call

__all__ = ("SAYING",)

_table = Table()
SAYING = _table.rows
"""By name."""

# ---- the end ---------------------------------------------------------------------------------------------------------


@_table.ends("error", "no-end")
async def _says_nothing(request: AgentRunRequest) -> Parts:
    """It ends without a single part."""
    for part in NO_PARTS:
        yield part


@_table.ends("error", "no-end")
async def _ends_without_an_end(request: AgentRunRequest) -> Parts:
    """It ends without finish or error."""
    yield MessageStart("m")
    yield TextDelta("m", "and then")


@_table.ends("error", "no-end")
async def _ends_with_an_open_call(request: AgentRunRequest) -> Parts:
    """It ends without finish or error, and with an open call."""
    yield MessageStart("m")
    yield first_call(request)


@_table.ends("stop", "open-call")
async def _finishes_with_an_open_call(request: AgentRunRequest) -> Parts:
    """It finishes and leaves a call open."""
    yield MessageStart("m")
    yield first_call(request)
    yield Finish("stop")


@_table.ends("stop", "part-after-end")
async def _goes_on_after_finish(request: AgentRunRequest) -> Parts:
    """It goes on after finish."""
    yield MessageStart("m")
    yield Finish("stop")
    yield MessageStart("m2")
    yield TextDelta("m2", "One more thing.")
    yield Finish("stop")


@_table.ends("error", "part-after-end")
async def _goes_on_after_an_error(request: AgentRunRequest) -> Parts:
    """It reports an error, then finishes as if there had been none."""
    yield MessageStart("m")
    yield RunError("The model is gone.")
    yield Finish("stop")


@_table.ends("stop", "part-after-end")
async def _calls_after_its_end(request: AgentRunRequest) -> Parts:
    """It announces a call after its end."""
    yield MessageStart("m")
    yield Finish("stop")
    yield first_call(request)


# ---- things that are no parts, and parts that no log takes -----------------------------------------------------------


def _yielding(name: str, does: str, what: Callable[[AgentRunRequest], Any], fault: AgentFaultCode) -> None:
    async def act(request: AgentRunRequest) -> Parts:
        yield MessageStart("m")
        yield what(request)
        if fault == "unstorable-part":  # what is no part is the last thing that a run takes
            yield Finish("stop")

    act.__name__, act.__doc__ = name, does
    _table.ends("error", fault)(act)


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


_no_parts: Mapping[str, tuple[str, Callable[[AgentRunRequest], Any]]] = {
    "yields_none": ("It yields None.", lambda request: None),
    "yields_text": ("It yields a str.", lambda request: "Hello"),
    "yields_json": (
        "It yields a part as JSON.",
        lambda request: {"type": "text-delta", "messageId": "m", "delta": "Hello"},
    ),
    "yields_an_action": ("It yields an action of the log.", lambda request: Send("u", "Hi")),
    "yields_a_type": ("It yields a part's type.", lambda request: TextDelta),
}

_unstorable: Mapping[str, tuple[str, Callable[[AgentRunRequest], Any]]] = {
    "yields_nan": (
        "Its call's input holds NaN.",
        lambda request: replace(first_call(request), input={"total": float("nan")}),
    ),
    "yields_too_deep": (
        "Its call's input nests too deep.",
        lambda request: replace(first_call(request), input=_nested(MAX_DEPTH + 1)),
    ),
    "yields_endless_depth": (
        "Its call's input holds itself.",
        lambda request: replace(first_call(request), input=_endless()),
    ),
    "yields_too_large": (
        "Its text is larger than an action may be.",
        lambda request: TextDelta("m", "x" * (MAX_ACTION_BYTES + 1)),
    ),
    "yields_an_object_as_metadata": (
        "Its reasoning carries a Python object.",
        lambda request: Reasoning("m", "So.", object()),
    ),
    "yields_a_key_that_is_no_text": (
        "Its call's input has a key that is no str.",
        lambda request: replace(first_call(request), input={1: "one"}),
    ),
    "yields_text_that_is_none": ("Its text is None.", lambda request: TextDelta("m", cast("str", None))),
    "yields_text_that_is_bytes": ("Its text is bytes.", lambda request: TextDelta("m", cast("str", b"Hi"))),
    "yields_reasoning_that_is_none": ("Its reasoning is None.", lambda request: Reasoning("m", cast("str", None))),
    "yields_an_id_that_is_a_number": ("A message's id is a number.", lambda request: MessageStart(cast("str", 7))),
    "yields_a_call_id_that_is_a_list": (
        "A call's id is a list, which cannot even be looked up.",
        lambda request: replace(first_call(request), id=cast("str", [])),
    ),
    "yields_an_unknown_reason": (
        "It finishes for a reason that there is not.",
        lambda request: Finish(cast("Literal['stop']", "tired")),
    ),
    "yields_an_unknown_error_code": (
        "It fails with a code that there is not.",
        lambda request: RunError("No.", cast("Literal['network']", "moody")),
    ),
    "yields_an_error_that_is_an_exception": (
        "It fails with an exception in place of a text.",
        lambda request: RunError(cast("str", ValueError("no"))),
    ),
}


def _endless() -> object:
    value: list[object] = []
    value.append(value)
    return value


for _name, (_does, _what) in _no_parts.items():
    _yielding(_name, _does, _what, "not-a-part")
for _name, (_does, _what) in _unstorable.items():
    _yielding(_name, _does, _what, "unstorable-part")


@_table.ends("error", "unstorable-part")
async def _reports_an_output_that_is_no_json(request: AgentRunRequest) -> Parts:
    """It makes a call and reports a Python object as its output."""
    yield MessageStart("m")
    yield (call := first_call(request))
    await request.call_tool(call)
    yield ToolResult(call.id, object())
    yield Finish("stop")
