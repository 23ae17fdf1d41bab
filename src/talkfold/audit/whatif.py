"""What would have been: skip, replace or insert actions of a log, fold again, and compare.

The log itself is not changed. What the agent would have said instead, nobody knows: the other actions stay as they
are, and those that have lost their meaning (the result of a call that was never made) are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TypeAlias

from msgspec import Struct

from ..actions import SessionAction
from ..errors import InvalidArgument
from ..fold import fold
from ..log import LoggedAction
from ..model import EMPTY_SESSION, SessionState
from ._effects import Effects
from .diff import diff
from .operations import Diff

__all__ = ("Change", "Insert", "Replace", "Skip", "WhatIf", "skip_where", "what_if", "with_changes")


class Skip(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="skip"):
    """As if these actions had not been there: the one with that number, or all through ``last``."""

    first: int
    last: int | None = None


class Replace(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="replace"):
    """As if the action with that number had been this one."""

    number: int
    action: SessionAction


class Insert(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="insert"):
    """As if these actions had come right after the one with that number; 0 is the start of the log."""

    after: int
    actions: tuple[SessionAction, ...]


Change: TypeAlias = Skip | Replace | Insert


class WhatIf(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What came of it.

    ``before`` is the state at the end of the log as it is, ``after`` the one with the changes, ``diff`` leads from
    the one to the other. ``first`` is the first number after which the states differ (0: before all actions), and
    ``first_diff`` how they differ there; both are not set when they never do. ``lost`` are the numbers of actions
    that stay and changed the session before, and change nothing any more; ``gained`` the other way round.
    """

    before: SessionState
    after: SessionState
    diff: Diff
    first: int | None = None
    first_diff: Diff | None = None
    lost: tuple[int, ...] = ()
    gained: tuple[int, ...] = ()


def skip_where(rows: Iterable[LoggedAction], unwanted: Callable[[LoggedAction], bool]) -> tuple[Skip, ...]:
    """Skips of all rows of which the function says so; rows that follow each other in one skip."""
    ranges: list[list[int]] = []
    for row in rows:
        if unwanted(row):
            if ranges and ranges[-1][1] == row.number - 1:
                ranges[-1][1] = row.number
            else:
                ranges.append([row.number, row.number])
    return tuple(Skip(first, None if first == last else last) for first, last in ranges)


def with_changes(rows: Iterable[LoggedAction], changes: Iterable[Change]) -> Iterator[tuple[int | None, SessionAction]]:
    """The actions of the log with the changes: each with its number, those that the changes brought with None.

    Raises InvalidArgument like ``what_if``.
    """
    for number, was, stays, new in _steps(rows, changes):
        if stays:
            for action in was:
                yield number, action
        for action in new:
            yield None, action


def what_if(rows: Iterable[LoggedAction], changes: Iterable[Change]) -> WhatIf:
    """The log with the changes, folded and compared with the log as it is.

    In time linear in both, and in the messages for each change that does something and makes no difference.

    ``rows`` is a whole log. Raises InvalidArgument when its numbers do not count from 1 without gaps, when a change
    names a number that is not there, or when two of them skip or replace the same action.
    """
    old, new = Effects(), Effects()
    common = EMPTY_SESSION  # the last state before the first difference, as far as it was asked for
    pending: list[SessionAction] = []  # what leads from there to the step at hand
    first: int | None = None
    first_diff: Diff | None = None
    was: list[SessionAction] = []  # from the first difference on
    would: list[SessionAction] = []
    lost: list[int] = []
    gained: list[int] = []
    for number, now, stays, brought in _steps(rows, changes):
        did, does = old.change_by(number, now), stays and new.change_by(number, now)
        came = bool(brought) and new.change_by(number, brought)
        if first is None and stays and did == does and not brought:
            pending += now
            continue
        instead = (*now, *brought) if stays else brought
        if first is None:
            if came or did != does:
                common = fold(pending, common)
                pending.clear()
                first_diff = diff(fold(now, common), fold(instead, common))
            if not first_diff:
                pending += now
                continue
            first = number
        elif stays and did != does:
            (lost if did else gained).append(number)
        was += now
        would += instead
    common = fold(pending, common)
    before, after = fold(was, common), fold(would, common)
    return WhatIf(before, after, diff(before, after), first, first_diff or None, tuple(lost), tuple(gained))


# ---- the changes, in order ------------------------------------------------------------------------------------

_Step: TypeAlias = "tuple[int, Sequence[SessionAction], bool, Sequence[SessionAction]]"
"""A number, the action with it (none at 0, before the first), whether it stays, and the actions that come then."""


def _steps(rows: Iterable[LoggedAction], changes: Iterable[Change]) -> Iterator[_Step]:
    plan = _Plan(changes)
    yield 0, (), True, plan.inserts.pop(0, ())
    last = 0
    for row in rows:
        last += 1
        if row.number != last:
            raise InvalidArgument("rows", f"number {row.number} stands where {last} should stand")
        replaced = plan.replaced.pop(last, None)
        new = plan.inserts.pop(last, ())
        stays = replaced is None and not plan.is_skipped(last)
        yield last, (row.action,), stays, new if replaced is None else (replaced, *new)
    plan.refuse_beyond(last)


class _Plan:
    """The changes by number. Asked for one number after the other."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self.inserts: dict[int, tuple[SessionAction, ...]] = {}
        self.replaced: dict[int, SessionAction] = {}
        self._skips: list[tuple[int, int]] = []
        for change in changes:
            if isinstance(change, Insert):
                if change.after < 0:
                    raise _missing(change.after)
                self.inserts[change.after] = (*self.inserts.get(change.after, ()), *change.actions)
            elif isinstance(change, Replace):
                if change.number in self.replaced:
                    raise _twice(change.number)
                self.replaced[change.number] = change.action
            else:
                last = change.first if change.last is None else change.last
                if last < change.first:
                    raise InvalidArgument("changes", f"there is nothing from {change.first} through {last}")
                self._skips.append((change.first, last))
        self._skips.sort(reverse=True)
        self._refuse_overlaps()

    def _refuse_overlaps(self) -> None:
        edges = sorted(chain(self._skips, ((number, number) for number in self.replaced)))
        if edges and edges[0][0] < 1:
            raise _missing(edges[0][0])
        for (_, end), (start, _) in pairwise(edges):
            if start <= end:
                raise _twice(start)

    def is_skipped(self, number: int) -> bool:
        """Whether the action with that number is skipped."""
        while self._skips and self._skips[-1][1] < number:
            self._skips.pop()
        return bool(self._skips) and self._skips[-1][0] <= number

    def refuse_beyond(self, last: int) -> None:
        """Raise when a change names a number after the last one."""
        named = [*self.inserts, *self.replaced, *(end for _, end in self._skips if end > last)]
        if named:
            raise _missing(max(named))


def _missing(number: int) -> InvalidArgument:
    return InvalidArgument("changes", f"the log has no action {number}")


def _twice(number: int) -> InvalidArgument:
    return InvalidArgument("changes", f"action {number} is changed twice")
