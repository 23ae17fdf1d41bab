"""Actions as rows of a log, without a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from talkfold import EMPTY_SESSION, LoggedAction, SessionAction, SessionState, encode_action, session_reducer


def rows(
    actions: Iterable[SessionAction],
    *,
    times: Sequence[int] | None = None,
    runs: Sequence[str | None] | None = None,
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
            meta=metas[number - 1] if metas else None,
        )
        for number, action in enumerate(actions, 1)
    ]


def stepped(log: Iterable[SessionAction]) -> list[SessionState]:
    """The state before the log and after each of its actions, one step of the reducer each."""
    return list(accumulate(log, session_reducer, initial=EMPTY_SESSION))
