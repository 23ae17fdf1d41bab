"""Which places of a conversation somebody means who gives a pointer, a number, an id or words.

Messages and parts are counted from 1, as ``diff`` and people do; JSON Pointers count from 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple, get_args

from cyclopts import Parameter

from ..audit.blame import Blame, Field, Place, PlaceStep, place_at
from ..errors import InvalidArgument, TooDeep
from ..json_values import json_text
from ..model import UNSET, AgentMessage, AgentPart, Json, SessionState, ToolPart

__all__ = ("EVERYTHING", "Spot", "Wanted", "chosen", "places", "pointer", "spots", "units")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of a conversation is meant; nothing set: all of it."""

    message: Annotated[
        str | None, Parameter(help="A message: its place, counted from 1, or its id, also inside a sub-agent's run.")
    ] = None
    part: Annotated[int | None, Parameter(help="A part of that message, counted from 1.")] = None
    call: Annotated[
        str | None,
        Parameter(
            help="A tool call, in that message or anywhere: its id (the newest with it), or its action's number."
        ),
    ] = None
    field: Annotated[
        Field | None, Parameter(help="A field of the part or call; alone: the session's `status` or `error`.")
    ] = None
    text: Annotated[
        str | None, Parameter(help="Words: wherever they stand in a text, or in what a call got or gave.")
    ] = None

    @property
    def is_conversation(self) -> bool:
        """Whether all of it, or a whole message, is meant: something that is read line by line."""
        return (self.part, self.call, self.field, self.text) == (None, None, None, None)


EVERYTHING = Wanted()


_DIGITS = 16
"""No number of an action or a message has so many."""


class Spot(NamedTuple):
    """A part of a conversation, or a message without parts, and how to get there from the session's own messages."""

    steps: tuple[PlaceStep, ...]
    message: AgentMessage
    part: AgentPart | None

    @property
    def is_first(self) -> bool:
        """Whether its message begins with it."""
        return not self.steps[-1].part


def spots(state: SessionState) -> Iterator[Spot]:
    """The conversation part by part, as it is read; nested runs follow their call."""
    todo = [_level((), state.messages)]
    while todo:
        spot = next(todo[-1], None)
        if spot is None:
            todo.pop()
            continue
        yield spot
        if isinstance(spot.part, ToolPart) and spot.part.agent is not None:
            todo.append(_level(spot.steps, spot.part.agent.messages))


def _level(around: tuple[PlaceStep, ...], messages: tuple[AgentMessage, ...]) -> Iterator[Spot]:
    for m, message in enumerate(messages):
        if not message.parts:
            yield Spot((*around, PlaceStep(m)), message, None)
        for p, part in enumerate(message.parts):
            yield Spot((*around, PlaceStep(m, p)), message, part)


def pointer(place: Place) -> str:
    """The JSON Pointer of a place whose messages are named by their index."""
    steps = "/agent".join(
        f"/messages/{step.message}" + ("" if step.part is None else f"/parts/{step.part}") for step in place.steps
    )
    return steps if place.field is None else f"{steps}/{place.field}"


def units(text: str) -> int:
    """How many UTF-16 units a text has; blame counts in these."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# ---- which places ---------------------------------------------------------------------------------------


def places(blame: Blame, wanted: Wanted, given: str | None) -> list[Place]:
    """The places that are meant, in the order of the conversation.

    Raises InvalidArgument, named for the option, when nothing is there or the options do not go together.
    """
    if given is not None:
        if wanted != EVERYTHING:
            raise InvalidArgument("PLACE", "it says all by itself; leave the other options out, or it")
        return [place_at(given)]
    if wanted.call is not None and wanted.part is not None:
        raise InvalidArgument("--part", "a --call is a part already")
    if wanted.part is not None and wanted.message is None:
        raise InvalidArgument("--part", "say with --message whose part it is")
    if (wanted.message, wanted.call, wanted.text) == (None, None, None):
        return [_of_session(wanted.field)]
    row = chosen(blame, wanted)
    if wanted.text is not None:
        return _with_words(row, wanted.text, wanted.field)
    if wanted.call is None and wanted.part is None:
        raise InvalidArgument("--field", "a message has no fields; say which --part")
    return [Place(row[0].steps, wanted.field or ("state" if isinstance(row[0].part, ToolPart) else "text"))]


def chosen(blame: Blame, wanted: Wanted) -> list[Spot]:
    """The parts that a message, a part or a call has, with all that went on inside of them; without one, all parts."""
    row = [*spots(blame.state)]
    if wanted.message is not None:
        own = _message(row, wanted.message)
        if wanted.part is not None:
            return _inside(row, _part(own, wanted.part))
        row = _inside_message(row, own[0])
    return row if wanted.call is None else _inside(row, _call(blame, row, wanted.call))


def _inside_message(row: list[Spot], first: Spot) -> list[Spot]:
    """What has the same message around it as its first part."""
    (*around, step) = first.steps
    depth = len(around)
    return [
        spot
        for spot in row
        if len(spot.steps) > depth and spot.steps[:depth] == tuple(around) and spot.steps[depth].message == step.message
    ]


def _inside(row: list[Spot], around: Spot) -> list[Spot]:
    depth = len(around.steps)
    return [spot for spot in row if spot.steps[:depth] == around.steps]


def _of_session(field: Field | None) -> Place:
    if field not in ("status", "error"):
        raise InvalidArgument(
            "--field", "the session itself has status and error; name a --call, or --message and --part"
        )
    return Place((), field)


def _message(row: list[Spot], given: str) -> list[Spot]:
    """The parts of the message with this place or id."""
    top = max((spot.steps[0] for spot in row), key=_index, default=None)
    size = 0 if top is None else _index(top) + 1
    if _is_number(given) and 1 <= int(given) <= size:
        return [spot for spot in row if len(spot.steps) == 1 and spot.steps[0].message == int(given) - 1]
    named = [spot for spot in row if spot.message.id == given]
    if not named:
        told = f"it has {size}, counted from 1" if size else "it has none yet"
        raise InvalidArgument("--message", f"the conversation has no message {given!r}; {told}")
    last = named[-1]
    return [
        spot for spot in named if (spot.steps[:-1], _index(spot.steps[-1])) == (last.steps[:-1], _index(last.steps[-1]))
    ]


def _is_number(given: str) -> bool:
    return given.isascii() and given.isdigit() and len(given) < _DIGITS


def _index(step: PlaceStep) -> int:
    return int(step.message)


def _part(own: list[Spot], part: int) -> Spot:
    size = sum(spot.part is not None for spot in own)
    if not 1 <= part <= size:
        raise InvalidArgument("--part", f"that message has {size}, counted from 1; there is no {part}")
    return own[part - 1]


def _call(blame: Blame, row: list[Spot], given: str) -> Spot:
    calls = [spot for spot in row if isinstance(spot.part, ToolPart)]
    found = [spot for spot in calls if isinstance(spot.part, ToolPart) and spot.part.id == given]
    if not found and _is_number(given):
        found = [spot for spot in calls if blame.of(Place(spot.steps))[0].number == int(given)]
    if not found:
        last = calls[-1].part if calls else None
        told = f"the newest is {last.id!r}" if isinstance(last, ToolPart) else "there is none"
        raise _gone(InvalidArgument("--call", f"there is no call {given!r}; {told}"))
    return found[-1]


def _gone(error: InvalidArgument) -> InvalidArgument:
    error.next_step = "Retry may have taken it away: --at NUMBER asks of an earlier moment, `talkfold steps` has all."
    return error


# ---- by words -------------------------------------------------------------------------------------------


def _with_words(row: list[Spot], words: str, field: Field | None) -> list[Place]:
    if not words:
        raise InvalidArgument("--text", "there are no words")
    found = [place for spot in row for place in _in_spot(spot, words) if field in (None, place.field)]
    if not found:
        raise _gone(InvalidArgument("--text", f"{words!r} stands nowhere there, in these very letters"))
    return found


def _in_spot(spot: Spot, words: str) -> Iterator[Place]:
    part = spot.part
    if part is None:
        return
    if isinstance(part, ToolPart):
        values: dict[Field, Json] = {
            "input": part.input,
            "output": part.output,
            "error": part.error,
            "prompt": part.prompt,
        }
        for field in get_args(Field):
            if field in values and _has(values[field], words):
                yield Place(spot.steps, field)
        return
    at = part.text.find(words)
    while at >= 0:
        start = units(part.text[:at])
        yield Place(spot.steps, "text", start, start + units(words))
        at = part.text.find(words, at + len(words))


def _has(value: Json, words: str) -> bool:
    if value is UNSET or value is None:
        return False
    if isinstance(value, str):
        return words in value
    try:
        whole = json_text(value)
    except TooDeep:
        return False
    return words in whole or json.dumps(words, ensure_ascii=False)[1:-1] in whole
