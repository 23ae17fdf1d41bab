"""Where calls of a draft stand, and finding the newest of them without looking at the others.

The order is that of the contract: a later message is newer, then a later part, and a nested call is newer than the
delegate call around it. Calls are added in any order (a sub-agent goes on while its parent adds calls), so rows are
kept sorted. What has ended or is gone is left in its row and thrown away when it is met.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from .calls import is_open
from .model import ToolPart

if TYPE_CHECKING:
    from ._draft import Level

__all__ = ("Call", "OpenCalls", "Rows", "jump_from")


class Call:
    """A call's place in a draft: its level, the index of its message there, the index of its part there."""

    __slots__ = ("gone", "level", "message", "part", "run")

    def __init__(self, level: Level, message: int, part: int) -> None:
        self.level: Level = level
        self.message: int = message
        self.part: int = part
        self.run: Level | None = None
        self.gone: bool = False

    def __lt__(self, other: Call) -> bool:
        """Whether this call is older. The way up is climbed in jumps, so the depth hardly matters."""
        if self.level is other.level:
            return (self.message, self.part) < (other.message, other.part)
        depth, other_depth = self.level.depth, other.level.depth
        mine, its = _lifted(self, other_depth), _lifted(other, depth)
        if mine is its:
            return depth < other_depth
        while mine.level is not its.level:
            here, there = mine.level.jump, its.level.jump
            if here is there:
                here, there = mine.level.owner, its.level.owner
            assert here is not None
            assert there is not None
            mine, its = here, there
        return (mine.message, mine.part) < (its.message, its.part)

    def is_inside(self, level: Level) -> bool:
        """Whether the level is the call's own or one around it."""
        return self.level.depth >= level.depth and _lifted(self, level.depth).level is level

    def seen(self) -> ToolPart:
        """The call as it is now."""
        part = self.level.messages[self.message].parts[self.part]
        assert type(part) is ToolPart
        return part

    def put(self, part: ToolPart) -> None:
        """Replace the call."""
        self.level.thawed(self.message).parts[self.part] = part

    def is_open(self) -> bool:
        """Whether it is there and has not ended."""
        return not self.gone and is_open(self.seen())

    def is_there(self) -> bool:
        """Whether no retry has removed it."""
        return not self.gone


def _lifted(call: Call, depth: int) -> Call:
    """The call itself, or the delegate call around it that stands at that depth."""
    while call.level.depth > depth:
        jump = call.level.jump
        assert jump is not None
        if jump.level.depth < depth:
            jump = call.level.owner
            assert jump is not None
        call = jump
    return call


def jump_from(owner: Call) -> Call:
    """A delegate call further out, chosen so that any depth is reached in few jumps (a skew-binary chain)."""
    near = owner.level.jump
    far = near.level.jump if near else None
    if near is None or far is None:
        return owner
    return far if owner.level.depth - near.level.depth == near.level.depth - far.level.depth else owner


def _insert(row: list[Call], call: Call) -> None:
    if not row or row[-1] < call:
        row.append(call)
    else:
        insort(row, call)


class Rows:
    """Calls by a key, each row sorted from the oldest to the newest."""

    __slots__ = ("_rows", "_still")

    def __init__(self, still: Callable[[Call], bool]) -> None:
        self._rows: dict[str, list[Call]] = {}
        self._still = still

    def add(self, key: str, call: Call) -> None:
        row = self._rows.get(key)
        if row is None:
            self._rows[key] = [call]
        else:
            _insert(row, call)

    def newest(self, key: str) -> Call | None:
        """The newest call that still counts."""
        row = self._rows.get(key)
        while row:
            if self._still(row[-1]):
                return row[-1]
            row.pop()
        return None


class _Sorted:
    """Calls from the oldest to the newest, in blocks: adding or taking amid very many moves few of them."""

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: list[list[Call]] = []

    def add(self, call: Call) -> None:
        blocks = self._blocks
        if not blocks:
            blocks.append([])
        at = len(blocks) - 1
        if blocks[at] and call < blocks[at][-1]:
            at = bisect_left(blocks, call, key=_last)
        block = blocks[at]
        _insert(block, call)
        if len(block) > 2 * _BLOCK:
            blocks.insert(at + 1, block[_BLOCK:])
            del block[_BLOCK:]

    def take_all(self) -> Iterator[Call]:
        blocks, self._blocks = self._blocks, []
        return chain.from_iterable(blocks)

    def take_inside(self, level: Level) -> Iterator[Call]:
        """Every call of a level and of what is nested in it: they stand in a row, right behind the owner."""
        owner, blocks = level.owner, self._blocks
        assert owner is not None
        at = bisect_right(blocks, owner, key=_last)
        while at < len(blocks):
            block = blocks[at]
            start = end = bisect_right(block, owner)
            while end < len(block) and block[end].is_inside(level):
                end += 1
            yield from block[start:end]
            is_last = end < len(block)
            del block[start:end]
            if block:
                at += 1
            else:
                del blocks[at]
            if is_last:
                return


_BLOCK = 512


def _last(block: list[Call]) -> Call:
    return block[-1]


class OpenCalls:
    """The open calls of all levels: by name for ``toolPhase``, by place for what ends a whole run."""

    __slots__ = ("_by_name", "_by_place", "_fresh")

    def __init__(self) -> None:
        self._by_name = Rows(Call.is_open)
        self._by_place = _Sorted()
        self._fresh: list[Call] = []

    def add(self, call: Call) -> None:
        """Take note of a new call."""
        # Most calls end before anybody asks: they are sorted in only when somebody does.
        self._fresh.append(call)

    def _settle(self) -> None:
        for call in self._fresh:
            if call.is_open():
                self._by_name.add(call.seen().name, call)
                self._by_place.add(call)
        self._fresh.clear()

    def newest(self, name: str) -> Call | None:
        """The newest open call of a tool."""
        self._settle()
        return self._by_name.newest(name)

    def take_all(self) -> list[Call]:
        """Every open call, which then is none of these any more."""
        calls = [call for call in chain(self._by_place.take_all(), self._fresh) if call.is_open()]
        self._by_name = Rows(Call.is_open)
        self._fresh = []
        return calls

    def take_inside(self, level: Level) -> list[Call]:
        """Every open call of a level and of what is nested in it."""
        self._settle()
        return [call for call in self._by_place.take_inside(level) if call.is_open()]
