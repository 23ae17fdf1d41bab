"""Measuring in turns: A B A B …, each turn timed by the contender itself, then medians and their ratio.

Taking turns is what makes the ratios good on a shared machine: a slow minute of the disk or a busy neighbour hits
all contenders alike. Medians, because a disk's outliers say nothing about the code.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

__all__ = ("Contender", "Stopwatch", "Timing", "in_turns", "ratio")


class Stopwatch:
    """The seconds of what ran inside ``with stopwatch.running():``, so that a turn's preparation is not counted."""

    seconds: float = 0.0

    @contextmanager
    def running(self) -> Generator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds += perf_counter() - start


@dataclass(frozen=True)
class Contender:
    """Something to time. ``turn`` does ``units`` pieces of work while the stopwatch runs.

    ``every``: it takes part in every n-th round only, for those that are much slower than the rest. ``may_fail``: when
    it raises, it is out of the race instead of ending it.
    """

    name: str
    turn: Callable[[Stopwatch], Awaitable[None]]
    units: int = 1
    every: int = 1
    may_fail: bool = False


@dataclass(frozen=True)
class Timing:
    """Seconds for one piece of work: the median of all turns, and the quarter points around it."""

    median: float
    low: float
    high: float
    turns: int


async def in_turns(
    contenders: Sequence[Contender], rounds: int, warm_up: int = 1, failures: dict[str, str] | None = None
) -> dict[str, Timing]:
    """Time every contender in ``rounds`` rounds, after ``warm_up`` rounds that do not count.

    The one that goes first changes from round to round: who follows a slow one finds a cold processor cache. Who
    may fail and does is left out of the result and put into ``failures``, with the error's text.
    """
    seconds: dict[str, list[float]] = {each.name: [] for each in contenders}
    for number in range(-warm_up, rounds):
        first = number % len(contenders)
        for each in (*contenders[first:], *contenders[:first]):
            if each.name not in seconds or (number % each.every and number >= 0):
                continue
            watch = Stopwatch()
            gc.collect()
            try:
                await each.turn(watch)
            except Exception as error:
                if not each.may_fail or failures is None:
                    raise
                failures[each.name] = str(error)
                del seconds[each.name]
                continue
            if number >= 0:
                seconds[each.name].append(watch.seconds / each.units)
    return {name: _timing(samples) for name, samples in seconds.items()}


def ratio(one: Timing, other: Timing) -> float:
    """How many times as long ``one`` takes as ``other``."""
    return one.median / other.median


def _timing(samples: list[float]) -> Timing:
    if len(samples) < 2:
        return Timing(samples[0], samples[0], samples[0], 1)
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return Timing(median(samples), low, high, len(samples))
