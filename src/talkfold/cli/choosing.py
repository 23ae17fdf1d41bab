"""Which actions of a log somebody asks for: by type, call, message, sub-agent, run, actor and words, all at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import UNSET

from ..actions import Part, Reasoning, RunError, Send, TextDelta, ToolError
from ..audit.lanes import LaneReader
from ..audit.marks import Mark, Marker
from ..errors import InvalidArgument
from ..log import LoggedAction
from .wording import ACTION_KINDS, action_kind

__all__ = ("EVERYTHING", "TOP", "Choice", "Which", "means_call")

TOP = "top"
"""The lane that is no sub-agent's."""

_FAILED = frozenset({ToolError, RunError})


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Which:
    """Which actions; nothing set: all of them."""

    type: Annotated[
        tuple[str, ...], Parameter(help="Only actions of this type, such as `send` or `tool-call`; may be repeated.")
    ] = ()
    call: Annotated[
        str | None,
        Parameter(help="Only what became of this call: its id, or the number of the action that made it."),
    ] = None
    message: Annotated[
        str | None, Parameter(help="Only what went into the message with this id, with its calls' phases and outcomes.")
    ] = None
    lane: Annotated[
        str | None,
        Parameter(
            help="Only a sub-agent's part: its call's id or number, or the agent's name; `top`: all but sub-agents'."
        ),
    ] = None
    run: Annotated[str | None, Parameter(help="Only actions of the run with this id, or whose id begins so.")] = None
    actor: Annotated[str | None, Parameter(help="Only what this actor did.")] = None
    text: Annotated[
        str | None, Parameter(help="Only steps that say these words, anywhere; upper and lower case are the same.")
    ] = None
    failed: Annotated[bool, Parameter(help="Only what failed: calls and whole runs.")] = False


EVERYTHING = Which()


class Choice:
    """What ``Which`` means, row by row. Raises InvalidArgument for a type that is none."""

    def __init__(self, which: Which) -> None:
        for each in which.type:
            _known(each)
        self._tests: list[Callable[[LoggedAction, Sequence[Mark]], bool]] = []
        if which.type:
            kinds = frozenset(which.type)
            self._tests.append(lambda row, _: action_kind(row.action) in kinds)
        if which.run is not None:
            run = which.run
            self._tests.append(lambda row, _: row.run is not None and row.run.startswith(run))
        if which.actor is not None:
            self._tests.append(lambda row, _: row.actor == which.actor)
        if which.failed:
            self._tests.append(lambda row, _: isinstance(row.action, Part) and type(row.action.part) in _FAILED)
        if which.call is not None:
            call = which.call
            self._tests.append(lambda _, marks: any(means_call(mark, call) for mark in marks))
        if which.message is not None:
            self._tests.append(_MessageTest(which.message))
        if which.lane == TOP:
            self._tests.append(lambda row, _: not isinstance(row.action, Part) or row.action.within is None)
        elif which.lane is not None:
            self._tests.append(_LaneTest(which.lane))
        self._marker = Marker() if which.call is not None or which.message is not None else None
        self._words = None if which.text is None else which.text.casefold()
        self.from_start: bool = self._marker is not None or which.lane not in (None, TOP)
        """Whether it must be fed every row from the log's first."""

    def has(self, row: LoggedAction) -> bool:
        """Whether the row is one of them, but for the words. Call it once for each row, in order."""
        marks: Sequence[Mark] = ()
        if self._marker is not None:
            self._marker.feed(row)
            marks = tuple(self._marker.marks)
            self._marker.marks.clear()
        wanted = [test(row, marks) for test in self._tests]  # each must see every row
        return all(wanted)

    def says(self, rows: Sequence[LoggedAction]) -> bool:
        """Whether these rows, which are one step, say the words."""
        return self._words is None or self._words in "\n".join(_texts(rows)).casefold()


def _known(kind: str) -> None:
    if kind not in ACTION_KINDS:
        near = get_close_matches(kind, ACTION_KINDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(ACTION_KINDS)}"
        raise InvalidArgument("--type", f"{kind!r} is no type of action; {hint}")


def means_call(mark: Mark, given: str) -> bool:
    """Whether a mark is about the call that somebody named by its id or by the number of its action."""
    return mark.call is not None and (mark.id == given or str(mark.call) == given)


class _MessageTest:
    """What went into a message: what names it, and what became of the calls in it."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._calls: set[int] = set()

    def __call__(self, row: LoggedAction, marks: Sequence[Mark]) -> bool:
        action = row.action
        what = action.part if isinstance(action, Part) else action
        named = what.id if isinstance(what, Send) else getattr(what, "message_id", None)
        here = named == self._message
        if here:
            self._calls |= {mark.call for mark in marks if mark.kind == "call" and mark.call is not None}
        return here or any(mark.call in self._calls for mark in marks)


class _LaneTest:
    """What a sub-agent did, with all that was done for it, its call and the call's outcome."""

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self._reader = LaneReader()

    def __call__(self, row: LoggedAction, marks: Sequence[Mark]) -> bool:
        return any(
            lane.kind == "agent" and self._lane in (lane.id, lane.name, str(lane.first))
            for lane in self._reader.feed(row)
        )


# ---- words ----------------------------------------------------------------------------------------------

_SAYING = ("text", "name", "input", "output", "error", "code", "prompt", "reason")
"""The fields in which an action says something."""


def _texts(rows: Sequence[LoggedAction]) -> Iterator[str]:
    """Everything that a step says: text that was streamed in pieces is one text."""
    parts = [row.action.part for row in rows if isinstance(row.action, Part)]
    streamed = "".join(part.delta for part in parts if isinstance(part, TextDelta))
    streamed += "".join(part.text for part in parts if isinstance(part, Reasoning))
    if streamed:
        yield streamed
        return
    for row in rows:
        what = row.action.part if isinstance(row.action, Part) else row.action
        yield from _strings([getattr(what, name, UNSET) for name in _SAYING])
        yield from _strings([row.meta])


def _strings(todo: list[Any]) -> Iterator[str]:
    """The words in JSON values, names of their members included."""
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            todo += value.keys()
            todo += value.values()
        elif isinstance(value, list | tuple):
            todo += value
        elif value is not None and value is not UNSET:
            yield json.dumps(value)
