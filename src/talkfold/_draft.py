"""A session's state while a fold works on it: mutable where the log touched it, frozen and shared everywhere else.

Reading a start state costs nothing until something is looked up in it. Lookups first try the newest few entries, where
a running conversation almost always finds what it needs; the first miss builds an index, which is then kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from ._order import Call, Rows, jump_from
from ._utf16 import joined
from .calls import is_open, with_run
from .model import AgentMessage, AgentPart, Role, TextPart, ToolPart

__all__ = ("DraftMessage", "Level", "calls_inside")

_NEAR = 16
"""How many of the newest parts are looked at before an index is built."""


class DraftMessage:
    """A message that is being changed. An open run of text is a list of chunks beside the parts, joined once."""

    __slots__ = ("_chunks", "_opened", "id", "origin", "parts", "role")

    def __init__(self, message_id: str, role: Role, origin: AgentMessage | None = None) -> None:
        self.id = message_id
        self.role: Role = role
        self.origin = origin
        self.parts: list[AgentPart] = list(origin.parts) if origin else []
        self._chunks: list[str] | None = None
        self._opened: TextPart | None = None

    def open_text(self) -> list[str]:
        """The chunks of the text at the end, for a delta that is about to be added."""
        chunks = self._chunks
        if chunks is None:
            chunks = self._chunks = []
            last = self.parts[-1] if self.parts else None
            if type(last) is TextPart:
                self.parts.pop()
                self._opened = last
                chunks.append(last.text)
        return chunks

    def close_text(self) -> None:
        """Make the chunks a part."""
        if self._chunks is None:
            return
        text, opened = "".join(self._chunks), self._opened
        same = opened is not None and len(text) == len(opened.text)
        self.parts.append(opened if opened is not None and same else TextPart(joined(text)))
        self._chunks = self._opened = None

    def cut(self, count: int) -> None:
        """Keep the first parts only; an open text, which stands after them, goes."""
        self._chunks = self._opened = None
        del self.parts[count:]

    def has_more_than(self, count: int) -> bool:
        return len(self.parts) > count or self._chunks is not None

    def frozen(self) -> AgentMessage:
        self.close_text()
        origin = self.origin
        if (
            origin is not None
            and len(origin.parts) == len(self.parts)
            and all(a is b for a, b in zip(origin.parts, self.parts, strict=True))
        ):
            return origin
        return AgentMessage(self.id, self.role, tuple(self.parts))


AnyMessage: TypeAlias = AgentMessage | DraftMessage


def calls_of(messages: Sequence[AnyMessage]) -> Iterator[tuple[int, int, ToolPart]]:
    """The calls of one level, oldest first, each with its place."""
    for m, message in enumerate(messages):
        for p, part in enumerate(message.parts):
            if type(part) is ToolPart:
                yield m, p, part


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
        "_shared",
        "_touched",
        "depth",
        "jump",
        "messages",
        "nodes",
        "owner",
    )

    def __init__(self, messages: tuple[AgentMessage, ...], levels: list[Level], owner: Call | None = None) -> None:
        self.owner = owner
        self.depth = owner.level.depth + 1 if owner else 0
        self.jump = jump_from(owner) if owner else None
        self.messages: list[AnyMessage] = list(messages)
        self.nodes: dict[tuple[int, int], Call] = {}
        self._origin = messages
        self._shared = len(messages)  # how many of the first messages have never been removed
        self._touched: list[int] = []
        self._ids: dict[str, list[int]] | None = None
        self._open: Rows | None = None
        self._all: Rows | None = None
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
            if message.has_more_than(count):
                self._forget(place, message, count)
                message.cut(count)
        elif len(message.parts) > count:
            self._forget(place, message, count)
            self.thawed(place).cut(count)

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
        """The messages as they are now; the very tuple that the level began with, when nothing changed."""
        messages, origin = self.messages, self._origin
        same = len(messages) == len(origin) == self._shared
        for place in self._touched:
            if place < len(messages):
                message = messages[place]
                if type(message) is DraftMessage:
                    message = messages[place] = message.frozen()
                same = same and message is origin[place]
        return origin if same else tuple(messages)  # type: ignore[arg-type]

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

    def find_call(self, call_id: str) -> tuple[int, int] | None:
        """The place of the newest open call with that id, else of the newest one."""
        if self._open is None or self._all is None:
            near, whole = self._find_near(call_id)
            if whole or (near and is_open(self._call(near))):
                return near
            self._open, self._all = self._indexed()
        call = self._open.newest(call_id) or self._all.newest(call_id)
        return (call.message, call.part) if call else None

    def _find_near(self, call_id: str) -> tuple[tuple[int, int] | None, bool]:
        """What a look at the newest parts finds, and whether these were all parts there are."""
        left = _NEAR
        found: tuple[int, int] | None = None
        for m in range(len(self.messages) - 1, -1, -1):
            parts = self.messages[m].parts
            for p in range(len(parts) - 1, -1, -1):
                part = parts[p]
                if type(part) is ToolPart and part.id == call_id:
                    if is_open(part):
                        return (m, p), False
                    found = found or (m, p)
                left -= 1
                if not left:
                    return found, False
            left -= 1
            if left <= 0:
                return found, False
        return found, True

    def _indexed(self) -> tuple[Rows, Rows]:
        open_calls, all_calls = Rows(Call.is_open), Rows(Call.is_there)
        for m, p, part in calls_of(self.messages):
            call = self.node(m, p)
            all_calls.add(part.id, call)
            if is_open(part):
                open_calls.add(part.id, call)
        return open_calls, all_calls

    def _call(self, place: tuple[int, int]) -> ToolPart:
        part = self.messages[place[0]].parts[place[1]]
        assert type(part) is ToolPart
        return part


class _Visit:
    """A level on the way through a tree: its draft, once one is needed, and the call that is being looked at."""

    __slots__ = ("at", "calls", "level")

    def __init__(self, messages: Sequence[AnyMessage], level: Level | None) -> None:
        self.calls = calls_of(messages)
        self.level = level
        self.at = (0, 0)


def calls_inside(level: Level, wanted: Callable[[ToolPart], bool]) -> Iterator[Call]:
    """The wanted calls of a level and of all that is nested in it, oldest first.

    Frozen runs are read as they are; only the way to a wanted call is thawed.
    """
    visits = [_Visit(level.messages, level)]
    while visits:
        visit = visits[-1]
        step = next(visit.calls, None)
        if step is None:
            visits.pop()
            continue
        m, p, part = step
        visit.at = m, p
        if wanted(part):
            yield _drafted(visits).node(m, p)
        call = visit.level.nodes.get((m, p)) if visit.level else None
        if call is not None and call.run is not None:
            visits.append(_Visit(call.run.messages, call.run))
        elif part.agent is not None:
            visits.append(_Visit(part.agent.messages, None))


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
