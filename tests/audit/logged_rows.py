"""Actions as rows of a log, without a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from talkfold import EMPTY_SESSION, LoggedAction, SessionAction, SessionState, encode_action, session_reducer
from talkfold.testing.strategies import logs


def rows(
    actions: Iterable[SessionAction],
    *,
    times: Sequence[int] | None = None,
    runs: Sequence[str | None] | None = None,
    actors: Sequence[str | None] | None = None,
    metas: Sequence[dict[str, Any] | None] | None = None,
) -> list[LoggedAction]:
    """Rows with the numbers 1, 2, 3 …; a second apart, unless times are given."""
    return [
        LoggedAction(
            number,
            times[number - 1] if times else number * 1000,
            action,
            encode_action(action),
            None,
            run=runs[number - 1] if runs else None,
            actor=actors[number - 1] if actors else None,
            meta=metas[number - 1] if metas else None,
        )
        for number, action in enumerate(actions, 1)
    ]


def stepped(log: Iterable[SessionAction]) -> list[SessionState]:
    """The state before the log and after each of its actions, one step of the reducer each."""
    return list(accumulate(log, session_reducer, initial=EMPTY_SESSION))


@st.composite
def logged(draw: DrawFn) -> list[LoggedAction]:
    """Any log as rows: with runs, without, and mixed; clocks that go on, stand still and go back."""
    actions = draw(logs())
    size = len(actions)
    names = draw(st.sampled_from(((None,), ("r1",), (None, "r1", "r2"))))
    changes = draw(st.sets(st.integers(0, max(size, 1)), max_size=5))
    run = draw(st.sampled_from(names))
    time = 1_700_000_000_000
    runs: list[str | None] = []
    times: list[int] = []
    for place in range(size):
        if place in changes:
            run = draw(st.sampled_from(names))
            time += draw(st.sampled_from((-5_000, 0, 60_000)))
        time += place % 7
        runs.append(run)
        times.append(time)
    actors = [("talkfold", None)[place % 2] for place in range(size)]
    return rows(actions, times=times, runs=runs, actors=actors)
