"""Timings: how long everything took by the times in the log, and what it used.

Times are for people: a clock may stand still or go back. So time is counted from row to row, and only forward: no
duration is negative, parts of a duration add up to it, and where a clock went back is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ..actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
)
from ..log import LoggedAction
from ..model import Json, ToolCallState
from ._usage import Sum, Usage, model_of, usage_of
from ._walk import LaneEnd, LaneKind, OpenLane, Walk
from ._watched import PartNote

__all__ = ("CallTiming", "ClockBack", "ModelUsage", "RunTiming", "StepTiming", "Sum", "Timings", "Usage", "timings")


class CallTiming(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A tool call, a delegate call too: how long it ran, how long it waited for a person, and both together (ms).

    ``lane`` is its index among the ``lanes`` of the same log, ``number`` its ``tool-call``. One that is still open
    is counted up to the last row.
    """

    lane: int
    number: int
    id: str
    name: str
    ended: LaneEnd
    running_ms: int
    waiting_ms: int
    total_ms: int


class StepTiming(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One model step of a run or a sub-agent: from the end of the step before (or the begin of its run) to its
    ``step-finish``, its calls included.

    ``step`` is the number that the log gives it; absent: no ``step-finish`` ended it, but the end of its run (as is
    usual for the last step), or nothing at all; then it is counted up to its last row. ``lane`` is that of its run
    or sub-agent, ``first`` and ``last`` are numbers of actions, ``first_text_ms`` is the time until the first letter.
    ``usage`` is of the step's own level.
    """

    lane: int
    first: int
    last: int
    ms: int
    step: int | float | None = None
    first_text_ms: int | None = None
    model: str | None = None
    usage: Usage | None = None


class RunTiming(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A run, a turn without a run's id, or a sub-agent.

    ``waiting_ms`` is the time in which at least one call waited for a person: of a run at any depth, of a sub-agent
    at its own level. ``steps`` and ``calls`` count those of its own level; ``usage`` is of everything inside.
    """

    lane: int
    kind: LaneKind
    first: int
    last: int
    ended: LaneEnd
    ms: int
    waiting_ms: int
    steps: int
    calls: int
    id: str | None = None
    name: str | None = None
    first_text_ms: int | None = None
    usage: Usage | None = None


class ModelUsage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The sum over all rows that tell a usage and name that model; without ``model``: that name none."""

    rows: int
    usage: Usage
    model: str | None = None


class ClockBack(Struct, frozen=True, rename="camel"):
    """A row whose time is ``ms`` milliseconds before that of the row before it."""

    number: int
    ms: int


class Timings(Struct, frozen=True, rename="camel"):
    """All of a log: each row of results in the order in which things began.

    ``clock_back`` are the rows at which the clock went back, ``unread_usage`` the numbers of those whose usage could
    not be read, or only in part. ``usage`` is the sum of everything.
    """

    runs: tuple[RunTiming, ...]
    agents: tuple[RunTiming, ...]
    steps: tuple[StepTiming, ...]
    calls: tuple[CallTiming, ...]
    models: tuple[ModelUsage, ...]
    usage: Usage | None
    clock_back: tuple[ClockBack, ...]
    unread_usage: tuple[int, ...]


def timings(rows: Iterable[LoggedAction]) -> Timings:
    """What took how long, and what it used. One pass; ``rows`` start with the log's first action."""
    watch = _Watch()
    for row in rows:
        watch.read(row)
    return watch.result()


class _Step:
    """A model step that goes on. ``begun``, ``until`` and ``text`` are on the walk's clock."""

    __slots__ = ("begun", "first", "last", "model", "text", "until", "usage")

    def __init__(self, number: int, begun: int) -> None:
        self.first = number
        self.last = number
        self.begun = begun
        self.until = begun
        self.text: int | None = None
        self.model: str | None = None
        self.usage = Sum()


class _Times:
    """What the walk does not know of a lane: the phases of a call, the steps of a run, of a sub-agent both."""

    __slots__ = (
        "boundary",
        "calls",
        "running",
        "since",
        "state",
        "step",
        "steps",
        "text",
        "usage",
        "waiting",
        "waits",
        "waits_now",
        "waits_since",
    )

    def __init__(self, clock: int) -> None:
        self.usage = Sum()
        # A call: its state, since when, and how long it was in which.
        self.state: ToolCallState | None = None
        self.since = clock
        self.running = 0
        self.waiting = 0
        # A run: its step, where the one before ended, and when at least one of its calls waited (from, to).
        self.step: _Step | None = None
        self.boundary = clock
        self.steps = 0
        self.calls = 0
        self.text: int | None = None
        self.waits: list[tuple[int, int]] = []
        self.waits_now = 0
        self.waits_since = clock


_IN_STEP = (MessageStart, TextDelta, Reasoning, ToolCall, StepFinish)
_ENDS = (Finish, RunError, Stop)
_ELSEWHERE = (Send, Retry, Reset)


class _Watch:
    """The times of a log, as far as it has been read."""

    def __init__(self) -> None:
        self._walk = Walk()
        self._times: list[_Times] = []
        self._steps: list[StepTiming] = []
        self._models: dict[str | None, Sum] = {}
        self._all = Sum()
        self._unread: list[int] = []
        self._text_of: _Step | None = None  # the step that more text of the same message belongs to

    def read(self, row: LoggedAction) -> None:
        walk = self._walk
        lane = walk.step(row)
        if walk.goes_on and row.meta is None and (step := self._text_of) is not None:
            step.last, step.until = row.number, walk.clock
            return
        for new in walk.lanes[len(self._times) :]:
            self._times.append(_Times(walk.clock))
            if new.parent is not None:
                self._times[new.parent.index].calls += 1
        what = row.action.part if type(row.action) is Part else row.action
        home, level = walk.home, walk.fold.level
        # A sub-agent that goes on in another run than it began in is none of that run's own level.
        own = home if home is not None and level is not None and level.owner is home.note else None
        step = None if own is None else self._step(row.number, own, what)
        if row.meta is not None:
            self._use(row.number, row.meta, lane, step)
        if own is not None:
            self._close(row.number, own, what)
        self._text_of = step if step is not None and step.text is not None and type(what) is TextDelta else None
        for note in walk.fold.changed:
            call, changed = note.call, walk.by_call[note]
            assert call is not None
            self._move(changed, call.state)
            if changed.ended != "open":
                self._cut(changed, row.number)
        for note in walk.fold.dropped:
            self._move(walk.by_call[note], None)
            self._cut(walk.by_call[note], row.number)

    # ---- steps ----

    def _step(self, number: int, own: OpenLane, what: object) -> _Step | None:
        """The step that a row belongs to, begun when it must be."""
        times, clock = self._times[own.index], self._walk.clock
        kind = type(what)
        if kind in _ELSEWHERE:
            return None
        step = times.step
        if step is None:
            if kind not in _IN_STEP:
                return None
            step = times.step = _Step(number, times.boundary)
        step.last, step.until = number, clock
        if type(what) is TextDelta and what.delta and self._walk.fold.text is not None:
            if step.text is None:
                step.text = clock
            if times.text is None:
                times.text = clock
        return step

    def _close(self, number: int, own: OpenLane, what: object) -> None:
        """A row may be the end of a step."""
        if type(what) is StepFinish:
            self._finish_step(own, what.step)
        elif type(what) in _ENDS:
            self._cut(own, number)
        elif type(what) in _ELSEWHERE:
            self._finish_step(own, None)

    def _cut(self, lane: OpenLane, number: int) -> None:
        """A run or a sub-agent is over, whether its step was or not."""
        step = self._times[lane.index].step
        if step is not None and lane.last == number:  # else it was over before
            step.last, step.until = number, self._walk.clock
        self._finish_step(lane, None)

    def _finish_step(self, lane: OpenLane, name: float | None) -> None:
        times = self._times[lane.index]
        step, times.step, times.boundary = times.step, None, self._walk.clock
        if step is not None:
            times.steps += 1
            timing = StepTiming(
                lane=lane.index,
                first=step.first,
                last=step.last,
                ms=step.until - step.begun,
                step=name,
                first_text_ms=None if step.text is None else step.text - step.begun,
                model=step.model,
                usage=step.usage.usage(),
            )
            self._steps.append(timing)

    # ---- calls ----

    def _move(self, lane: OpenLane, state: ToolCallState | None) -> None:
        """A call is in that state now; None: it is not there any more, or the log is over."""
        times, clock = self._times[lane.index], self._walk.clock
        before, passed = times.state, clock - times.since
        if before == "running":
            times.running += passed
        elif before == "awaiting-confirmation":
            times.waiting += passed
        times.state, times.since = state, clock
        more = (state == "awaiting-confirmation") - (before == "awaiting-confirmation")
        if more and lane.parent is not None:
            for around in {lane.parent.index, lane.top.index}:
                self._wait(self._times[around], more)

    def _wait(self, run: _Times, more: int) -> None:
        if not run.waits_now:
            run.waits_since = self._walk.clock
        run.waits_now += more
        if not run.waits_now:
            run.waits.append((run.waits_since, self._walk.clock))

    # ---- usage ----

    def _use(self, number: int, meta: Mapping[str, Json], lane: OpenLane, step: _Step | None) -> None:
        usage, is_whole = usage_of(meta)
        model = model_of(meta)
        if not is_whole:
            self._unread.append(number)
        if step is not None and model is not None:
            step.model = model
        if usage is not None:
            sums = [self._all, self._times[lane.index].usage, self._models.setdefault(model, Sum())]
            for each in sums if step is None else [*sums, step.usage]:
                each.add(usage)

    # ---- all of it ----

    def result(self) -> Timings:
        walk = self._walk
        walk.finish()
        for lane in reversed(walk.lanes):
            times = self._times[lane.index]
            self._move(lane, None)
            if times.step is not None:
                times.step.last, times.step.until = lane.last, lane.until
                self._finish_step(lane, None)
            if lane.parent is not None:
                self._times[lane.parent.index].usage.include(times.usage)
        return Timings(
            runs=tuple(self._run(lane) for lane in walk.lanes if lane.parent is None),
            agents=tuple(self._run(lane) for lane in walk.lanes if lane.kind == "agent"),
            steps=tuple(sorted(self._steps, key=lambda step: step.first)),
            calls=tuple(self._call(lane, lane.note) for lane in walk.lanes if lane.note is not None),
            models=tuple(
                ModelUsage(rows=total.rows, usage=usage, model=model)
                for model, total in self._models.items()
                if (usage := total.usage()) is not None
            ),
            usage=self._all.usage(),
            clock_back=tuple(ClockBack(number, ms) for number, ms in walk.backwards),
            unread_usage=tuple(self._unread),
        )

    def _run(self, lane: OpenLane) -> RunTiming:
        times = self._times[lane.index]
        return RunTiming(
            lane=lane.index,
            kind=lane.kind,
            first=lane.first,
            last=lane.last,
            ended=lane.ended,
            ms=lane.until - lane.begun,
            waiting_ms=sum(max(0, min(end, lane.until) - start) for start, end in times.waits),
            steps=times.steps,
            calls=times.calls,
            id=lane.id,
            name=lane.name,
            first_text_ms=None if times.text is None else times.text - lane.begun,
            usage=times.usage.usage(),
        )

    def _call(self, lane: OpenLane, note: PartNote) -> CallTiming:
        times, call = self._times[lane.index], note.call
        assert call is not None
        return CallTiming(
            lane=lane.index,
            number=lane.first,
            id=call.id,
            name=call.name,
            ended=lane.ended,
            running_ms=times.running,
            waiting_ms=times.waiting,
            total_ms=times.running + times.waiting,
        )
