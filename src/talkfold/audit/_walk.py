"""One walk over a log that knows, at every row, which lane it belongs to: what lanes and timings both need.

What an action does to which call is what the watched fold tells; nothing of it is guessed here.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..actions import Finish, Part, Reset, Retry, RunError, Send, SessionAction, Stop, TextDelta
from ..calls import is_delegate, is_open
from ..log import SETTLER, LoggedAction
from ..model import DELEGATE_PREFIX, ToolPart
from ._watched import PartNote, WatchedFold

__all__ = ("LaneEnd", "LaneKind", "OpenLane", "Walk")

LaneKind: TypeAlias = Literal["run", "turn", "agent", "call"]
LaneEnd: TypeAlias = Literal[
    "open",
    "stop",
    "max-steps",
    "aborted",
    "error",
    "stopped",
    "settled",
    "reset",
    "done",
    "cancelled",
    "dropped",
]


class OpenLane:
    """A lane while it is being read. ``begun`` and ``until`` are on the walk's clock; ``note`` is its call."""

    __slots__ = (
        "actions",
        "begun",
        "depth",
        "end",
        "ended",
        "first",
        "id",
        "index",
        "kind",
        "last",
        "name",
        "note",
        "own_end",
        "parent",
        "start",
        "top",
        "until",
    )

    def __init__(
        self,
        index: int,
        kind: LaneKind,
        row: LoggedAction,
        clock: int,
        *,
        lane_id: str | None = None,
        name: str | None = None,
        parent: OpenLane | None = None,
        note: PartNote | None = None,
    ) -> None:
        self.index = index
        self.kind: LaneKind = kind
        self.id = lane_id
        self.name = name
        self.parent = parent
        self.note = note
        self.top: OpenLane = parent.top if parent else self
        self.depth: int = parent.depth + 1 if parent else 0
        self.first = self.last = row.number
        self.start = self.end = row.time
        self.begun = self.until = clock
        self.ended: LaneEnd = "open"
        self.own_end = False  # a sub-agent's run has said how it ended
        self.actions = 0

    def reach(self, row: LoggedAction, clock: int) -> None:
        """The lane goes on to this row."""
        self.last, self.until = row.number, clock
        if row.time > self.end:
            self.end = row.time
        elif row.time < self.start:
            self.start = row.time


class Walk:
    """The lanes of a log, as far as it has been read.

    After a step: ``home`` is the lane of the level that the row was for. ``clock`` counts the milliseconds that went
    forward between rows: whatever is measured with it is never negative and adds up. ``backwards`` are the rows
    whose time was before that of the row before: number, and how many milliseconds. ``goes_on``: the row brought
    more text of what the row before brought text of.
    """

    def __init__(self) -> None:
        self.fold = WatchedFold(keep_text=False)
        self.lanes: list[OpenLane] = []
        self.by_call: dict[PartNote, OpenLane] = {}
        self.home: OpenLane | None = None
        self.clock = 0
        self.backwards: list[tuple[int, int]] = []
        self._time: int | None = None
        self._runs: dict[str, OpenLane] = {}
        self._newest: OpenLane | None = None
        self.goes_on = False
        self._text: tuple[str, str | None, str | None] | None = None  # message, within and run of the delta before

    def step(self, row: LoggedAction) -> OpenLane:
        """Read one row; the innermost lane that it belongs to."""
        self._tick(row)
        fold, action = self.fold, row.action
        # Most of a log is text: as long as it goes on for one message of one run, nothing else can change.
        text = None
        if type(action) is Part and type(part := action.part) is TextDelta:
            text = part.message_id, action.within, row.run
            if text == self._text and self.home is not None:
                self.goes_on = True
                self.home.actions += 1
                self.home.reach(row, self.clock)
                return self.home
        self.goes_on, self._text = False, text
        fold.step(row.number, action)
        top = self._top(row)
        owner = fold.level.owner if fold.level is not None else None
        lane = self.home = top if owner is None else self._inside(self.by_call[owner], top)
        if fold.dropped:
            self._drop(row, top)
        if fold.changed:
            lane = self._change(row, lane)
        lane.actions += 1
        lane.reach(row, self.clock)
        self._end(row, top, owner)
        return lane

    def finish(self) -> None:
        """Let every lane reach as far as those inside. No step may follow."""
        for lane in reversed(self.lanes):
            around = lane.parent
            if around is not None:
                around.last = max(around.last, lane.last)
                around.start = min(around.start, lane.start)
                around.end = max(around.end, lane.end)
                around.until = max(around.until, lane.until)

    def _tick(self, row: LoggedAction) -> None:
        passed = 0 if self._time is None else row.time - self._time
        if passed < 0:
            self.backwards.append((row.number, -passed))
        else:
            self.clock += passed
        self._time = row.time

    # ---- which lane ----

    def _top(self, row: LoggedAction) -> OpenLane:
        """The run that the row names; without one, the run or turn before, or a new turn."""
        lane, kind = self._newest, type(row.action)
        if row.run is not None:
            lane = self._runs.get(row.run)
            if lane is None:
                lane = self._runs[row.run] = self._begin("run", row, lane_id=row.run)
        elif lane is None or kind in (Send, Retry) or (kind in (Stop, Reset) and lane.ended != "open"):
            # A stop or a reset of what is over may come days later: it is none of it.
            lane = self._begin("turn", row)
        self._newest = lane
        return lane

    def _begin(
        self,
        kind: LaneKind,
        row: LoggedAction,
        *,
        lane_id: str | None = None,
        name: str | None = None,
        parent: OpenLane | None = None,
        note: PartNote | None = None,
    ) -> OpenLane:
        lane = OpenLane(len(self.lanes), kind, row, self.clock, lane_id=lane_id, name=name, parent=parent, note=note)
        self.lanes.append(lane)
        return lane

    @staticmethod
    def _inside(lane: OpenLane, top: OpenLane) -> OpenLane:
        return lane if lane.top is top else top

    # ---- what happens in it ----

    def _change(self, row: LoggedAction, home: OpenLane) -> OpenLane:
        """Calls were made or changed. The lane of the row: that of the one call that it is about, if there is one."""
        for note in self.fold.changed:
            call = note.call
            assert call is not None
            lane = self.by_call.get(note)
            if lane is None:
                lane = self.by_call[note] = self._call(row, call, home, note)
            elif lane.top is home.top:
                lane.reach(row, self.clock)
            if not lane.own_end:
                lane.ended = _call_end(call, row)
        if _ends_runs(row.action):
            return home
        (note,) = self.fold.changed
        return self._inside(self.by_call[note], home.top)

    def _call(self, row: LoggedAction, call: ToolPart, home: OpenLane, note: PartNote) -> OpenLane:
        kind: LaneKind = "agent" if is_delegate(call) else "call"
        name = call.name[len(DELEGATE_PREFIX) :] if kind == "agent" else call.name
        return self._begin(kind, row, lane_id=call.id, name=name, parent=home, note=note)

    def _drop(self, row: LoggedAction, top: OpenLane) -> None:
        for note in self.fold.dropped:
            lane = self.by_call[note]
            call = note.call
            if call is not None and is_open(call):
                if not lane.own_end:
                    lane.ended = "dropped"
                if lane.top is top:
                    lane.reach(row, self.clock)

    def _end(self, row: LoggedAction, top: OpenLane, owner: PartNote | None) -> None:
        """Whether the row says how its run ended, or that of a sub-agent. The first such row counts."""
        if not _ends_runs(row.action):
            return
        if owner is not None:
            agent = self.by_call[owner]
            if not agent.own_end:
                agent.ended, agent.own_end = _run_end(row), True
        elif self.fold.level is not None and top.ended == "open":
            top.ended = _run_end(row)


def _ends_runs(action: SessionAction) -> bool:
    kind = type(action.part) if type(action) is Part else type(action)
    return kind in (Finish, RunError, Stop, Reset)


def _run_end(row: LoggedAction) -> LaneEnd:
    action = row.action
    if type(action) is Part:
        return action.part.reason if type(action.part) is Finish else "error"
    if type(action) is Reset:
        return "reset"
    return "settled" if row.actor == SETTLER else "stopped"


def _call_end(call: ToolPart, row: LoggedAction) -> LaneEnd:
    if call.state == "done" or call.state == "error":
        return call.state
    if is_open(call):
        return "open"
    by = _run_end(row) if _ends_runs(row.action) else "cancelled"
    return "cancelled" if by == "error" else by
