"""``diff``: what changed between two moments of a session, or between two sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from ..audit.diff import diff as difference
from ..audit.operations import encode_diff
from ..errors import CursorAhead, InvalidArgument
from ..fold import fold
from ..model import EMPTY_SESSION, SessionState
from ..store.protocol import Session, SessionStore
from .changes import change_lines, changes
from .opening import find, opened, read_log
from .options import Form, SessionId, Where
from .output import document, line, paint, say
from .wording import count

__all__ = ("diff",)

_NEAR = 1000
"""States not further apart are folded one from the other: what did not change is then the same object in both."""

_First: TypeAlias = Annotated[
    int | None,
    Parameter(name="FROM", help="Compare the session as it was after this action, 0 for the start of it …"),
]
_Second: TypeAlias = Annotated[
    int | None, Parameter(name="TO", help="… with what it was after this action. [default: the newest]")
]


async def diff(
    session: SessionId,
    first: _First = None,
    second: _Second = None,
    /,
    *,
    at: Annotated[
        int | None,
        Parameter(name="--at", help="Only what this action changed; with --with, the session as it was after it."),
    ] = None,
    other: Annotated[
        str | None, Parameter(name="--with", help="Compare with this other session, instead of with itself.")
    ] = None,
    other_at: Annotated[
        int | None,
        Parameter(name="--with-at", help="The other session as it was after this action. [default: the newest]"),
    ] = None,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Tell what changed between two moments of a session, or between two sessions.

    Without numbers: what the newest action changed. Messages and calls are matched by who they are and not by where
    they stand, texts are compared word by word. `-` is what was there before, `+` is what is there after; long ones
    are cut. With `--json` the whole difference is given as operations that make the one state of the other, {} when
    they are equal.
    """
    if other is None:
        _refuse(other_at is not None, "--with-at", "it goes with --with, which names the other session")
        _refuse(at is not None and first is not None, "--at", "it stands for FROM and TO; leave those out")
        _refuse(at == 0, "--at", "actions are counted from 1, so nothing was changed by 0")
    else:
        _refuse(first is not None, "FROM", "with --with, the moments are named by --at and --with-at")
    for name, number in (("FROM", first), ("TO", second), ("--at", at), ("--with-at", other_at)):
        _refuse(number is not None and number < 0, name, f"{number} is no number of an action; 0 is before the first")
    async with opened(where) as store:
        found = await find(store, session, where)
        if other is not None:
            compared = await find(store, other, where)
            numbers = (found.number if at is None else at, compared.number if other_at is None else other_at)
            before = (await store.state(found.id, at=numbers[0], owner=found.owner)).state
            after = (await store.state(compared.id, at=numbers[1], owner=compared.owner)).state
        else:
            compared, numbers = found, _numbers(found, first, second, at)
            before, after = await _both(store, found, *numbers)
    found_difference = difference(before, after)
    if form.json:
        document(encode_diff(found_difference))
        return
    names = (_name(found, numbers[0]), _name(compared, numbers[1]))
    if not found_difference:
        say(f"No difference: {names[0]} and {names[1]} are equal.")
        return
    paint([line((f"--- {names[0]}", "bold red")), line((f"+++ {names[1]}", "bold green"))])
    paint(change_lines(before, found_difference))
    say(f"{count(changes(found_difference), 'change')}.", *_what_came_between(found, numbers, same=other is None))


def _refuse(wrong: bool, name: str, reason: str) -> None:
    if wrong:
        raise InvalidArgument(name, reason)


def _numbers(session: Session, first: int | None, second: int | None, at: int | None) -> tuple[int, int]:
    """Which two moments of one session are meant."""
    if first is None:
        last = session.number if at is None else at
        return max(last - 1, 0), last
    return first, session.number if second is None else second


async def _both(store: SessionStore, session: Session, first: int, second: int) -> tuple[SessionState, SessionState]:
    """The session at two numbers. Raises CursorAhead for one that it has not come to."""
    low, high = sorted((first, second))
    if high > session.number:
        raise CursorAhead(session.id, high, session.number)
    # A session without actions has no log to ask for.
    early = (await store.state(session.id, at=low, owner=session.owner)).state if low else EMPTY_SESSION
    if high - low <= _NEAR:
        late = fold([each.action async for each in read_log(store, session, low + 1, high)], early)
    else:
        late = (await store.state(session.id, at=high, owner=session.owner)).state
    return (early, late) if first <= second else (late, early)


def _name(session: Session, number: int) -> str:
    return f"{session.id} at {number}"


def _what_came_between(session: Session, numbers: tuple[int, int], *, same: bool) -> Iterator[str]:
    low, high = sorted(numbers)
    if same:
        yield f"What happened there: `talkfold steps {session.id} --from {low + 1} --to {high}`."
