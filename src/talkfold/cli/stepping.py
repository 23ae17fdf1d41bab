"""``steps``: a log, one step after the other. Nothing here changes it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from ..actions import Part, Reasoning, SessionAction, TextDelta
from ..codec import encode_logged
from ..errors import CursorAhead, InvalidArgument
from ..fold import fold
from ..log import LoggedAction
from ..model import SessionState
from ..reducer import session_reducer
from ..store.protocol import Session, SessionStore
from .choosing import EVERYTHING, Choice, Which
from .opening import find, opened, read_log
from .options import RowForm, SessionId, Where
from .output import Column, preview, record, say, write
from .rolling import Rolling, Size
from .wording import action_kind, clock, count, row_text

__all__ = (
    "Step",
    "StepReader",
    "begin_of_last",
    "read_steps",
    "step_numbers",
    "step_table",
    "step_text",
    "steps",
    "tell_steps",
)

_BATCH = 200
"""So many rows are set as one piece of the table, unless the log's next page takes its time."""

_LONGEST = 10_000
"""A streamed text of more pieces is told as several steps."""

_WAITING = 5_000
"""So many actions that nobody asked for are folded in one go."""


# ---- steps from rows ------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One or several actions of the log read as one step: a text that came in pieces counts as one.

    ``after`` is the state after it, and ``changed`` whether that is another than before; both are None where nobody
    asked for states.
    """

    rows: Sequence[LoggedAction]
    after: SessionState | None = None
    changed: bool | None = None

    @property
    def first(self) -> LoggedAction:
        """Its first action."""
        return self.rows[0]

    @property
    def last(self) -> LoggedAction:
        """Its last action."""
        return self.rows[-1]


class StepReader:
    """Makes steps of a log's rows, as they come: those that ``choice`` has.

    ``state`` is the state before the first row that is not fed with ``unseen``; without it, steps come without
    states. ``every``: each action is a step; ``opened``: so is each of the text with one of these numbers.
    """

    def __init__(
        self,
        choice: Choice,
        *,
        state: SessionState | None = None,
        every: bool = False,
        opened: Iterable[int] = (),
    ) -> None:
        self._choice = choice
        self._state = state
        self._every = every
        self._opened = frozenset(opened)
        self._run: list[LoggedAction] = []
        self._passed: list[SessionAction] = []

    @property
    def from_start(self) -> bool:
        """Whether the rows before those that are asked for must be fed as well."""
        return self._choice.from_start

    def unseen(self, row: LoggedAction) -> None:
        """A row before those that are asked for: only the choice looks at it."""
        self._choice.has(row)

    def feed(self, row: LoggedAction) -> Iterator[Step]:
        """The steps that are whole now that the next row is there."""
        run = self._run
        wanted = self._choice.has(row)
        if run and not (wanted and len(run) < _LONGEST and _goes_on(run[-1], row)):
            yield from self.rest()
            run = self._run
        if wanted:
            run.append(row)
        elif self._state is not None:
            self._pass([row])

    def rest(self) -> Iterator[Step]:
        """The step that the rows so far end with, whether or not more of it comes."""
        run, self._run = self._run, []
        if not run:
            return
        if not self._choice.says(run):
            if self._state is not None:
                self._pass(run)
        elif self._every or any(run[0].number <= number <= run[-1].number for number in self._opened):
            yield from (self._step([row]) for row in run)
        else:
            yield self._step(run)

    def _pass(self, rows: Sequence[LoggedAction]) -> None:
        self._passed += [row.action for row in rows]
        if len(self._passed) >= _WAITING:
            self._arrive()

    def _arrive(self) -> SessionState:
        assert self._state is not None
        self._state = fold(self._passed, self._state)
        self._passed.clear()
        return self._state

    def _step(self, rows: Sequence[LoggedAction]) -> Step:
        if self._state is None:
            return Step(rows)
        before = self._arrive()
        single = len(rows) == 1
        after = session_reducer(before, rows[0].action) if single else fold((row.action for row in rows), before)
        self._state = after
        return Step(rows, after, after is not before and (single or after != before))


def _goes_on(one: LoggedAction, other: LoggedAction) -> bool:
    """Whether the second action is the next piece of the same text or the same thought."""
    before, after = one.action, other.action
    if not (isinstance(before, Part) and isinstance(after, Part)) or other.number != one.number + 1:
        return False
    piece, more = before.part, after.part
    return (
        isinstance(piece, TextDelta | Reasoning)
        and isinstance(more, TextDelta | Reasoning)
        and type(piece) is type(more)
        and (before.within, piece.message_id) == (after.within, more.message_id)
        and (one.run, one.actor) == (other.run, other.actor)
    )


# ---- steps in words -------------------------------------------------------------------------------------


def step_numbers(step: Step) -> str:
    """The number of a step's action, or the first and last of several."""
    first, last = step.first.number, step.last.number
    return str(first) if first == last else f"{first}-{last}"


def _kind(step: Step) -> str:
    kind = action_kind(step.first.action)
    return kind if len(step.rows) == 1 else f"{kind} x{len(step.rows)}"


def step_text(step: Step) -> str:
    """What happened, in a few words: of a text in pieces, its beginning."""
    if len(step.rows) == 1:
        return row_text(step.first)
    action = step.first.action
    inside = f"in {action.within}: " if isinstance(action, Part) and action.within is not None else ""
    return inside + preview("".join(_piece(row.action) for row in step.rows))


def _piece(action: SessionAction) -> str:
    part = action.part if isinstance(action, Part) else None
    return part.delta if isinstance(part, TextDelta) else part.text if isinstance(part, Reasoning) else ""


_COLUMNS: Sequence[Column[Step]] = (
    ("number", step_numbers),
    ("time (UTC)", lambda it: clock(it.first.time)),
    ("time", lambda it: clock(it.first.time)[-8:]),
    ("kind", _kind),
    ("what happened", step_text),
    ("status", lambda it: "" if it.after is None else it.after.status),
    ("effect", lambda it: "none" if it.changed is False else ""),
)

_SIZES = {
    "time (UTC)": Size(from_width=100),
    "time": Size(from_width=72, below=100),
    "kind": Size(least=15),
    "status": Size(least=9, from_width=72),
    "effect": Size(least=6),
}


def step_table() -> Rolling[Step]:
    """A table for steps as they come."""
    return Rolling(_COLUMNS, elastic="what happened", sizes=_SIZES, styles={"kind": "bold", "effect": "dim"})


# ---- the command ----------------------------------------------------------------------------------------


async def steps(
    session: SessionId,
    /,
    *,
    first: Annotated[int, Parameter(name="--from", help="Begin with this action.", show_default=True)] = 1,
    last: Annotated[int | None, Parameter(name="--to", help="End with this action. [default: the newest]")] = None,
    newest: Annotated[int | None, Parameter(name="--last", help="Only so many of these steps, the newest.")] = None,
    which: Which = EVERYTHING,
    every: Annotated[bool, Parameter(help="A row for every action, also for each piece of a streamed text.")] = False,
    opened_at: Annotated[
        tuple[int, ...],
        Parameter(name="--open", help="A row for each piece of the streamed text with this number; may be repeated."),
    ] = (),
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Walk through a log, one action after the other.

    Each row says what happened, the session's status after it, and whether it changed anything. A text that was
    streamed in pieces is one row, which `--open` and `--every` open. Options that choose actions may be combined:
    what is shown is what all of them mean. With `--json` and `--jsonl` the logged actions themselves are printed,
    with their envelopes, one for every action. `talkfold step` shows one action in full.
    """
    if first < 1:
        raise InvalidArgument("--from", "actions are counted from 1")
    if newest is not None and newest < 1:
        raise InvalidArgument("--last", "at least one step is shown")
    Choice(which)  # what cannot be meant is told before anything is opened
    async with opened(where) as store:
        found = await find(store, session, where)
        end = found.number if last is None else last
        if end > found.number:
            raise CursorAhead(found.id, end, found.number)
        begin = first if newest is None else await begin_of_last(store, found, newest, which, first, end)
        state = None
        if not (form.json or form.jsonl):
            state = (await store.state(found.id, at=min(begin - 1, found.number), owner=found.owner)).state
        reader = StepReader(Choice(which), state=state, every=every, opened=opened_at)
        told = await tell_steps(read_steps(store, found, reader, begin, end), form)
    if not told and not form.json and not form.jsonl:
        say(
            "No actions there." if which == EVERYTHING else f"None of {count(max(0, end - begin + 1), 'action')} is so."
        )


async def read_steps(
    store: SessionStore, session: Session, reader: StepReader, first: int, last: int
) -> AsyncIterator[tuple[Step, ...]]:
    """The steps of these actions, as they are found; nothing, now and then, so that what was found can be shown."""
    unseen = first - 1 if reader.from_start else 0
    if unseen:
        async for row in read_log(store, session, 1, unseen):
            reader.unseen(row)
    async for row in read_log(store, session, first, last):
        found = tuple(reader.feed(row))
        if found or row.number % _BATCH == 0:
            yield found
    yield tuple(reader.rest())


async def tell_steps(found: AsyncIterator[tuple[Step, ...]], form: RowForm) -> int:
    """Print steps in the form that was asked for; how many there were. After no steps, what is there is shown."""
    if form.json:
        return await _tell_array(found)
    told = 0
    if form.jsonl:
        async for some in found:
            for row in (row for step in some for row in step.rows):
                record(encode_logged(row))
            told += len(some)
            sys.stdout.flush()
        return told
    table = step_table()
    batch: list[Step] = []
    async for some in found:
        batch += some
        if len(batch) >= _BATCH or not some:
            table.add(batch)
            told += len(batch)
            batch.clear()
    table.add(batch)
    return told + len(batch)


async def _tell_array(found: AsyncIterator[tuple[Step, ...]]) -> int:
    """One JSON array, whole also when it ends with Ctrl-C or an error."""
    told = 0
    write(b"[")
    try:
        async for some in found:
            for row in (row for step in some for row in step.rows):
                write((b"," if told else b"") + encode_logged(row))
                told += 1
            if not some:
                sys.stdout.flush()
    finally:
        write(b"]\n")
    return told


async def begin_of_last(store: SessionStore, session: Session, number: int, which: Which, first: int, last: int) -> int:
    """Where the newest ``number`` of the steps from ``first`` through ``last`` begin; ``first`` when they are fewer.

    Looks at the end of the log first, then at ever more of it.
    """
    span = max(1000, 4 * number)
    while True:
        reader = StepReader(Choice(which))
        begin = first if reader.from_start else max(first, last - span + 1)
        seen = 0
        newest: deque[int] = deque(maxlen=number)
        async for found in read_steps(store, session, reader, begin, last):
            for step in found:
                seen += 1
                newest.append(step.first.number)
        if begin == first or seen > number:  # the first one may have begun before: one more must be known
            return newest[0] if len(newest) == number else first
        span *= 4
