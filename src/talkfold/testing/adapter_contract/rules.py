"""What must be true of every run of an adapter, as a table: a rule's name, and what in a record breaks it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias, get_args

from ...actions import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Reasoning,
    RunError,
    StepFinish,
    TextDelta,
    ToolCall,
    ToolError,
    ToolResult,
)
from ...codec import encode_action
from ...codec.values import same_json
from ...errors import TalkfoldError
from ...model import ToolPart
from ...runs import ToolOutput, logged_part, tool_outcome
from .record import CallBegan, CallReturned, Listed, Record, Yielded

__all__ = ("RULES", "TOOLS_ANEW", "Rule", "broken")

Rule: TypeAlias = Callable[[Record], Iterator[str]]
"""Says in words what of a record breaks it."""

TOOLS_ANEW = "tools are read anew"
"""The one rule that is about models only."""

_PARTS: tuple[type, ...] = get_args(AgentStreamPart)


def broken(record: Record, *, without: Collection[str] = ()) -> list[str]:
    """What of a record breaks which rule; empty for a run as it should be. ``without`` names rules to leave out."""
    for name, rule in (("only parts", _only_parts), ("parts that a log takes", _parts_that_a_log_takes)):
        if found := list(rule(record)):
            return [f"{name}: {text}" for text in found]  # what is no part has no ids to look at
    rules = {name: rule for name, rule in RULES.items() if name not in without}
    return [f"{name}: {text}" for name, rule in rules.items() for text in rule(record)]


def _only_parts(record: Record) -> Iterator[str]:
    for part in record.parts:
        if type(part) not in _PARTS:
            yield f"a {type(part).__name__} is none"


def _comes_to_an_end(record: Record) -> Iterator[str]:
    if record.hung:
        yield f"it was still running after {record.seconds:.1f} s"


def _raises_nothing(record: Record) -> Iterator[str]:
    if record.raised is not None:
        yield f"run let out {record.raised!r}; an error of the run is an error part"


def _one_end_at_the_end(record: Record) -> Iterator[str]:
    ends = [place for place, part in enumerate(record.parts) if isinstance(part, Finish | RunError)]
    if not ends:
        yield "there is no finish and no error"
    elif len(record.parts) > ends[0] + 1:
        yield f"after {record.parts[ends[0]]!r} comes {record.parts[ends[0] + 1]!r}"


def _parts_that_a_log_takes(record: Record) -> Iterator[str]:
    for part in record.parts:
        try:
            encode_action(Part(logged_part(part)))
        except (TalkfoldError, TypeError) as error:
            yield f"a {type(part).__name__}: {error}"


def _messages_begin_first(record: Record) -> Iterator[str]:
    begun = set[str]()
    for part in record.parts:
        if isinstance(part, MessageStart):
            begun.add(part.message_id)
        elif isinstance(part, TextDelta | Reasoning | ToolCall) and part.message_id not in begun:
            yield f"{part!r} comes before the message-start of {part.message_id!r}"


def _message_ids_are_new(record: Record) -> Iterator[str]:
    known = {message.id for message in record.messages}
    for part in record.parts:
        if isinstance(part, MessageStart):
            if not part.message_id or part.message_id in known:
                yield f"the message id {part.message_id!r} is empty, or another message has it"
            known.add(part.message_id)


def _call_ids_are_new(record: Record) -> Iterator[str]:
    known = {part.id for message in record.messages for part in message.parts if isinstance(part, ToolPart)}
    for part in record.parts:
        if isinstance(part, ToolCall):
            if not part.id or part.id in known:
                yield f"the call id {part.id!r} is empty, or another call has it"
            known.add(part.id)


def _calls_are_told_first(record: Record) -> Iterator[str]:
    told = dict[str, ToolCall]()
    for event in record.events:
        if isinstance(event, Yielded) and isinstance(event.part, ToolCall):
            told[event.part.id] = event.part
        elif isinstance(event, CallBegan):
            part = told.pop(event.call.id, None)
            if part is None:
                yield f"call_tool({event.call.id!r}) has no tool-call part before it, or was awaited twice"
            elif part.name != event.call.name or not same_json(part.input, event.call.input):
                yield f"call_tool got {event.call!r}, the tool-call part says {part!r}"


def _each_call_has_one_outcome(record: Record) -> Iterator[str]:
    open_calls = list[str]()
    for part in record.parts:
        if isinstance(part, ToolCall):
            open_calls.append(part.id)
        elif isinstance(part, ToolResult | ToolError):
            if part.id in open_calls:
                open_calls.remove(part.id)
            else:
                yield f"{part!r} is the outcome of no open call"
        elif isinstance(part, Finish | RunError | StepFinish) and open_calls:
            yield f"the calls {open_calls} have no outcome before {part!r}"
            open_calls.clear()
    if open_calls:
        yield f"the calls {open_calls} have no outcome"


def _outcomes_are_what_the_tools_gave(record: Record) -> Iterator[str]:
    given = {event.call.id: event.output for event in record.events if isinstance(event, CallReturned)}
    for part in record.parts:
        if not isinstance(part, ToolResult | ToolError):
            continue
        output = given.get(part.id)
        if output is None:
            if isinstance(part, ToolResult):
                yield f"{part!r} was made up: call_tool was not awaited"
        elif isinstance(part, ToolError) != output.is_error:
            yield f"call_tool gave {output!r}, reported is {part!r}; tool_outcome makes the right part"
        elif isinstance(part, ToolResult):
            raw = part.output.raw if isinstance(part.output, ToolOutput) else part.output
            if not same_json(raw, output.raw):
                yield f"call_tool gave {output!r}, reported is {part!r}"
        elif part != tool_outcome(part.id, output):
            yield f"call_tool gave {output.text!r}, reported is {part.error!r}"


def _one_call_at_a_time(record: Record) -> Iterator[str]:
    told: str | None = None
    made: str | None = None
    for event in record.events:
        match event:
            case CallBegan(call):
                if made is not None:
                    yield f"call_tool({call.id!r}) begins while {made!r} runs"
                made = call.id
            case CallReturned():
                made = None
            case Yielded(ToolCall(id=call_id)):
                if told is not None:
                    yield f"the call {call_id!r} is announced before {told!r} has its outcome"
                told = call_id
            case Yielded(ToolResult() | ToolError()):
                told = None
            case _:
                pass


def _tools_are_read_anew(record: Record) -> Iterator[str]:
    """Between an output and what the model says of it lies a model call, and before that the tools are read."""
    read, calls = False, record.calls
    for event in record.events:
        match event:
            case Listed():
                read = True
            case CallReturned():
                read = False
            case Yielded(TextDelta() | Reasoning()) if not read and calls:
                yield f"request.tools was not read before {event.part!r}"
                return
            case CallBegan(call) if not read and call == calls[0]:
                yield f"request.tools was not read before {call!r}"
                return
            case _:
                pass


RULES: Mapping[str, Rule] = {
    "only parts": _only_parts,
    "parts that a log takes": _parts_that_a_log_takes,
    "comes to an end": _comes_to_an_end,
    "raises nothing": _raises_nothing,
    "one end, at the end": _one_end_at_the_end,
    "message-start comes first": _messages_begin_first,
    "message ids are new": _message_ids_are_new,
    "call ids are new": _call_ids_are_new,
    "tool-call comes before call_tool": _calls_are_told_first,
    "one outcome for each call": _each_call_has_one_outcome,
    "outcomes are what the tools gave": _outcomes_are_what_the_tools_gave,
    "one call at a time": _one_call_at_a_time,
    TOOLS_ANEW: _tools_are_read_anew,
}
