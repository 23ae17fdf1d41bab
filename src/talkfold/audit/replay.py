"""A log, played back: the state at any number, steps forward and back, and where to go next.

A log is read once when a replay is made. Then it keeps *checkpoints*, states that all together take no more memory
than the log's rows do, the few pages of rows that were read last, and some states around the position. So the state
at any number costs the actions since a checkpoint: a few thousand, or, where a state is larger than these, as many as
take the memory that a state takes. A step, forward or back, costs about one action.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress
from operator import is_not
from typing import TypeAlias

from ..actions import SessionAction
from ..errors import InvalidArgument
from ..fold import Draft, fold
from ..log import LoggedAction
from ..model import EMPTY_SESSION, AgentMessage, SessionState, ToolPart
from .marks import Mark, Marker, MarkKind, Marks
from .trail import NEAR, Known, Trail, nearest

__all__ = ("PAGE_BYTES", "PAGE_ROWS", "Pages", "Replay")

Pages: TypeAlias = Callable[[int, int], Sequence[LoggedAction]]
"""``(after, limit)`` in, rows out: those after that number, in order, at most so many; none at the end of the log."""

PAGE_ROWS = 4096
"""The most rows of a page, unless told otherwise. A checkpoint may follow every page."""

PAGE_BYTES = 2**20
"""A page ends with the row with which its bodies reach so many bytes."""

_PAGES_HELD = 4
_ROW_BYTES = 64
"""What a row takes beside its body."""


class Replay:
    """A log with a position. ``last`` is its last number, ``marks`` where something happened, in order.

    ``rows`` is the whole log, as a sequence or as a function that gives pages of it (as a store's ``read`` does); it
    is read once now and must stay the same. Raises InvalidArgument when its numbers do not count from 1 without gaps.
    The position is 0 at first, before all actions; one replay must not be used from two threads at once.
    """

    def __init__(
        self, rows: Sequence[LoggedAction] | Pages, *, page_rows: int = PAGE_ROWS, page_bytes: int = PAGE_BYTES
    ) -> None:
        if page_rows < 1:
            raise InvalidArgument("page_rows", "a page has at least one row")
        self._page_rows, self._page_bytes = page_rows, page_bytes
        self._read: Pages = rows if callable(rows) else lambda after, limit: rows[after : after + limit]
        self._starts = [0]  # page k has the rows after starts[k], through starts[k + 1]
        self._checkpoints: list[Known] = [(0, EMPTY_SESSION)]
        self._held: OrderedDict[int, list[SessionAction]] = OrderedDict()
        self._trail = Trail()
        self.last: int = 0
        self._marks = self._index()
        self.marks: tuple[Mark, ...] = self._marks.all

    # ---- states ----

    @property
    def number(self) -> int:
        """The position: how many actions have been applied."""
        return self._trail.number

    @property
    def state(self) -> SessionState:
        """The state at the position."""
        return self._trail.state

    def state_at(self, number: int) -> SessionState:
        """The state after so many actions; the position stays. Raises InvalidArgument like ``seek``."""
        at, state = self._nearest(number)
        return fold(self._actions(at, number), state)

    def seek(self, number: int) -> SessionState:
        """Go to a number; the state there. Raises InvalidArgument for one that the log does not have."""
        state = self.state_at(number)
        self._trail.arrive(number, state)
        return state

    def step(self, by: int = 1) -> SessionState:
        """Go so many actions forward, or back, but not beyond the ends of the log; the state there."""
        number = min(max(self.number + by, 0), self.last)
        if abs(number - self.number) > NEAR:
            return self.seek(number)
        return self._trail.walk(self._nearest(number), number, self._actions)

    def _nearest(self, number: int) -> Known:
        """A state that is known, at that number or before."""
        if not 0 <= number <= self.last:
            raise InvalidArgument("number", f"{number} is not between 0 and {self.last}")
        places = (nearest(self._checkpoints, number), self._trail.nearest(number))
        return max((known for known in places if known is not None), key=lambda known: known[0])

    # ---- marks ----

    def find(self, *kinds: MarkKind, id: str | None = None) -> tuple[Mark, ...]:  # noqa: A002
        """The marks of these kinds (of all kinds, when none is named), with that id if one is given."""
        return self._marks.find(*kinds, id=id)

    def of_call(self, number: int) -> tuple[Mark, ...]:
        """What became of the call that the action with that number made: itself, its phases, its outcomes."""
        return self._marks.of_call(number)

    def next_mark(self, *kinds: MarkKind) -> Mark | None:
        """The first mark after the position, of these kinds if any are named."""
        return self._marks.after(self.number, *kinds)

    def previous_mark(self, *kinds: MarkKind) -> Mark | None:
        """The last mark before the position, of these kinds if any are named."""
        return self._marks.before(self.number, *kinds)

    # ---- rows ----

    def _index(self) -> Marks:
        """Read the log: its pages, its checkpoints, its marks."""
        marker = Marker()
        draft, feed = Draft(), marker.feed
        page: list[SessionAction] = []
        size = since = 0
        while rows := self._read(self.last, self._page_rows):
            for row in rows:
                if row.number != self.last + 1:
                    raise InvalidArgument("rows", f"number {row.number} stands where {self.last + 1} should stand")
                self.last += 1
                feed(row)
                page.append(row.action)
                size += len(row.body) + _ROW_BYTES
                if len(page) == self._page_rows or size >= self._page_bytes:
                    draft.feed(page)
                    state = draft.frozen()
                    self._starts.append(self.last)
                    since += size
                    if since >= _unshared(self._checkpoints[-1][1], state):
                        self._checkpoints.append((self.last, state))
                        since = 0
                    page.clear()
                    size = 0
        if self._starts[-1] != self.last:
            self._starts.append(self.last)
        return Marks(marker.marks)

    def _actions(self, after: int, through: int) -> Iterator[SessionAction]:
        page = bisect_right(self._starts, after) - 1
        while after < through:
            start, end = self._starts[page], self._starts[page + 1]
            actions = self._page(page)
            yield from actions if (after, through) == (start, end) else actions[after - start : through - start]
            after, page = end, page + 1

    def _page(self, page: int) -> list[SessionAction]:
        actions = self._held.get(page)
        if actions is None:
            start, end = self._starts[page], self._starts[page + 1]
            actions = list[SessionAction]()
            while len(actions) < end - start:
                rows = self._read(start + len(actions), end - start - len(actions))
                if not rows:
                    raise InvalidArgument("rows", f"number {start + len(actions) + 1} is not there any more")
                actions += [row.action for row in rows]
            if len(self._held) == _PAGES_HELD:
                self._held.popitem(last=False)
            self._held[page] = actions
        else:
            self._held.move_to_end(page)
        return actions


_MESSAGE_BYTES = 128
"""About what a new message or part takes, without its text. Values in calls are shared with the log's rows."""


def _unshared(before: SessionState, after: SessionState) -> int:
    """About how many bytes the second state takes that it does not share with the first."""
    size = 0
    levels = [(before.messages, after.messages)]
    while levels:
        one, other = levels.pop()
        if one is other:
            continue
        size += 8 * len(other)
        shared = min(len(one), len(other))
        # Of a long conversation nearly all messages are shared, and each page looks through all of them.
        changed = compress(range(shared), map(is_not, one, other))
        for m in chain(changed, range(shared, len(other))):
            message, known = other[m], one[m] if m < shared else _NOTHING
            size += _MESSAGE_BYTES
            for p, part in enumerate(message.parts):
                old = known.parts[p] if p < len(known.parts) else None
                if part is old:
                    continue
                size += _MESSAGE_BYTES
                if not isinstance(part, ToolPart):
                    size += len(part.text)
                elif part.agent is not None:
                    agent = old.agent if isinstance(old, ToolPart) else None
                    levels.append((agent.messages if agent else (), part.agent.messages))
    return size


_NOTHING = AgentMessage("", "assistant", ())
