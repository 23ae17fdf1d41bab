"""Lanes: a log as intervals, for a waterfall: runs, the sub-agents in them, and the calls in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..log import LoggedAction
from ._walk import LaneEnd, LaneKind, OpenLane, Walk

__all__ = ("Lane", "LaneEnd", "LaneKind", "LanePlace", "LaneReader", "lanes", "lanes_by_row")


class Lane(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Something that went on for a while.

    - ``kind``: a ``run`` (all rows that name it), a ``turn`` (a send or a retry without a run, or whatever comes
      first), an ``agent`` (a delegate call with the run behind it), or any other ``call``. Further rows without a run
      belong to the run or turn before them; a stop or a reset of one that is over is a turn of its own.
    - ``id`` is the run's or the call's, ``name`` the tool's or the agent's.
    - ``parent`` is the index of the lane around it, always a smaller one; ``depth`` how many are around it.
    - ``first`` and ``last`` are the numbers of its actions: of those that belong to it or to a lane inside, and of
      the one that ended it. ``start`` and ``end`` are the earliest and the latest time among them (ms since 1970).
    - ``actions`` counts those that belong to it and to no lane inside.
    - ``ended``: how. A run: its finish reason, ``error``, ``stopped`` by somebody, ``settled`` when its process was
      gone, or ``reset``. A call: ``done``, ``error``, ``cancelled``, or what cancelled it with its whole run
      (``aborted``, ``stopped``, ``settled``); ``dropped``: still open when Retry or Reset took it away. An agent: as
      its own run says, else as its call. ``open``: the log does not say.
    """

    kind: LaneKind
    first: int
    last: int
    start: int
    end: int
    ended: LaneEnd
    actions: int
    id: str | None = None
    name: str | None = None
    parent: int | None = None
    depth: int = 0


def lanes(rows: Iterable[LoggedAction]) -> tuple[Lane, ...]:
    """The lanes of a log, in the order in which they began. One pass; ``rows`` start with the log's first action.

    A lane lies within its parent, by numbers and by times. Calls that ran at once overlap. An outcome that comes in
    another run than its call belongs to the run where it came: no lane reaches over into another run.
    """
    walk = Walk()
    for row in rows:
        walk.step(row)
    walk.finish()
    return tuple(
        Lane(
            kind=lane.kind,
            first=lane.first,
            last=lane.last,
            start=lane.start,
            end=lane.end,
            ended=lane.ended,
            actions=lane.actions,
            id=lane.id,
            name=lane.name,
            parent=None if lane.parent is None else lane.parent.index,
            depth=lane.depth,
        )
        for lane in walk.lanes
    )


def lanes_by_row(rows: Iterable[LoggedAction]) -> Iterator[int]:
    """For each row, as it comes, the index of the one lane that it belongs to: the innermost one."""
    walk = Walk()
    for row in rows:
        yield walk.step(row).index


class LanePlace(Struct, frozen=True):
    """A lane that is still being read: ``index`` and the rest as in ``Lane``."""

    index: int
    kind: LaneKind
    first: int
    id: str | None
    name: str | None


class LaneReader:
    """Tells of each row, as it comes, in which lanes it lies. It must be fed the log from its first action."""

    def __init__(self) -> None:
        self._walk = Walk()

    def feed(self, row: LoggedAction) -> tuple[LanePlace, ...]:
        """The lanes of the next row, the innermost first."""
        lane: OpenLane | None = self._walk.step(row)
        around: list[LanePlace] = []
        while lane is not None:
            around.append(LanePlace(lane.index, lane.kind, lane.first, lane.id, lane.name))
            lane = lane.parent
        return tuple(around)
