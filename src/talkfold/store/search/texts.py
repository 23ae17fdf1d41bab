"""What of a log is searched: the texts in it, each with the numbers of the actions that it comes from.

A text is what one action says (a message, a call with its input, an outcome, an error, a question), or what a
stream of text deltas spells. A stream ends where the message goes on with something else, where its agent ends, and
where the person acts; a long one is cut at a blank, so that the work on a message does not grow with its length. The
same log gives the same texts, in however many steps it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ...actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from ...json_values import is_list, is_object
from ...model import Json
from .words import words_of

__all__ = ("SEARCH_KINDS", "SearchKind", "Stream", "Text", "Texts", "said", "streamed")

SearchKind: TypeAlias = Literal[
    "send", "text-delta", "reasoning", "tool-call", "tool-result", "tool-error", "error", "toolPhase"
]
"""Kinds of texts, by the wire name of the action or stream part; ``text-delta`` is a stream of them."""

SEARCH_KINDS: tuple[SearchKind, ...] = get_args(SearchKind)

_CHUNK = 32 * 1024
"""How many characters a stream's text has before it is cut."""

_MOST_STREAMS = 16
"""How many streams may be open side by side; those of parallel sub-agents are."""

_LONGEST = 50_000
"""Over how many actions of the log a stream may be spread, so that showing it has a bound."""


class Text(NamedTuple):
    """A text: its first and last action, its kind, and its words."""

    first: int
    last: int
    kind: SearchKind
    words: str


class Stream(NamedTuple):
    """A stream that may go on, without its words: what must be noted to go on with it later.

    ``start`` is the action in which its last word began, 0 where no word is open.
    """

    first: int
    last: int
    start: int
    within: str | None
    message_id: str


# ---- what one action says -------------------------------------------------------------------------------


def _leaves(value: Json) -> str:
    """The keys, texts and numbers of a JSON value, in their order, as one text."""
    pieces: list[str] = []
    pending: list[tuple[str, Json]] = [("", value)]
    while pending:
        key, value = pending.pop()
        if is_object(value):
            pieces += [f"{key}:"] if key else []
            pending += reversed([(name, each) for name, each in value.items()])
        elif is_list(value):
            pieces += [f"{key}:"] if key else []
            pending += [("", each) for each in reversed(value)]
        elif isinstance(value, str):
            pieces.append(f"{key}: {value}," if key else f"{value},")
        elif value is None or value is True or value is False:
            pieces += [f"{key},"] if key else []
        else:
            pieces.append(f"{key}: {_digits(value)}," if key else f"{_digits(value)},")
    return " ".join(pieces).removesuffix(",")


def _digits(number: float) -> str:
    try:
        return repr(number)
    except ValueError:  # more digits than Python writes
        return ""


_SAID: dict[type[Any], Callable[[Any], str]] = {
    Send: lambda it: it.text,
    Reasoning: lambda it: it.text,
    ToolCall: lambda it: f"{it.name} {_leaves(it.input)}",
    ToolResult: lambda it: _leaves(it.output),
    ToolError: lambda it: it.error,
    RunError: lambda it: it.error,
    ToolPhase: lambda it: it.prompt or "",
}


def said(action: SessionAction) -> str:
    """The text of one action that is a text by itself; nothing for the others."""
    what = action.part if isinstance(action, Part) else action
    say = _SAID.get(type(what))
    return "" if say is None else say(what)


def streamed(actions: Iterable[SessionAction]) -> str:
    """The text of the stream that begins with the first of these actions, as it was streamed."""
    pieces: list[str] = []
    lane: tuple[str | None, str] | None = None
    for action in actions:
        if isinstance(action, Part) and isinstance(action.part, TextDelta):
            here = (action.within, action.part.message_id)
            lane = lane or here
            if here == lane:
                pieces.append(action.part.delta)
    return "".join(pieces)


# ---- streams --------------------------------------------------------------------------------------------


class _Open:
    """A stream in hand. ``tail``: how long its last word is so far."""

    __slots__ = ("changed", "first", "last", "pieces", "size", "start", "tail")

    def __init__(self, first: int, last: int, start: int, words: str) -> None:
        self.first = first
        self.last: int = last
        self.start: int = start
        self.pieces = [words] if words else []
        self.size = len(words)
        self.tail = len(words) - words.rfind(" ") - 1
        self.changed = False

    def add(self, number: int, words: str) -> None:
        if not self.pieces:
            words = words.lstrip()
        elif self.pieces[-1].endswith(" ") and words.startswith(" "):
            words = words[1:]
        if not words:
            return
        self.last = number
        self.changed = True
        self.pieces.append(words)
        self.size += len(words)
        blank = words.rfind(" ")
        if blank >= 0:
            self.tail = len(words) - blank - 1
            self.start = number if self.tail else 0
        else:
            self.tail += len(words)
            self.start = self.start or number

    def words(self) -> str:
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]


class Texts:
    """Reads a log, one action after the other. ``finished`` are the texts to which nothing will be added.

    To go on where another reader stopped, give the streams that it had open, each with its words.
    """

    def __init__(self, streams: Iterable[tuple[Stream, str]] = ()) -> None:
        self.finished: list[Text] = []
        self._open: dict[tuple[str | None, str], _Open] = {
            (it.within, it.message_id): _Open(it.first, it.last, it.start, words) for it, words in streams
        }

    def add(self, number: int, action: SessionAction) -> None:
        """Read the next action of the log."""
        what = action.part if isinstance(action, Part) else action
        if isinstance(action, Part):
            part = action.part
            if type(part) is TextDelta:
                self._stream(number, (action.within, part.message_id), part.delta)
                return
            if isinstance(part, MessageStart | Reasoning | ToolCall):
                self._close((action.within, part.message_id))
            elif isinstance(part, Finish | RunError):
                self._close(*[lane for lane in self._open if lane[0] == action.within])
        elif isinstance(action, Send | Stop | Retry | Reset):
            self._close(*self._open)
        words = words_of(said(action)).strip()
        if words:
            kind: Any = what.__struct_config__.tag
            self.finished.append(Text(number, number, kind, words))

    def streams(self) -> list[Stream]:
        """The streams that may go on, in the order in which they began."""
        return [Stream(it.first, it.last, it.start, *lane) for lane, it in self._open.items()]

    def unfinished(self) -> list[Text]:
        """The texts of open streams that were added to here, as they are so far."""
        return [Text(it.first, it.last, "text-delta", it.words()) for it in self._open.values() if it.changed]

    def _stream(self, number: int, lane: tuple[str | None, str], delta: str) -> None:
        it = self._open.get(lane)
        if it is not None and number - it.first >= _LONGEST:
            self._close(lane)
            it = None
        if it is None:
            while len(self._open) >= _MOST_STREAMS:
                self._close(min(self._open, key=lambda each: self._open[each].last))
            it = self._open[lane] = _Open(number, number, 0, "")
        it.add(number, words_of(delta))
        if it.size < _CHUNK:
            return
        if not it.start or it.tail >= _CHUNK:
            self._close(lane)
        elif it.start > it.first:
            words = it.words()
            cut = len(words) - it.tail
            self.finished.append(Text(it.first, it.last, "text-delta", words[:cut]))
            rest = self._open[lane] = _Open(it.start, number, it.start, words[cut:])
            rest.changed = True

    def _close(self, *lanes: tuple[str | None, str]) -> None:
        for lane in lanes:
            it = self._open.pop(lane, None)
            if it is not None and it.changed:
                self.finished.append(Text(it.first, it.last, "text-delta", it.words()))
