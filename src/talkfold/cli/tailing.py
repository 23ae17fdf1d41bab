"""``tail``: the end of a log, and what comes after it, from whatever process it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import anyio
from cyclopts import Parameter

from ..errors import CursorAhead, InvalidArgument
from ..store.protocol import Session, SessionStore
from .choosing import EVERYTHING, Choice, Which
from .interrupting import until_interrupted
from .opening import find, opened
from .options import RowForm, SessionId, Where
from .output import say
from .stepping import Step, StepReader, begin_of_last, read_steps, tell_steps

__all__ = ("tail",)

_PAGE = 1000


async def tail(
    session: SessionId,
    /,
    *,
    newest: Annotated[
        int, Parameter(name=["--last", "-n"], help="So many steps of what is there.", show_default=True)
    ] = 10,
    follow: Annotated[
        bool, Parameter(name=["--follow", "-f"], help="Go on with what comes, also after a run has ended.")
    ] = False,
    after: Annotated[
        int | None, Parameter(help="Begin after this action of the log instead; 0 is its beginning.")
    ] = None,
    which: Which = EVERYTHING,
    every: Annotated[bool, Parameter(help="A row for every action, also for each piece of a streamed text.")] = False,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Show the newest steps of a log, and with `-f` what comes.

    What another process writes is there as soon as it is written. Ctrl-C ends the watching and leaves the run alone;
    `talkfold follow` watches one run, and ends with it. The rows are those of `talkfold steps`; pieces of a text that
    come together are one row.

    With `--jsonl` each logged action is printed as soon as it is there; with `--json` they are one array, whole when
    the watching has ended. To go on later, give the last number that was seen to `--after`.
    """
    if newest < 0:
        raise InvalidArgument("--last", "a number of steps is not below zero")
    if after is not None and after < 0:
        raise InvalidArgument("--after", "actions are counted from 1, and 0 is the beginning")
    Choice(which)  # what cannot be meant is told before anything is opened
    async with opened(where) as store:
        found = await find(store, session, where)
        if after is not None and after > found.number:
            raise CursorAhead(found.id, after, found.number)
        begin = await _begin(store, found, newest, which) if after is None else after + 1
        state = None
        if not (form.json or form.jsonl):
            state = (await store.state(found.id, at=begin - 1, owner=found.owner)).state
            if follow:
                say(f"Following {found.id}, which has {found.number:,} actions; Ctrl-C ends it.")
        reader = StepReader(Choice(which), state=state, every=every)
        if not follow:
            told = await tell_steps(read_steps(store, found, reader, begin, found.number), form)
            if not told and not form.json and not form.jsonl:
                say("No actions there.")
            return
        async with until_interrupted():
            async with aclosing(_following(store, found, reader, begin)) as steps:
                await tell_steps(steps, form)


async def _begin(store: SessionStore, session: Session, newest: int, which: Which) -> int:
    """The number with which the newest steps begin; that after the end, when none are asked for."""
    if newest == 0 or session.number == 0:
        return session.number + 1
    return await begin_of_last(store, session, newest, which, 1, session.number)


async def _following(
    store: SessionStore, session: Session, reader: StepReader, begin: int
) -> AsyncGenerator[tuple[Step, ...]]:
    """The steps from a number on, then those that come, without end. Raises SessionErased when it is erased."""
    async for found in read_steps(store, session, reader, begin, session.number):
        yield found
    yield ()
    after = session.number
    moved = anyio.Event()

    def tell(_: int) -> None:
        moved.set()

    async with store.watch(session.id, tell, owner=session.owner):
        while True:
            moved = anyio.Event()
            page = await store.read(session.id, after=after, limit=_PAGE, owner=session.owner)
            if not page:
                await moved.wait()
                continue
            after = page[-1].number
            yield tuple(step for row in page for step in reader.feed(row))
            if len(page) < _PAGE:  # that is all there is: what may still grow is shown as it is
                yield tuple(reader.rest())
                yield ()
