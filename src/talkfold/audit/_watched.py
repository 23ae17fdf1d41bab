"""The fold, watched: the very draft that ``fold`` works on, in rows that note what is put into them and taken out.

No rule of the fold is written here a second time. Whatever an action does to a session, it does by adding, replacing
or removing messages and parts; the rows of this draft tell of that, and the number of the action is known.

Rows grow and shrink at their end only (Retry and Reset cut them). So who stood at a place at any number is known from
the row of those who ever stood there: one begins after the other is gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Generic, TypeAlias, TypeVar, cast

from .._draft import DraftMessage, Level
from .._order import Call
from ..actions import Part, SessionAction, TextDelta
from ..fold import Draft
from ..model import EMPTY_SESSION, AgentMessage, AgentPart, SessionError, SessionState, SessionStatus, ToolPart

__all__ = ("MessageNote", "Moment", "PartNote", "RowNote", "Stack", "WatchedFold", "WatchedLevel")


class PartNote:
    """A part that was once there: which actions made it and which changed it.

    Text that grew has its ``deltas`` and, beside each, the number of its action. Every other part has its
    ``versions``: a number and what the part was from then on. ``run`` is the nested run behind a delegate call.
    """

    __slots__ = ("born", "deltas", "message", "numbers", "removed", "run", "versions")

    def __init__(self, message: MessageNote, born: int, part: AgentPart | list[str]) -> None:
        self.message: MessageNote = message
        self.born: int = born
        self.removed: int | None = None
        self.run: RowNote | None = None
        self.numbers: list[int] = []
        self.deltas: list[str] | None = None
        self.versions: list[tuple[int, AgentPart]] = []
        if type(part) is list:
            self.deltas = part
        else:
            self.versions.append((born, cast("AgentPart", part)))

    @property
    def call(self) -> ToolPart | None:
        """The call as it is now, without its nested run; None for text and reasoning."""
        part = self.versions[-1][1] if self.versions else None
        return part if type(part) is ToolPart else None


class MessageNote:
    """A message that was once there."""

    __slots__ = ("born", "id", "parts", "removed", "role", "row")

    def __init__(self, row: RowNote, born: int, message: AgentMessage | DraftMessage) -> None:
        self.row: RowNote = row
        self.born: int = born
        self.removed: int | None = None
        self.id: str = message.id
        self.role = message.role
        self.parts: Stack[PartNote] = Stack()


_Note = TypeVar("_Note", MessageNote, PartNote)


class Stack(Generic[_Note]):
    """Everything that ever stood in a row that grows and shrinks at its end: for each place, one after the other."""

    __slots__ = ("size", "slots")

    def __init__(self) -> None:
        self.slots: list[list[_Note]] = []
        self.size: int = 0

    def push(self, note: _Note) -> None:
        """Something new at the end."""
        if self.size == len(self.slots):
            self.slots.append([note])
        else:
            self.slots[self.size].append(note)
        self.size += 1

    def cut(self, size: int, number: int) -> list[_Note]:
        """What this action removes: everything after the first ``size``."""
        gone = [slot[-1] for slot in self.slots[size : self.size]]
        for note in gone:
            note.removed = number
        self.size = min(self.size, size)
        return gone

    def at(self, place: int, number: int) -> _Note | None:
        """Who stood at that place after that action, or, when nobody did, who was the last to stand there."""
        if not 0 <= place < len(self.slots):
            return None
        slot = self.slots[place]
        index = bisect_right(slot, number, key=_born)
        return slot[index - 1] if index else None


def _born(note: MessageNote | PartNote) -> int:
    return note.born


class RowNote:
    """One level of messages: the session's own, or those of the nested run behind the call ``owner``."""

    __slots__ = ("_by_id", "messages", "owner")

    def __init__(self, owner: PartNote | None = None) -> None:
        self.owner: PartNote | None = owner
        self.messages: Stack[MessageNote] = Stack()
        self._by_id: dict[str, list[MessageNote]] | None = None

    def named(self, message_id: str) -> list[MessageNote]:
        """Every message with that id that was ever there, in the order in which they came."""
        if self._by_id is None:
            self._by_id = {}
            for note in sorted((note for slot in self.messages.slots for note in slot), key=_born):
                self._by_id.setdefault(note.id, []).append(note)
        return self._by_id.get(message_id, [])


Moment: TypeAlias = "tuple[int, SessionStatus, SessionError | None]"
"""The number of an action that changed the session's status or error, and both from then on."""


class _Parts(list["AgentPart | list[str]"]):
    """The parts of one message, as the draft changes them."""

    __slots__ = ("_note", "_watch")

    def __init__(self, watch: WatchedFold, note: MessageNote) -> None:
        super().__init__()
        self._watch = watch
        self._note = note

    def append(self, part: AgentPart | list[str]) -> None:
        super().append(part)
        self._watch.part_added(self._note, part)

    def __setitem__(self, at: Any, part: Any) -> None:
        if type(part) is ToolPart and part is not self[at]:
            self._watch.call_changed(self._note.parts.slots[int(at)][-1], part)
        super().__setitem__(at, part)

    def __delitem__(self, at: Any) -> None:
        super().__delitem__(at)
        self._watch.parts_removed(self._note.parts, len(self))


class WatchedLevel(Level):
    """A level of the draft, with the notes of its row."""

    __slots__ = ("_watch", "row")

    def __init__(self, watch: WatchedFold, levels: list[Level], row: RowNote, owner: Call | None = None) -> None:
        super().__init__((), levels, owner)
        self._watch = watch
        self.row = row

    def append(self, message: AgentMessage | DraftMessage) -> None:
        super().append(message)
        note = MessageNote(self.row, self._watch.number, message)
        self.row.messages.push(note)
        if type(message) is DraftMessage:
            message.parts = _Parts(self._watch, note)
        else:
            for part in message.parts:
                self._watch.part_added(note, cast("AgentPart", part))

    def cut(self, place: int, count: int) -> None:
        super().cut(place, count)
        self._watch.messages_removed(self.row, len(self.messages))

    def run_of(self, call: Call) -> Level:
        if call.run is None:
            owner = self.row.messages.slots[call.message][-1].parts.slots[call.part][-1]
            owner.run = owner.run or RowNote(owner)
            call.run = WatchedLevel(self._watch, self._levels, owner.run, call)
        return call.run


class WatchedFold(Draft):
    """A fold from the empty session, one action a step.

    After a step: ``level`` is the row that a part was for (the session's own for other actions, None where ``within``
    names no nested run), ``text`` the text that a delta went to, ``changed`` the calls that were made or changed, and
    ``dropped`` the calls that were removed, nested ones too. ``moments`` are all changes of the session's status or
    error. Without ``keep_text`` texts stay empty, and ``finished`` must not be asked.
    """

    def __init__(self, *, keep_text: bool) -> None:
        self.number = 0
        self.row = RowNote()
        self.level: RowNote | None = self.row
        self.text: PartNote | None = None
        self.changed: list[PartNote] = []
        self.dropped: list[PartNote] = []
        self.moments: list[Moment] = []
        self._keep_text = keep_text
        self._texts: dict[int, PartNote] = {}  # by identity of the draft's list of chunks
        self._joins: tuple[str, str | None] | None = None  # the message of the delta before, if the last action was one
        super().__init__(EMPTY_SESSION)

    def _begin(self, state: SessionState) -> None:
        super()._begin(state)
        self.messages_removed(self.row, 0)
        self._levels.clear()
        self.session = WatchedLevel(self, self._levels, self.row)

    def step(self, number: int, action: SessionAction) -> None:
        """Apply one action of the log, which has that number."""
        self.number = number
        if type(action) is Part and type(action.part) is TextDelta:
            self._delta(action, action.part)
            return
        if self.changed:
            self.changed = []
        if self.dropped:
            self.dropped = []
        self._joins = None
        self.text = None
        before = self._status, self._error
        if type(action) is Part:
            level = self._level(action.within)
            if level is not None:
                self.take_part(level, action.part)
        else:
            self.level = self.row
            self.take(action)
        if before != (self._status, self._error):
            self.moments.append((number, self._status, self._error))

    def _delta(self, action: Part, part: TextDelta) -> None:
        joins = self._joins
        if joins is None or joins[0] != part.message_id or joins[1] != action.within:
            self.changed, self.dropped = [], []
            self._level(action.within)
            chunks = self.open_text(action.within, part.message_id)
            self.text = None if chunks is None else self._texts[id(chunks)]
            self._joins = part.message_id, action.within
        # An empty delta changes nothing, unless it opens the text.
        if self._keep_text and (text := self.text) is not None and (part.delta or not text.numbers):
            assert text.deltas is not None
            text.deltas.append(part.delta)
            text.numbers.append(self.number)

    def _level(self, within: str | None) -> Level | None:
        level = self.session if within is None else self.run(within)
        self.level = cast("WatchedLevel", level).row if level is not None else None
        return level

    def finished(self) -> SessionState:
        """The state at the end. No step may follow."""
        self.number = 0
        return self.frozen()

    # ---- what the rows tell ----

    def part_added(self, message: MessageNote, part: AgentPart | list[str]) -> None:
        """A part is new at the end of its message."""
        note = PartNote(message, self.number, part)
        message.parts.push(note)
        if type(part) is list:
            self._texts[id(part)] = note
        elif type(part) is ToolPart:
            self.changed.append(note)

    def call_changed(self, note: PartNote, call: ToolPart) -> None:
        """Another version of a call stands in its place."""
        if self.number:
            note.versions.append((self.number, call))
            self.changed.append(note)

    def messages_removed(self, row: RowNote, size: int) -> None:
        """Only the first ``size`` messages of a level are left."""
        for message in row.messages.cut(size, self.number):
            self._note_dropped(slot[-1] for slot in message.parts.slots[: message.parts.size])

    def parts_removed(self, parts: Stack[PartNote], size: int) -> None:
        """Only the first ``size`` parts of a message are left."""
        self._note_dropped(parts.cut(size, self.number))

    def _note_dropped(self, parts: Iterable[PartNote]) -> None:
        rest = [note for note in parts if note.call is not None]
        for note in rest:  # grows by what is nested
            if note.run is not None:
                messages = note.run.messages
                inner = (slot[-1] for slot in messages.slots[: messages.size])
                rest += [part[-1] for message in inner for part in message.parts.slots if part[-1].call is not None]
        self.dropped += rest
