"""The pure core: folding actions that are decoded, folding from bytes, and ten times the log.

All with the realistic conversation, and the growth also with one endless message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from talkfold.actions import Part, SessionAction, TextDelta
from talkfold.codec import decode_actions
from talkfold.fold import fold

from .bench import Bench
from .logs import bodies, conversation, one_message
from .measure import Contender, Stopwatch, in_turns, ratio
from .table import Line, duration

__all__ = ("fold_bytes", "fold_decoded", "fold_growth")


async def fold_decoded(bench: Bench) -> list[Line]:
    """Actions that are Python objects already."""
    count = bench.size(100_000, 20_000)
    actions = conversation(count)
    contenders = [_timed("fold", lambda: fold(actions), count), _timed("loop", lambda: _look_at(actions), count)]
    times = await in_turns(contenders, bench.size(15, 5))
    rate, most = (1 / times[name].median / 1e6 for name in ("fold", "loop"))
    reached = f"{rate:.2f} M/s (a loop that only collects the text: {most:.2f} M/s)"
    return [Line("fold decoded actions", "3 M/s", reached, rate >= 3)]


def _look_at(actions: Sequence[SessionAction]) -> None:
    """The least that any fold in Python must do: tell the actions apart, and collect the text. It says how fast this
    machine is today, and how much of the fold's time is the fold's own."""
    chunks: list[str] = []
    for action in actions:
        if type(action) is Part:
            part = action.part
            if type(part) is TextDelta and action.within is None:
                chunks.append(part.delta)


async def fold_bytes(bench: Bench) -> list[Line]:
    """The JSON of the actions, one bytes object each, as the log stores them."""
    count = bench.size(100_000, 20_000)
    rows = bodies(conversation(count))
    contenders = [
        _timed("both", lambda: fold(decode_actions(rows)), count),
        _timed("decode", lambda: decode_actions(rows), count),
    ]
    times = await in_turns(contenders, bench.size(15, 5))
    share = ratio(times["both"], times["decode"])
    both, decode = duration(times["both"].median), duration(times["decode"].median)
    reached = f"{share:.2f} × ({both} an action; decoding {decode})"
    return [Line("fold from bytes", "1.5 × decoding alone", reached, share <= 1.5)]


async def fold_growth(bench: Bench) -> list[Line]:
    """Ten times the log in at most eleven times the time."""
    small = bench.size(20_000, 4_000)
    return [
        await _growth("fold 10 × the log", conversation, small, bench.size(11, 3)),
        await _growth("the same, all of it one message", one_message, small, bench.size(11, 3)),
    ]


async def _growth(work: str, log: Callable[[int], list[SessionAction]], small: int, rounds: int) -> Line:
    long, short = log(10 * small), log(small)
    times = await in_turns([_timed("long", lambda: fold(long)), _timed("short", lambda: _ten_times(short), 10)], rounds)
    share = ratio(times["long"], times["short"])
    reached = (
        f"{share:.1f} × ({small:,} {duration(times['short'].median)}; {10 * small:,} {duration(times['long'].median)})"
    )
    return Line(work, "11 × the time", reached, share <= 11)


def _ten_times(actions: Sequence[SessionAction]) -> None:
    """The short log as often as the long one holds it, so that both are timed over the same span."""
    for _ in range(10):
        fold(actions)


def _timed(name: str, work: Callable[[], object], units: int = 1) -> Contender:
    async def turn(watch: Stopwatch) -> None:
        with watch.running():
            result = work()
        del result  # freeing it is not part of the work

    return Contender(name, turn, units)
