"""Logs that are broken on purpose: the places in a log where something can go wrong, and the table of faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...actions import (
    AgentStreamPart,
    Finish,
    Part,
    Retry,
    RunError,
    Send,
    SessionAction,
    Stop,
)
from ...calls import calls_newest_first, is_open
from ...codec import encode_action
from ...fold import fold
from ...log import LoggedAction
from ...model import EMPTY_SESSION, AgentMessage, Json, SessionState, ToolPart

__all__ = (
    "Broken",
    "LogFault",
    "Rows",
    "Turn",
    "amid",
    "before",
    "broken",
    "changed",
    "cut",
    "end_of",
    "keeper",
    "numbered",
    "one_of",
    "open_calls",
    "own",
    "picked",
    "put_in",
    "row_of",
    "said_by",
    "turns",
    "with_runs",
)

Rows: TypeAlias = Sequence[LoggedAction]


class Broken(Struct, frozen=True):
    """A log with a fault, and what a reader must tell of it: codes, each with the number of the action it shows at."""

    rows: list[LoggedAction]
    expected: frozenset[tuple[str, int]]


class LogFault(Struct, frozen=True):
    """A way to break a log. ``make`` gives ``None`` where the log has no place for it; ``codes`` are all that it may
    expect."""

    codes: tuple[str, ...]
    make: Callable[[Rows, Random], Broken | None]


def row_of(action: SessionAction, like: LoggedAction | None = None, **fields: Json) -> LoggedAction:
    """A row for an action: its time and run are those of another row, unless they are given."""
    time, run = (0, None) if like is None else (like.time, like.run)
    row = LoggedAction(0, time, action, encode_action(action), None, run)
    return replace(row, **fields) if fields else row


def numbered(rows: Rows) -> list[LoggedAction]:
    """The rows with numbers from 1 on, without hashes."""
    return [replace(row, number=number, hash=None) for number, row in enumerate(rows, 1)]


# ---- what a log has -----------------------------------------------------------------------------------------


class Turn(Struct, frozen=True):
    """Indexes of a turn's first row, of the row that ends it (its own end or a stop), and of the next turn's first."""

    begin: int
    end: int
    next: int


def turns(rows: Rows) -> list[Turn]:
    begins = [at for at, row in enumerate(rows) if type(row.action) in (Send, Retry)]
    found: list[Turn] = []
    for begin, after in pairwise([*begins, len(rows)]):
        ends = (at for at in range(begin, after) if type(rows[at].action) is Stop or end_of(rows[at]) is not None)
        end = next(ends, None)
        if end is not None:
            found.append(Turn(begin, end, after))
    return found


def end_of(row: LoggedAction) -> Finish | RunError | None:
    part = own(row)
    return part if isinstance(part, Finish | RunError) else None


def own(row: LoggedAction) -> AgentStreamPart | None:
    """The part of a row of the session's own level."""
    return row.action.part if type(row.action) is Part and row.action.within is None else None


def before(rows: Rows, at: int) -> SessionState:
    return fold((row.action for row in rows[:at]), EMPTY_SESSION)


def open_calls(state: SessionState) -> list[ToolPart]:
    return [call for _, _, call in calls_newest_first(state.messages) if is_open(call)]


def said_by(state: SessionState) -> list[AgentMessage]:
    return [message for message in state.messages if message.role == "assistant"]


Where: TypeAlias = Callable[[SessionState], bool]


def amid(rows: Rows, rng: Random, wanted: Where = lambda state: True) -> tuple[int, SessionState] | None:
    """A place inside a turn that goes on, and the state there, if one is wanted."""
    places = [at for turn in turns(rows) for at in range(turn.begin + 1, turn.end + 1)]
    rng.shuffle(places)
    for at in places[:40]:
        state = before(rows, at)
        if wanted(state):
            return at, state
    return None


def picked(rows: Rows, rng: Random, wanted: Callable[[int, LoggedAction], bool]) -> int | None:
    found = [at for at, row in enumerate(rows) if wanted(at, row)]
    return rng.choice(found) if found else None


def one_of(rng: Random, *parts: AgentStreamPart) -> AgentStreamPart:
    """One of these parts."""
    return rng.choice(parts)


def put_in(rows: Rows, at: int, *put: SessionAction | LoggedAction, drop: int = 0) -> list[LoggedAction]:
    """The rows with others before that index, in place of ``drop`` of them."""
    like = rows[at - 1] if at else rows[at]
    new = [each if isinstance(each, LoggedAction) else row_of(each, like) for each in put]
    return [*rows[:at], *new, *rows[at + drop :]]


def cut(rows: Rows, at: int, *put: SessionAction | LoggedAction) -> list[LoggedAction]:
    """The rows up to that index, and others at their end."""
    return put_in(rows[:at], at, *put)


def broken(rows: Rows, *expected: tuple[str, int]) -> Broken:
    """Numbered anew; expected are codes with the index of the row where each shows."""
    return Broken(numbered(rows), frozenset((code, at + 1) for code, at in expected))


def with_runs(rows: Rows) -> list[LoggedAction]:
    """The rows, each turn with a run's id."""
    if any(row.run is not None for row in rows):
        return [*rows]
    turn = 0
    out: list[LoggedAction] = []
    for row in rows:
        turn += type(row.action) in (Send, Retry)
        out.append(replace(row, run=f"run-{turn}" if turn and type(row.action) is not Stop else None))
    return out


def changed(row: LoggedAction, action: SessionAction) -> LoggedAction:
    return replace(row, action=action, body=encode_action(action))


Make: TypeAlias = Callable[[Rows, Random], Broken | None]


def keeper(faults: dict[str, LogFault]) -> Callable[..., Callable[[Make], Make]]:
    """A decorator for that table: ``@fault(name, code, …)`` enters the way to break a log that it stands over."""

    def fault(name: str, *codes: str) -> Callable[[Make], Make]:
        def keep(make: Make) -> Make:
            faults[name] = LogFault(codes, make)
            return make

        return keep

    return fault
