"""Which number of a log somebody means who names a turn, a run, a call or a message."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol

from cyclopts import Parameter

from ..actions import Part, Retry, Send
from ..audit.marks import Marker
from ..errors import InvalidArgument
from ..log import LoggedAction
from ..store.protocol import Session, SessionStore
from .choosing import means_call
from .feeding import told_if_long
from .opening import read_log
from .options import AtNumber
from .output import preview
from .wording import count

__all__ = ("NEWEST", "Moment", "number_of")

_NAMED = 5
"""How many of those that there are an error names."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Moment:
    """A moment of a conversation; nothing set: the newest."""

    at: AtNumber = None
    turn: Annotated[
        int | None,
        Parameter(
            help="As it was at the end of this turn: each message to the agent and each retry begins one. They are "
            "counted from 1; -1 is the last.",
            allow_leading_hyphen=True,
        ),
    ] = None
    run: Annotated[str | None, Parameter(help="As it was at the end of this run: its id, or the beginning of it.")] = (
        None
    )
    call: Annotated[
        str | None,
        Parameter(help="As it was when this call ended: its id (the newest with it), or its action's number."),
    ] = None
    message: Annotated[
        str | None, Parameter(help="As it was after the last action that names the message with this id.")
    ] = None
    before: Annotated[bool, Parameter(help="Just before that turn, run, call, message or action began.")] = False


NEWEST = Moment()


class _Span(NamedTuple):
    """The first and the last number of something."""

    first: int
    last: int


class _Search(Protocol):
    """Reads a log from its first row, then knows where something is, or raises InvalidArgument."""

    def feed(self, row: LoggedAction) -> bool:
        """Take the next row; whether that is enough."""
        ...

    def span(self, last: int) -> _Span: ...


async def number_of(store: SessionStore, session: Session, moment: Moment) -> int | None:
    """The number after which the conversation was so; None for the newest.

    Raises InvalidArgument when there is no such thing, when several are meant, and when more than one is named.
    """
    searches: dict[str, _Search] = {}
    if moment.turn is not None:
        searches["--turn"] = _Turns(moment.turn)
    if moment.run is not None:
        searches["--run"] = _Runs(moment.run)
    if moment.call is not None:
        searches["--call"] = _Calls(moment.call, moment.before)
    if moment.message is not None:
        searches["--message"] = _Messages(moment.message)
    named = [*(["--at"] if moment.at is not None else []), *searches]
    if len(named) > 1:
        raise InvalidArgument(named[1], f"it and {named[0]} name two moments; name one")
    if not searches:
        return _at(moment)
    (search,) = searches.values()
    with told_if_long(session.number) as advance:
        async for row in read_log(store, session):
            if search.feed(row):
                break
            if row.number % _TELL == 0:
                advance(row.number)
    span = search.span(session.number)
    return span.first - 1 if moment.before else span.last


_TELL = 1000


def _at(moment: Moment) -> int | None:
    if not moment.before:
        return moment.at
    if moment.at is None:
        raise InvalidArgument("--before", "say before what: --at, --turn, --run, --call or --message")
    return max(0, moment.at - 1)


class _Turns:
    def __init__(self, given: int) -> None:
        self._given = given
        self._begins: list[int] = []

    def feed(self, row: LoggedAction) -> bool:
        if isinstance(row.action, Send | Retry):
            self._begins.append(row.number)
        return 0 < self._given < len(self._begins)

    def span(self, last: int) -> _Span:
        there = len(self._begins)
        turn = self._given if self._given > 0 else self._given + there + 1
        if not 1 <= turn <= there or self._given == 0:
            raise InvalidArgument("--turn", f"{self._given} is none; there {_are(there, 'turn')}, counted from 1")
        return _Span(self._begins[turn - 1], self._begins[turn] - 1 if turn < there else last)


class _Runs:
    def __init__(self, given: str) -> None:
        self._given = given
        self._runs: dict[str, _Span] = {}

    def feed(self, row: LoggedAction) -> bool:
        if row.run is not None:
            known = self._runs.get(row.run)
            self._runs[row.run] = _Span(known.first if known else row.number, row.number)
        return False

    def span(self, last: int) -> _Span:
        meant = [run for run in self._runs if run.startswith(self._given)]
        if self._given in self._runs:
            meant = [self._given]
        if len(meant) > 1:
            raise InvalidArgument("--run", f"{len(meant)} runs begin with {self._given!r}: {_some(meant, len(meant))}")
        if not meant:
            raise _unknown("--run", self._given, "run", [*self._runs][-_NAMED:], len(self._runs))
        return self._runs[meant[0]]


class _Calls:
    def __init__(self, given: str, before: bool) -> None:
        self._given, self._before = given, before
        self._marker = Marker()
        self._there = 0
        self._newest: deque[str] = deque(maxlen=_NAMED)
        self._born = self._ended = 0

    def feed(self, row: LoggedAction) -> bool:
        self._marker.feed(row)
        for mark in self._marker.marks:
            if mark.kind == "call":
                self._there += 1
                self._newest.append(f"{mark.id} ({mark.name}, action {mark.number})")
                if means_call(mark, self._given):
                    self._born, self._ended = mark.number, 0
            elif mark.kind == "outcome" and mark.call == self._born:
                self._ended = mark.number
        self._marker.marks.clear()
        return False

    def span(self, last: int) -> _Span:
        if not self._born:
            raise _unknown("--call", self._given, "call", self._newest, self._there)
        if not self._ended and not self._before:
            reason = f"{self._given!r} has not ended; --at {self._born} shows it as it was made, --before before that"
            raise InvalidArgument("--call", reason)
        return _Span(self._born, self._ended)


class _Messages:
    def __init__(self, given: str) -> None:
        self._given = given
        self._there = 0
        self._newest: deque[str] = deque(maxlen=_NAMED)
        self._span = _Span(0, 0)

    def feed(self, row: LoggedAction) -> bool:
        what = row.action.part if isinstance(row.action, Part) else row.action
        named = what.id if isinstance(what, Send) else getattr(what, "message_id", None)
        if named is not None and named not in self._newest:
            self._there += 1
            self._newest.append(named)
        if named == self._given:
            self._span = _Span(self._span.first or row.number, row.number)
        return False

    def span(self, last: int) -> _Span:
        if not self._span.first:
            raise _unknown("--message", self._given, "message", self._newest, self._there)
        return self._span


def _are(number: int, noun: str) -> str:
    return f"{'is' if number == 1 else 'are'} {count(number, noun) if number else f'no {noun}s'}"


def _some(ids: Sequence[str], there: int) -> str:
    shown = [preview(each, 60) for each in ids[-_NAMED:]]
    return ("…, " if there > len(shown) else "") + ", ".join(shown)


def _unknown(option: str, given: str, noun: str, newest: Sequence[str] | deque[str], there: int) -> InvalidArgument:
    if not there:
        return InvalidArgument(option, f"{given!r} is none; there is no {noun} in this log")
    return InvalidArgument(option, f"{given!r} is no {noun} of this log; there are {_some([*newest], there)}")
