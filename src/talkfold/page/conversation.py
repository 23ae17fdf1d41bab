"""The conversation as its person saw it, and everything that was ever taken away from it.

A row of pieces in reading order, for a template that goes through it once: a message, a call and what is gone have a
piece where they begin and one where they end. Every piece says from which action on it was there, and until which one
took it away. So a page can go back in time by showing and hiding, and needs no fold of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import ClassVar, TypeAlias, TypeVar

from msgspec import UNSET, Struct

# The page shows what the fold does, as the audit does: it reads the same notes.
from ..audit._watched import MessageNote, PartNote, RowNote, Stack
from ..audit.timings import CallTiming
from ..calls import is_delegate
from ..model import DELEGATE_PREFIX, ReasoningPart, Role, ToolCallState, ToolPart
from .room import Limits, Room, Shown, output_text
from .visible import first_words

__all__ = (
    "CallLine",
    "Called",
    "Conversation",
    "End",
    "Gone",
    "Message",
    "Phase",
    "Piece",
    "Text",
    "Thought",
    "TooDeep",
)

_DEEPEST = 24
"""How many sub-agents stand inside each other; what is deeper is only among the steps."""


class Piece(Struct, frozen=True):
    """Something that stands in the conversation from action ``since`` until action ``until`` takes it away."""

    is_: ClassVar[str]

    since: int
    until: int | None = None


class Message(Piece, frozen=True, kw_only=True):
    """A message begins."""

    is_: ClassVar[str] = "message"
    id: str
    role: Role
    is_empty: bool


class Text(Piece, frozen=True, kw_only=True):
    """A text; ``deltas`` are the pieces in which it came, each with its action, where they are kept apart."""

    is_: ClassVar[str] = "text"
    text: Shown
    last: int
    deltas: Sequence[tuple[int, str]] = ()


class Thought(Piece, frozen=True, kw_only=True):
    """A reasoning part."""

    is_: ClassVar[str] = "thought"
    text: Shown


class Phase(Piece, frozen=True, kw_only=True):
    """A call in one of its states. ``output`` and ``error`` are what it ended with, ``prompt`` what it asks."""

    state: ToolCallState
    output: Shown | None = None
    error: Shown | None = None
    prompt: Shown | None = None


class Called(Piece, frozen=True, kw_only=True):
    """A tool call begins; ``agent`` is the sub-agent's name when it is one, ``phases`` has at least one."""

    is_: ClassVar[str] = "call"
    id: str
    name: str
    agent: str | None
    input: Shown
    phases: Sequence[Phase]
    timing: CallTiming | None
    has_run: bool


class CallLine(Piece, frozen=True, kw_only=True):
    """A call of which the page has no room to say more."""

    is_: ClassVar[str] = "line"
    name: str
    input: str
    state: ToolCallState


class Gone(Piece, frozen=True, kw_only=True):
    """What one action took away begins: ``size`` messages or parts."""

    is_: ClassVar[str] = "gone"
    noun: str
    size: int


class TooDeep(Piece, frozen=True, kw_only=True):
    """A nested run that is not shown here."""

    is_: ClassVar[str] = "deep"


class End(Piece, frozen=True, kw_only=True):
    """The end of the ``what`` that began last; of a call, with its ``phases`` once more."""

    is_: ClassVar[str] = "end"
    what: str
    phases: Sequence[Phase] = ()


_Flow: TypeAlias = "Iterator[Piece | RowNote]"


class Conversation:
    """Everything that was ever in a row of messages, as pieces within a page's room."""

    def __init__(self, row: RowNote, timings: Mapping[int, CallTiming], limits: Limits) -> None:
        self._row = row
        self._timings = timings
        self._room = Room(limits)
        self._head = limits.head
        self._deltas_left = limits.pieces
        self._calls_left = limits.calls

    def pieces(self) -> Iterator[Piece]:
        """All pieces, once; nested runs stand between the begin and the end of their call."""
        open_rows = [self._messages(self._row)]
        while open_rows:
            piece = next(open_rows[-1], None)
            if piece is None:
                open_rows.pop()
            elif not isinstance(piece, RowNote):
                yield piece
            elif len(open_rows) > _DEEPEST:
                yield TooDeep(piece.messages.slots[0][0].born if piece.messages.slots else 0)
            else:
                open_rows.append(self._messages(piece))

    def _messages(self, row: RowNote) -> _Flow:
        for until, notes in groupby(_in_order(row.messages), lambda note: note.removed):
            messages = list(notes)
            if until is not None:
                yield Gone(messages[0].born, until, noun="message", size=len(messages))
            for note in messages:
                is_empty = not note.parts.slots
                yield Message(
                    note.born,
                    note.removed,
                    id=note.id,
                    role="user" if note.role == "user" else "assistant",
                    is_empty=is_empty,
                )
                yield from self._parts(note)
                yield End(note.born, what="message")
            if until is not None:
                yield End(messages[0].born, what="gone")

    def _parts(self, message: MessageNote) -> _Flow:
        for until, notes in groupby(_in_order(message.parts), lambda note: note.removed):
            parts = list(notes)
            if until is not None:
                yield Gone(parts[0].born, until, noun="part", size=len(parts))
            for note in parts:
                yield from self._part(note)
            if until is not None:
                yield End(parts[0].born, what="gone")

    def _part(self, note: PartNote) -> _Flow:
        if note.deltas is not None:
            yield self._grown(note, note.deltas)
            return
        part = note.versions[-1][1]
        if isinstance(part, ToolPart):
            if self._calls_left <= 0 and note.run is None:
                name, words = first_words(part.name, 80), first_words(output_text(part.input), 100)
                yield CallLine(note.born, note.removed, name=name, input=words, state=part.state)
                return
            self._calls_left -= 1
            phases = list(self._phases(note))
            yield self._call(note, part, phases)
            if note.run is not None:
                yield note.run
            yield End(note.born, what="call", phases=phases)
        elif isinstance(part, ReasoningPart):
            yield Thought(note.born, note.removed, text=self._room.show(part.text))
        else:
            yield Text(note.born, note.removed, text=self._room.show(part.text), last=note.born)

    def _grown(self, note: PartNote, deltas: Sequence[str]) -> Text:
        text = "".join(deltas)
        shown = self._room.show(text)
        apart: list[tuple[int, str]] = []
        if 1 < len(deltas) <= self._deltas_left and shown.whole is None and not shown.left_out:
            self._deltas_left -= len(deltas)
            for number, delta in zip(note.numbers, deltas, strict=True):
                before = apart[-1][1][-1:] if apart else ""
                if "\ud800" <= before <= "\udbff" and "\udc00" <= delta[:1] <= "\udfff":  # a pair stays together
                    apart[-1] = (apart[-1][0], apart[-1][1][:-1])
                    delta = before + delta
                apart.append((number, delta))
        return Text(note.born, note.removed, text=shown, last=(note.numbers or [note.born])[-1], deltas=apart)

    def _call(self, note: PartNote, call: ToolPart, phases: Sequence[Phase]) -> Called:
        return Called(
            note.born,
            note.removed,
            id=call.id,
            name=call.name,
            agent=call.name.removeprefix(DELEGATE_PREFIX) if is_delegate(call) else None,
            input=self._room.show(output_text(call.input)),
            phases=phases,
            timing=self._timings.get(note.born),
            has_run=note.run is not None,
        )

    def _phases(self, note: PartNote) -> Iterator[Phase]:
        calls = [(number, part) for number, part in note.versions if isinstance(part, ToolPart)]
        ends = [number for number, _ in calls[1:]]
        show = self._room.show
        for (number, call), until in zip(calls, [*ends, None], strict=True):
            yield Phase(
                number,
                until,
                state=call.state,
                output=None if call.output is UNSET else show(output_text(call.output)),
                error=None if call.error is None else show(call.error),
                prompt=None if call.prompt is None else show(call.prompt),
            )


_Note = TypeVar("_Note", MessageNote, PartNote)


def _in_order(stack: Stack[_Note]) -> list[_Note]:
    """Everything that ever stood in a row, in the order in which it came."""
    return sorted((note for slot in stack.slots for note in slot), key=lambda note: note.born)
