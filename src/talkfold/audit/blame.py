"""Blame: from anything in a session's state back to the actions that made it.

A log is folded once. Then every message, part, field and stretch of text, as it is at the end or was after any action,
can be asked for the actions behind it. Text is counted in UTF-16 units, as JavaScript does: that is what the
contract's strings are made of, and two deltas can each bring one half of a character.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Literal, TypeAlias, cast, get_args

from msgspec import UNSET, Struct

from ..codec.values import same_json
from ..errors import InvalidArgument
from ..log import LoggedAction
from ..machine import Trigger
from ..model import Json, ReasoningPart, SessionState, SessionStatus, TextPart, ToolCallState, ToolPart
from ._trigger import trigger_of
from ._watched import MessageNote, Moment, PartNote, RowNote, WatchedFold

__all__ = ("Blame", "Contribution", "Field", "Place", "PlaceStep", "place_at")

Field: TypeAlias = Literal["text", "input", "output", "state", "error", "prompt", "providerMetadata", "agent", "status"]
"""A field as the wire names it. ``status`` is the session's; ``error`` is the session's or a call's."""


class PlaceStep(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """A message of one level, or a part of it.

    ``message`` is its index from 0, or its id. Ids may be used twice: ``occurrence`` (from 0) says which of the
    messages with that id is meant, the newest without it. ``part`` is the index of the part, from 0.
    """

    message: int | str
    part: int | None = None
    occurrence: int | None = None


class Place(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Somewhere in a state: a message, a part, a field of a part, a stretch of its text, or a field of the session.

    ``steps`` go from the session's own messages inwards: each but the last names a delegate call, and the next one
    is a message of the run behind it. Without steps the session itself is meant. ``start`` and ``end`` count
    UTF-16 units of the field ``text``, ``end`` not included.
    """

    steps: tuple[PlaceStep, ...] = ()
    field: Field | None = None
    start: int | None = None
    end: int | None = None


class Contribution(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one action did to a place.

    ``number`` is the action's, ``by`` what it was (a trigger of the machines). ``state`` is the call's state or the
    session's status from then on, where that was asked for. ``in_text`` is the stretch of the text that the action
    brought, ``in_delta`` where this stands in what it carried; both in UTF-16 units, from and to. ``removed``: the
    action took the value, or the message or part itself, away.
    """

    number: int
    by: Trigger
    state: ToolCallState | SessionStatus | None = None
    in_text: tuple[int, int] | None = None
    in_delta: tuple[int, int] | None = None
    removed: bool = False


class Blame:
    """All that a log says about who made what.

    ``rows`` is a log from its first action on, in order. Folding is linear in it; the memory is in proportion to its
    parts and deltas. ``state`` is the session at its end, ``last`` the number of its last action.
    """

    def __init__(self, rows: Iterable[LoggedAction]) -> None:
        fold = WatchedFold(keep_text=True)
        by: dict[int, Trigger] = {}
        number = 0
        step = fold.step
        for row in rows:
            number, action = row.number, row.action
            step(number, action)
            if fold.text is None:
                by[number] = trigger_of(action)
        self.last: int = number
        self.state: SessionState = fold.finished()
        self._row = fold.row
        self._moments = fold.moments
        self._by = by
        self._offsets: dict[PartNote, list[int]] = {}

    def of(self, place: Place, *, at: int | None = None) -> tuple[Contribution, ...]:
        """Every action that changed what is at that place, the oldest first; so the last one explains what is there.

        - A message or a part: the action that made it.
        - ``text``: the actions that brought it, each with its stretch; only those that reach into a range, if one is
          given, cut to it.
        - ``state`` of a call: everything that happened to the call. Its other fields: whatever set, changed or
          cleared them. ``agent``: what began the nested run.
        - ``status`` and ``error`` of the session: whatever changed them.
        - A message or part that Retry or Reset took away: that action alone. What was there before is told by
          ``at`` a smaller number.

        Empty: nothing has ever set that field. ``at`` asks for the state after that action (0: before the first one).
        Raises InvalidArgument when there is no such place and never was up to then, and for an ``at`` that is not in
        the log.
        """
        number = self.last if at is None else at
        if not 0 <= number <= self.last:
            raise InvalidArgument("at", f"the log has the actions 1 to {self.last}, not {at}")
        if (place.start, place.end) != (None, None) and place.field != "text":
            raise InvalidArgument("place", "only the field text has ranges")
        if not place.steps:
            return tuple(self._of_session(place.field, number))
        found = self._found(place.steps, number)
        if type(found) is int:
            return (self._contribution(found, removed=True),)
        if place.field is None:
            return (self._contribution(cast("MessageNote | PartNote", found).born),)
        if type(found) is not PartNote:
            raise InvalidArgument("place", f"a message has no field {place.field}; name a part")
        if place.field == "text":
            return tuple(self._of_text(found, place, number))
        return tuple(self._of_field(found, place.field, number))

    def _contribution(self, number: int, *, removed: bool = False) -> Contribution:
        return Contribution(number, self._by.get(number, "text-delta"), removed=removed)

    # ---- where ----

    def _found(self, steps: tuple[PlaceStep, ...], number: int) -> MessageNote | PartNote | int:
        """What stands there after that action, or the number of the action that removed it or something around it."""
        row = self._row
        for depth, step in enumerate(steps, 1):
            message = _message(row, step, number)
            if message.removed is not None and message.removed <= number:
                return message.removed
            if step.part is None:
                if depth < len(steps):
                    raise InvalidArgument("place", f"step {depth} names no part, but others follow")
                return message
            part = message.parts.at(step.part, number)
            if part is None:
                raise InvalidArgument("place", f"message {step.message!r} never had a part {step.part}")
            if part.removed is not None and part.removed <= number:
                return part.removed
            if depth == len(steps):
                return part
            if part.run is None:
                raise InvalidArgument("place", f"part {step.part} of message {step.message!r} has no nested run")
            row = part.run
        raise AssertionError("there is a step")

    # ---- what ----

    def _of_session(self, field: Field | None, number: int) -> Iterator[Contribution]:
        if field not in ("status", "error"):
            raise InvalidArgument("place", "the session itself has the fields status and error")
        start: Moment = (0, "idle", None)
        for before, now in pairwise((start, *self._moments)):
            if now[0] > number:
                return
            if field == "status" and now[1] != before[1]:
                yield Contribution(now[0], self._by[now[0]], now[1])
            elif field == "error" and now[2] != before[2]:
                yield self._contribution(now[0], removed=now[2] is None)

    def _of_text(self, note: PartNote, place: Place, number: int) -> Iterator[Contribution]:
        offsets = self._offsets_of(note)
        numbers = note.numbers or [note.born]
        count = bisect_right(numbers, number)
        start = 0 if place.start is None else place.start
        end = offsets[count] if place.end is None else min(place.end, offsets[count])
        if start < 0 or (place.end is not None and place.end < start):
            raise InvalidArgument("place", f"{place.start} to {place.end} is no range")
        whole = place.start is None and place.end is None
        for index in range(0 if whole else max(bisect_right(offsets, start) - 1, 0), count):
            low, high = offsets[index], offsets[index + 1]
            if low >= end and not whole:
                return
            first, last = max(low, start), min(high, end)
            if whole or first < last:
                by = self._by.get(numbers[index], "text-delta")
                yield Contribution(numbers[index], by, None, (first, last), (first - low, last - low))

    def _offsets_of(self, note: PartNote) -> list[int]:
        """Where each delta of a text begins, and where the last one ends."""
        offsets = self._offsets.get(note)
        if offsets is None:
            deltas = note.deltas
            if deltas is None:
                part = note.versions[0][1]
                if type(part) is ToolPart:
                    raise InvalidArgument("place", "a tool call has no field text")
                deltas = [cast("TextPart | ReasoningPart", part).text]
            offsets = self._offsets[note] = [0]
            for delta in deltas:
                offsets.append(offsets[-1] + _units(delta))
        return offsets

    def _of_field(self, note: PartNote, field: Field, number: int) -> Iterator[Contribution]:
        first = note.versions[0][1] if note.versions else None
        if field == "providerMetadata" and type(first) in (ReasoningPart, ToolPart):
            if cast("ReasoningPart | ToolPart", first).provider_metadata is not UNSET:
                yield self._contribution(note.born)
            return
        if type(first) is not ToolPart or field == "status":
            raise InvalidArgument("place", f"this part has no field {field}")
        if field == "input":
            yield self._contribution(note.born)
        elif field == "agent":
            begun = note.run.messages.slots[0][0].born if note.run and note.run.messages.slots else None
            if begun is not None and begun <= number:
                yield self._contribution(begun)
        else:
            yield from self._of_call(note, field, number)

    def _of_call(self, note: PartNote, field: Field, number: int) -> Iterator[Contribution]:
        value, unset = _CHANGING[field] if field in _CHANGING else (None, None)
        before: Json = unset
        for at, part in note.versions:
            if at > number:
                return
            call = cast("ToolPart", part)
            if value is None:
                yield Contribution(at, self._by[at], call.state)
            elif not same_json(now := value(call), before):
                yield self._contribution(at, removed=now is unset)
                before = now


_CHANGING: Mapping[Field, tuple[Callable[[ToolPart], Json], Json]] = {
    "output": (lambda call: call.output, UNSET),
    "error": (lambda call: call.error, None),
    "prompt": (lambda call: call.prompt, None),
}


def _message(row: RowNote, step: PlaceStep, number: int) -> MessageNote:
    """The message that a step means: one that is there after that action, else the newest that was."""
    if isinstance(step.message, int):
        note = row.messages.at(step.message, number)
    else:
        known = [note for note in row.named(step.message) if note.born <= number]
        there = [note for note in known if note.removed is None or note.removed > number]
        gone = [note for note in known if note.removed is not None and note.removed <= number]
        which = len(there) - 1 if step.occurrence is None else step.occurrence
        if 0 <= which < len(there):
            note = there[which]
        else:
            note = gone[-1] if gone and which < len(known) else None
    if note is None:
        raise InvalidArgument("place", f"there never was such a message {step.message!r}")
    return note


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def place_at(pointer: str) -> Place:
    """The place that a JSON Pointer means in the JSON of a state (``/messages/2/parts/0/text``).

    A pointer that goes on into an input, an output, an error or provider metadata means the whole of it: it came at
    once. Raises InvalidArgument when no state can have such a place.
    """
    names = pointer.split("/")
    steps: list[PlaceStep] = []
    at = 1
    while names[at : at + 1] == ["messages"]:
        message = _index(pointer, names, at + 1)
        if len(names) == at + 2:
            return Place((*steps, PlaceStep(message)))
        if names[at + 2] != "parts":
            break
        steps.append(PlaceStep(message, _index(pointer, names, at + 3)))
        at += 4
        if len(names) == at:
            return Place(tuple(steps))
        if names[at : at + 2] != ["agent", "messages"] or len(names) < at + 3:
            break
        at += 1
    field = names[at] if 0 < at < len(names) else ""
    if names[0] or field not in get_args(Field) or (field in _PLAIN and len(names) > at + 1):
        raise InvalidArgument("place", f"{pointer!r} points to nothing that a state can have")
    return Place(tuple(steps), cast("Field", field))


_PLAIN = frozenset(("text", "state", "prompt", "status"))


_DIGITS = 16
"""No index has so many."""


def _index(pointer: str, names: list[str], at: int) -> int:
    if at >= len(names) or not (names[at].isascii() and names[at].isdigit() and len(names[at]) < _DIGITS):
        raise InvalidArgument("place", f"{pointer!r} has no index where one must stand")
    return int(names[at])
