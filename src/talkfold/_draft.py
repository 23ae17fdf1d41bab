"""A session's state while a fold works on it: mutable where the log touched it, frozen and shared everywhere else.

Reading a start state costs nothing until something is looked up in it. Lookups first try the newest few entries, where
a running conversation almost always finds what it needs; who keeps missing builds an index, which is then kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from sys import maxsize
from typing import TypeAlias, cast

from ._order import Call, Rows, jump_from
from ._utf16 import joined
from .calls import is_open
from .model import AgentMessage, AgentPart, Role, TextPart, ToolPart

__all__ = ("DraftMessage", "Level", "calls_inside")

_NEAR = 16
"""How many of the newest parts and messages every lookup of a call may look at."""

_SEARCHES = 3
"""How many lookups may search a whole level before its index of calls is built: the log's tail, folded onto a long
conversation, has few of them, and an index costs several searches."""


class DraftMessage:
    """A message that is being changed. Text that grows is a list of chunks among the parts, joined at the end."""

    __slots__ = ("id", "origin", "parts", "role")

    def __init__(self, message_id: str, role: Role, origin: AgentMessage | None = None) -> None:
        self.id: str = message_id
        self.role: Role = role
        self.origin: AgentMessage | None = origin
        self.parts: list[AgentPart | list[str]] = [*origin.parts] if origin else []

    def open_text(self) -> list[str]:
        """The chunks of the text at the end, for a delta that is about to be added."""
        parts = self.parts
        last = parts[-1] if parts else None
        if type(last) is list:
            return last
        chunks: list[str] = []
        if type(last) is TextPart:
            chunks.append(last.text)
            parts[-1] = chunks
        else:
            parts.append(chunks)
        return chunks

    def frozen(self) -> AgentMessage:
        """The message as it is now; its origin, and the parts of its origin, where nothing changed."""
        parts, origin = self.parts, self.origin
        before = origin.parts if origin else ()
        for at, part in enumerate(parts):
            if type(part) is list:
                parts[at] = _text(part, before, at)
        if origin and len(parts) == len(before) and all(a is b for a, b in zip(parts, before, strict=True)):
            return origin
        return AgentMessage(self.id, self.role, cast("tuple[AgentPart, ...]", tuple(parts)))


def _text(chunks: list[str], before: Sequence[AgentPart], at: int) -> TextPart:
    text = "".join(chunks)
    if at < len(before):
        opened = before[at]
        # Deltas without a letter leave even such a text as it was whose halves are not joined.
        if type(opened) is TextPart and text == opened.text:
            return opened
    return TextPart(joined(text))


AnyMessage: TypeAlias = AgentMessage | DraftMessage


_Place: TypeAlias = "tuple[int, int]"
"""Index of a message in its level, index of a part in its message."""


class Level:
    """One row of messages: the session's own, or those of a nested run behind the call ``owner``.

    ``nodes`` are the calls of which somebody holds the place, by (index of message, index of part).
    """

    __slots__ = (
        "_all",
        "_ids",
        "_levels",
        "_open",
        "_origin",
        "_searches",
        "_shared",
        "_touched",
        "depth",
        "jump",
        "messages",
        "nodes",
        "owner",
    )

    def __init__(self, messages: tuple[AgentMessage, ...], levels: list[Level], owner: Call | None = None) -> None:
        self.owner: Call | None = owner
        self.depth: int = owner.level.depth + 1 if owner else 0
        self.jump: Call | None = jump_from(owner) if owner else None
        self.messages: list[AnyMessage] = list(messages)
        self.nodes: dict[_Place, Call] = {}
        self._origin = messages
        self._shared = len(messages)  # how many of the first messages have never been removed
        self._touched: list[int] = []
        self._ids: dict[str, list[int]] | None = None
        self._open: Rows | None = None
        self._all: Rows | None = None
        self._searches = _SEARCHES
        self._levels = levels
        levels.append(self)

    # ---- messages ----

    def append(self, message: AnyMessage) -> None:
        place = len(self.messages)
        self.messages.append(message)
        if type(message) is DraftMessage:
            self._touched.append(place)
        if self._ids is not None and message.role == "assistant":
            self._ids.setdefault(message.id, []).append(place)

    def thawed(self, place: int) -> DraftMessage:
        """The message at that place, ready to be changed."""
        message = self.messages[place]
        if type(message) is DraftMessage:
            return message
        assert type(message) is AgentMessage
        draft = self.messages[place] = DraftMessage(message.id, message.role, message)
        self._touched.append(place)
        return draft

    def find_message(self, message_id: str) -> int:
        """The place of the newest assistant message with that id, or -1."""
        messages = self.messages
        if messages and messages[-1].id == message_id and messages[-1].role == "assistant":
            return len(messages) - 1
        if self._ids is None:
            self._ids = {}
            for place, message in enumerate(messages):
                if message.role == "assistant":
                    self._ids.setdefault(message.id, []).append(place)
        places = self._ids.get(message_id)
        return places[-1] if places else -1

    def cut(self, place: int, count: int) -> None:
        """Remove every message after that place, and of the message there every part after the first ``count``."""
        while len(self.messages) > place + 1:
            message = self.messages.pop()
            self._forget(len(self.messages), message, 0)
            if self._ids is not None and message.role == "assistant":
                self._ids[message.id].pop()
        self._shared = min(self._shared, len(self.messages))
        message = self.messages[place]
        if type(message) is DraftMessage:
            if len(message.parts) > count:
                self._forget(place, message, count)
                del message.parts[count:]
        elif len(message.parts) > count:
            self._forget(place, message, count)
            del self.thawed(place).parts[count:]

    def _forget(self, place: int, message: AnyMessage, start: int) -> None:
        if not self.nodes:
            return
        gone: list[Call] = []
        for index in range(start, len(message.parts)):
            call = self.nodes.pop((place, index), None)
            if call is not None:
                gone.append(call)
        for call in gone:
            call.gone = True
            if call.run is not None:
                gone.extend(call.run.nodes.values())

    def frozen(self) -> tuple[AgentMessage, ...]:
        """The messages as they are now; the very tuple that they were before, when nothing changed."""
        messages, origin = self.messages, self._origin
        same = len(messages) == len(origin) == self._shared
        for place in self._touched:
            if place < len(messages):
                message = messages[place]
                if type(message) is DraftMessage:
                    message = messages[place] = message.frozen()
                same = same and message is origin[place]
        self._touched.clear()
        if not same:
            self._origin = cast("tuple[AgentMessage, ...]", tuple(messages))
            self._shared = len(messages)
        return self._origin

    # ---- calls ----

    def node(self, message: int, part: int) -> Call:
        call = self.nodes.get((message, part))
        if call is None:
            call = self.nodes[message, part] = Call(self, message, part)
        return call

    def run_of(self, call: Call) -> Level:
        """The nested level of a call, begun when it is not there."""
        if call.run is None:
            agent = call.seen().agent
            call.run = Level(agent.messages if agent else (), self._levels, call)
        return call.run

    def added(self, message: int, part: int, call: ToolPart) -> None:
        """Tell the level's own index, if there is one, of a new call."""
        if self._open is not None and self._all is not None:
            node = self.node(message, part)
            self._open.add(call.id, node)
            self._all.add(call.id, node)

    def find_call(self, call_id: str) -> _Place | None:
        """The place of the newest open call with that id, else of the newest one."""
        if self._open is None or self._all is None:
            found, sure = self._search(call_id, _NEAR)
            if not sure and self._searches:
                self._searches -= 1
                found, sure = self._search(call_id, maxsize)
            if sure:
                return found
            self._open, self._all = self._indexed()
        call = self._open.newest(call_id) or self._all.newest(call_id)
        return (call.message, call.part) if call else None

    def _search(self, call_id: str, limit: int) -> tuple[_Place | None, bool]:
        """The best call among the newest ``limit`` messages and parts, and whether no other can be better."""
        found: _Place | None = None
        for m in range(len(self.messages) - 1, -1, -1):
            parts = self.messages[m].parts
            p = len(parts)
            for part in reversed(parts) if p <= limit else islice(reversed(parts), limit):
                p -= 1
                if type(part) is ToolPart and part.id == call_id:
                    if is_open(part):
                        return (m, p), True
                    found = found or (m, p)
            limit -= len(parts) + 1
            if limit <= 0:
                return found, m == 0 and p == 0
        return found, True

    def _indexed(self) -> tuple[Rows, Rows]:
        open_calls, all_calls = Rows(Call.is_open), Rows(Call.is_there)
        for m, message in enumerate(self.messages):
            for p, part in enumerate(message.parts):
                if type(part) is ToolPart:
                    call = self.node(m, p)
                    all_calls.add(part.id, call)
                    if is_open(part):
                        open_calls.add(part.id, call)
        return open_calls, all_calls


class _Visit:
    """A level on the way through a tree: its draft, once one is needed, and the call that is being looked at."""

    __slots__ = ("at", "is_wanted", "level", "stops")

    def __init__(self, messages: Sequence[AnyMessage], level: Level | None, wanted: Callable[[ToolPart], bool]) -> None:
        self.stops = _stops(messages, level.nodes if level else {}, wanted)
        self.level = level
        self.at: _Place = (0, 0)
        self.is_wanted = False


def _stops(
    messages: Sequence[AnyMessage], nodes: dict[_Place, Call], wanted: Callable[[ToolPart], bool]
) -> Iterator[tuple[_Place, ToolPart, bool]]:
    """The calls of one level that are wanted (then True) or may have a nested run, newest first."""
    for m in range(len(messages) - 1, -1, -1):
        parts = messages[m].parts
        p = len(parts)
        for part in reversed(parts):
            p -= 1
            if type(part) is ToolPart:
                if wanted(part):
                    yield (m, p), part, True
                elif part.agent is not None or (nodes and (m, p) in nodes):
                    yield (m, p), part, False


def calls_inside(level: Level, wanted: Callable[[ToolPart], bool]) -> Iterator[Call]:
    """The wanted calls of a level and of all that is nested in it, newest first.

    Frozen runs are read as they are; only the way to a wanted call is thawed.
    """
    visits = [_Visit(level.messages, level, wanted)]
    while visits:
        visit = visits[-1]
        stop = next(visit.stops, None)
        if stop is None:
            visits.pop()
            if visits and visits[-1].is_wanted:
                yield _drafted(visits).node(*visits[-1].at)
            continue
        visit.at, part, visit.is_wanted = stop
        call = visit.level.nodes.get(visit.at) if visit.level else None
        if call is not None and call.run is not None:
            visits.append(_Visit(call.run.messages, call.run, wanted))
        elif part.agent is not None:
            visits.append(_Visit(part.agent.messages, None, wanted))
        elif visit.is_wanted:
            yield _drafted(visits).node(*visit.at)


def _drafted(visits: list[_Visit]) -> Level:
    """The draft of the innermost level, with those of the levels around it that have none yet."""
    known = len(visits) - 1
    while visits[known].level is None:
        known -= 1
    level = visits[known].level
    assert level is not None
    for visit, inner in pairwise(visits[known:]):
        level = inner.level = level.run_of(level.node(*visit.at))
    return level
