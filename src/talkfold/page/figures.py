"""What took how long and what it used: the bars of the waterfall, and sums by tool and by model."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from statistics import median

from msgspec import Struct

from ..audit.lanes import Lane
from ..audit.timings import CallTiming, Timings
from ..model import DELEGATE_PREFIX

__all__ = ("Bar", "ToolFigures", "bars", "tool_figures")


class Bar(Struct, frozen=True):
    """A lane as it is drawn: where it begins and how wide it is, in percent of the whole, and how long it took."""

    lane: Lane
    name: str
    x: float
    width: float
    ms: int
    waiting_ms: int


def bars(lanes: Sequence[Lane], timings: Timings, most: int) -> tuple[Sequence[Bar], bool]:
    """A bar for each of the first ``most`` lanes, and whether they are drawn by time.

    Else they are drawn by number: all happened at the same moment. Time in which nothing went on, between one run and
    the next, is drawn short.
    """
    took = {it.lane: (it.ms, it.waiting_ms) for it in (*timings.runs, *timings.agents)}
    took |= {it.lane: (it.total_ms, it.waiting_ms) for it in timings.calls if it.lane not in took}
    by_time = any(lane.end > lane.start for lane in lanes)
    spans = [(lane.start, lane.end) if by_time else (lane.first - 1, lane.last) for lane in lanes]
    place = _scale([span for span, lane in zip(spans, lanes, strict=True) if lane.parent is None])
    drawn: list[Bar] = []
    for index, (lane, (start, end)) in enumerate(zip(lanes[:most], spans[:most], strict=True)):
        x = place(start)
        ms, waiting_ms = took.get(index, (max(0, lane.end - lane.start), 0))
        drawn.append(Bar(lane, _name(lane), round(x, 3), round(max(place(end) - x, 0), 3), ms, waiting_ms))
    return drawn, by_time


def _name(lane: Lane) -> str:
    if lane.kind == "agent":
        return (lane.name or "").removeprefix(DELEGATE_PREFIX)
    return lane.name or lane.id or ""


def _scale(spans: Sequence[tuple[int, int]]) -> Callable[[int], float]:
    """From a time to a place between 0 and 100. Times outside all of ``spans`` take at most 2 % a gap."""
    joined: list[list[int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    busy = sum(end - start for start, end in joined) or 1
    gap = busy / max(50, 2 * len(joined))
    starts: list[tuple[int, int, float]] = []
    at = 0.0
    for start, end in joined:
        if starts:
            at += min(gap, start - starts[-1][1])
        starts.append((start, end, at))
        at += end - start
    whole = at or 1.0
    begins = [start for start, _, _ in starts]

    def place(time: int) -> float:
        index = bisect_right(begins, time) - 1
        if index < 0:
            return 0.0
        start, end, x = starts[index]
        return 100 * (x + min(time, end) - start) / whole

    return place


class ToolFigures(Struct, frozen=True):
    """All calls of one tool. ``left`` are those that were cancelled, stopped or dropped, or are still open."""

    name: str
    count: int
    done: int
    failed: int
    left: int
    median_ms: int
    longest_ms: int
    longest: int
    waiting_ms: int


def tool_figures(timings: Timings) -> Sequence[ToolFigures]:
    """The figures of each tool, the most called first."""
    return sorted(_by_tool(timings.calls), key=lambda it: (-it.count, it.name))


def _by_tool(calls: Sequence[CallTiming]) -> Iterator[ToolFigures]:
    for name, grouped in groupby(sorted(calls, key=_tool), _tool):
        group = list(grouped)
        longest = max(group, key=lambda it: it.total_ms)
        done = sum(it.ended in _DONE for it in group)
        failed = sum(it.ended == "error" for it in group)
        yield ToolFigures(
            name,
            count=len(group),
            done=done,
            failed=failed,
            left=len(group) - done - failed,
            median_ms=round(median(it.total_ms for it in group)),
            longest_ms=longest.total_ms,
            longest=longest.number,
            waiting_ms=sum(it.waiting_ms for it in group),
        )


_DONE = frozenset(("done", "stop", "max-steps"))


def _tool(call: CallTiming) -> str:
    return call.name
