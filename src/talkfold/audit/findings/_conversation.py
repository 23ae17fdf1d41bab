"""Where the messages and calls of a log stand, without what they say: the fold's rules on light records.

It answers what the reducer asks (which message, which call, which nested run does a part mean?) in the same way, which
a test holds against the fold, and remembers what the reducer may forget: by which action each of them came, and how
each call ended. Texts, inputs and outputs are not kept.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from typing import Literal, TypeAlias

from ...machine import FINISHED, OPEN, TOOL_CALL_NEXT, Trigger
from ...model import DELEGATE_PREFIX, Role, ToolCallState

__all__ = ("Call", "Conversation", "EndedBy", "Level", "Message", "Standing")

EndedBy: TypeAlias = Literal["outcome", "stop", "end"]
"""What ended a call: a part of its own, a stop, or the end of the run around it."""

Standing: TypeAlias = Literal["none", "running", "stopped", "ended"]
"""Where a turn is: none began, it goes on, it was told to stop, it is over."""


class Message:
    """A message: its place among those of its level, the action that it came with, and its calls."""

    __slots__ = ("calls", "id", "number", "place", "role")

    def __init__(self, message_id: str, role: Role, place: int, number: int) -> None:
        self.id = message_id
        self.role: Role = role
        self.place = place
        self.number = number
        self.calls: list[Call] = []


class Call:
    """A call: its place, its state, the action that it came with, and how it ended.

    ``outcome`` tells whether a second outcome says the same as the first.
    """

    __slots__ = (
        "ended_at",
        "ended_by",
        "gone",
        "id",
        "index",
        "level",
        "message",
        "name",
        "number",
        "outcome",
        "run",
        "state",
    )

    def __init__(self, call_id: str, name: str, number: int, level: Level, message: Message) -> None:
        self.id = call_id
        self.name = name
        self.number = number
        self.level = level
        self.message = message
        self.index = len(message.calls)
        self.state: ToolCallState = "running"
        self.ended_by: EndedBy | None = None
        self.ended_at = 0
        self.outcome = 0
        self.run: Level | None = None
        self.gone = False

    @property
    def is_open(self) -> bool:
        """Whether it is there and has not ended."""
        return self.state in OPEN and not self.gone

    @property
    def is_delegate(self) -> bool:
        """Whether a sub-agent's run is behind it."""
        return self.name.startswith(DELEGATE_PREFIX)

    def __lt__(self, other: Call) -> bool:
        """Whether it is older: a later message is newer, then a later part, a nested call before the one around it."""
        mine, its = self, other
        while mine.level.depth > its.level.depth and mine.level.owner is not None:
            mine = mine.level.owner
        while its.level.depth > mine.level.depth and its.level.owner is not None:
            its = its.level.owner
        if mine is its:
            return self.level.depth < other.level.depth
        while mine.level is not its.level and mine.level.owner is not None and its.level.owner is not None:
            mine, its = mine.level.owner, its.level.owner
        return (mine.message.place, mine.index) < (its.message.place, its.index)


class Level:
    """One row of messages: the session's own, or those of the nested run behind ``owner``.

    ``standing`` is where its turn is, ``said`` whether its agent said something in it, ``closed`` whether a call
    around it has ended.
    """

    __slots__ = (
        "began",
        "calls",
        "closed",
        "depth",
        "fresh",
        "live",
        "messages",
        "open",
        "open_by_id",
        "owner",
        "places",
        "said",
        "standing",
        "users",
    )

    def __init__(self, owner: Call | None = None) -> None:
        self.owner = owner
        self.depth: int = owner.level.depth + 1 if owner else 0
        self.places = 0
        self.messages: dict[str, list[Message]] = {}
        self.users: dict[str, int] = {}
        self.calls: dict[str, list[Call]] = {}
        self.open_by_id: dict[str, list[Call]] = {}
        self.open: dict[Call, None] = {}
        self.live: dict[Level, None] = {}  # nested levels in which, or below which, a call may be open
        self.fresh: list[Call] = []  # calls since this level's last end
        self.standing: Standing = "none"
        self.said = False
        self.began = 0
        self.closed = False

    @property
    def within(self) -> str | None:
        """The id of the delegate call that this level is behind."""
        return self.owner.id if self.owner else None

    def message(self, message_id: str) -> Message | None:
        """The newest assistant message with that id."""
        found = self.messages.get(message_id)
        return found[-1] if found else None

    def call(self, call_id: str) -> Call | None:
        """The newest open call with that id, else the newest."""
        row = self.open_by_id.get(call_id)
        while row:
            if row[-1].is_open:
                return row[-1]
            row.pop()
        return _newest(self.calls.get(call_id))


class Conversation:
    """The session's own level and all that is nested in it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.session = Level()
        self._turn: list[Message] = []  # since the person's last message, that one included
        self._delegates: dict[str, list[Call]] = {}
        self._made: dict[str, Call] = {}
        self._by_name: dict[str, list[Call]] = {}
        self._open_of: dict[str, int] = {}

    # ---- messages ----

    def send(self, message_id: str, number: int) -> None:
        level = self.session
        level.users[message_id] = number
        self._turn = [Message(message_id, "user", level.places, number)]
        level.places += 1

    def start(self, level: Level, message_id: str, number: int) -> None:
        message = Message(message_id, "assistant", level.places, number)
        level.places += 1
        level.messages.setdefault(message_id, []).append(message)
        if level is self.session and self._turn:
            self._turn.append(message)

    # ---- calls ----

    def add(self, level: Level, message: Message, call_id: str, name: str, number: int) -> Call:
        call = Call(call_id, name, number, level, message)
        message.calls.append(call)
        _insert(level.calls, call_id, call)
        _insert(level.open_by_id, call_id, call)
        _insert(self._by_name, name, call)
        self._open_of[name] = self._open_of.get(name, 0) + 1
        level.open[call] = None
        level.fresh.append(call)
        while level.owner is not None and level not in level.owner.level.live:
            level.owner.level.live[level] = None
            level = level.owner.level
        self._made[call_id] = call
        if call.is_delegate:
            _insert(self._delegates, call_id, call)
        return call

    def anywhere(self, call_id: str) -> Call | None:
        """The call with that id that was made last, on any level."""
        call = self._made.get(call_id)
        return None if call is None or call.gone else call

    def delegate(self, call_id: str) -> Call | None:
        """The delegate call that ``within`` means."""
        return _newest(self._delegates.get(call_id))

    def run_of(self, call: Call) -> Level:
        """The nested level of a delegate call."""
        if call.run is None:
            call.run = Level(call)
        return call.run

    def phased(self, name: str) -> tuple[Call | None, int]:
        """The newest open call of that name, and how many are open."""
        count = self._open_of.get(name, 0)
        row = self._by_name.get(name)
        while row:
            if row[-1].is_open:
                return row[-1], count
            row.pop()
        return None, 0

    def end(self, call: Call, trigger: Trigger, by: EndedBy, number: int) -> None:
        """The call takes what ended it."""
        was_open = call.is_open
        call.state = TOOL_CALL_NEXT[call.state, trigger]
        call.ended_by, call.ended_at = by, number
        if was_open:
            self._open_of[call.name] -= 1
            call.level.open.pop(call, None)

    def cancel_inside(self, level: Level, trigger: Trigger, by: EndedBy, number: int) -> None:
        """End every open call of a level and of all that is nested in it."""
        levels = [level]
        while levels:
            inner = levels.pop()
            for call in [*inner.open]:
                self.end(call, trigger, by, number)
            levels.extend(inner.live)
            inner.live.clear()

    def open_inside(self, level: Level) -> Iterator[Call]:
        """Every open call of a level and of all that is nested in it."""
        levels = [level]
        while levels:
            inner = levels.pop()
            yield from inner.open
            levels.extend(inner.live)

    def close(self, level: Level) -> list[Call]:
        """The call around a level has ended: mark what is nested there, and give the calls that are open in it. What
        was marked before is not given again."""
        levels, found = [level], list[Call]()
        while levels:
            inner = levels.pop()
            if not inner.closed:
                inner.closed = True
                found.extend(inner.open)
                levels.extend(inner.live)
        return found

    # ---- retry ----

    def retry(self) -> list[Call] | None:
        """Cut the conversation as ``resumable`` does; the calls of all levels that go. ``None``: no user message."""
        turn = self._turn
        if not turn:
            return None
        dropped: list[Call] = []
        while True:
            message = turn[-1]
            if message.role == "user":
                break
            kept = len(message.calls)
            while kept and message.calls[kept - 1].state not in FINISHED:
                kept -= 1
            dropped += reversed(message.calls[kept:])
            del message.calls[kept:]
            if kept:
                break
            turn.pop()
            self.session.messages[message.id].pop()
        dropped.reverse()
        for call in dropped:  # those inside come behind, and are looked at as well
            if call.is_open:
                self._open_of[call.name] -= 1
                call.level.open.pop(call, None)
            if call.run is not None:
                call.level.live.pop(call.run, None)
                dropped += (inner for row in call.run.calls.values() for inner in row)
        for call in dropped:
            call.gone = True
        return dropped


def _insert(rows: dict[str, list[Call]], key: str, call: Call) -> None:
    row = rows.setdefault(key, [])
    if not row or row[-1] < call:
        row.append(call)
    else:
        insort(row, call)


def _newest(row: list[Call] | None) -> Call | None:
    while row:
        if not row[-1].gone:
            return row[-1]
        row.pop()
    return None
