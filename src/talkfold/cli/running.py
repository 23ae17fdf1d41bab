"""``stop``, ``follow``: a live run, from another process than its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import anyio
from cyclopts import Parameter
from msgspec import to_builtins

from .. import runs
from ..actions import Finish, Part, Retry, RunError, Send, Stop, ToolPhase
from ..codec import encode_logged
from ..errors import CursorAhead, InvalidArgument
from ..log import LoggedAction
from ..model import Json
from ..store.lease import Lease
from ..store.protocol import Session, SessionStore
from .interrupting import until_interrupted
from .opening import find, opened, read_log
from .options import Form, RowForm, SessionId, Where
from .output import document, on_terminal, paint, record, rich_console, say, write
from .telling import Telling
from .wording import lease_text

__all__ = ("follow", "stop")

_LOOK_SECONDS = 0.05
_PAGE = 1000
_LEAD = 10
_PIPE_WIDTH = 100


# ---- stop -----------------------------------------------------------------------------------------------


async def stop(
    session: SessionId,
    /,
    *,
    reason: Annotated[str | None, Parameter(help="Why, for the log.")] = None,
    by: Annotated[str | None, Parameter(help="Who stops it, for the log.")] = None,
    wait: Annotated[
        float, Parameter(help="How many seconds to wait for the run's end; it may be tidying up.", show_default=True)
    ] = 10.0,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Stop what runs in a session.

    A `stop` is logged, which the run reads in whatever process it is, and ends. The answer says which run that was and
    how it ended. The stop counts even when the run has not ended yet. Where nothing runs, nothing is logged.
    """
    if not wait >= 0:
        raise InvalidArgument("--wait", "seconds are not below zero")
    async with opened(where) as store:
        found = await find(store, session, where)
        lease = await runs.stop_run(store, found.id, owner=found.owner, actor=by, reason=reason)
        if lease is not None:
            await _ended(store, found, lease, wait)
        then = await store.get(found.id, owner=found.owner)
        rows = [row async for row in read_log(store, then, found.number + 1)]
    over = not _owns(then, lease)
    last = next((row for row in rows if lease is not None and row.run == lease.run and runs.is_end(row)), None)
    logged = any(isinstance(row.action, Stop) for row in rows)
    if form.json:
        document(_stop_json(found, logged, lease, over, last))
    else:
        say(_stop_words(found, logged, lease, over, last, wait))


async def _ended(store: SessionStore, session: Session, lease: Lease, seconds: float) -> None:
    """Wait until this run owns the session no longer, for so many seconds at most."""
    with anyio.move_on_after(seconds):
        while _owns(await store.get(session.id, owner=session.owner), lease):  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(_LOOK_SECONDS)


def _owns(session: Session, lease: Lease | None) -> bool:
    return lease is not None and session.lease is not None and session.lease.run == lease.run


def _reason(row: LoggedAction | None) -> str:
    part = row.action.part if row is not None and isinstance(row.action, Part) else None
    if isinstance(part, RunError):
        return f"error: {part.error}"
    return part.reason if isinstance(part, Finish) else "without a last word"


def _stop_words(
    session: Session, logged: bool, lease: Lease | None, over: bool, last: LoggedAction | None, wait: float
) -> str:
    if lease is None:
        settled = f"Nothing runs in {session.id} any more; the stop settles what a dead run had left."
        return settled if logged else f"Nothing runs in {session.id}."
    run = f"Run {lease.run} by {lease.holder}"
    if over:
        return f"{run} has ended ({_reason(last)})."
    return f"{run} is stopped, but has not ended within {wait:g} s: it is tidying up, or its process stands still."


def _stop_json(
    session: Session, logged: bool, lease: Lease | None, over: bool, last: LoggedAction | None
) -> dict[str, Json]:
    row: dict[str, Json] = {"id": session.id, "stopped": logged, "ended": over}
    if lease is not None:
        row |= {"run": lease.run, "holder": lease.holder}
    if last is not None and isinstance(last.action, Part):
        row |= {"number": last.number, "part": to_builtins(last.action.part)}
    return row


# ---- follow ---------------------------------------------------------------------------------------------


async def follow(
    session: SessionId,
    /,
    *,
    after: Annotated[
        int | None,
        Parameter(help="Begin after this action of the log; 0 is its beginning. [default: where the last turn begins]"),
    ] = None,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Watch a run while it goes on, until it ends.

    What is there already is shown first, then what comes, from whatever process it comes. When the run's process
    dies, its session is settled, and that is the end too. Ctrl-C ends the watching and leaves the run alone.

    With `--jsonl` each logged action is printed as soon as it is there; with `--json` all of them at the end.
    """
    if after is not None and after < 0:
        raise InvalidArgument("--after", "actions are counted from 1, and 0 is the beginning")
    async with opened(where) as store:
        found = await find(store, session, where)
        if after is not None and after > found.number:
            raise CursorAhead(found.id, after, found.number)
        begin = await _last_turn(store, found) if after is None else after
        say(f"run {lease_text(found.lease)}" if found.lease is not None else f"Nothing runs in {found.id} now.")
        async with until_interrupted():
            async with aclosing(runs.follow(store, found.id, after=begin, owner=found.owner)) as rows:
                await _show(rows, store, found, form)


async def _last_turn(store: SessionStore, session: Session) -> int:
    """The number before the newest message to the agent, or retry; 0 where there is none."""
    end = session.number
    while end > 0:
        first = max(0, end - _PAGE)
        page = await store.read(session.id, after=first, limit=end - first, owner=session.owner)
        for row in reversed(page):
            if isinstance(row.action, Send | Retry):
                return row.number - 1
        end = first
    return 0


async def _show(rows: AsyncGenerator[LoggedAction], store: SessionStore, session: Session, form: RowForm) -> None:
    if form.json:
        write(b"[" + b",".join([encode_logged(row) async for row in rows]) + b"]\n")
        return
    if form.jsonl:
        async for row in rows:
            record(encode_logged(row))
            sys.stdout.flush()
        return
    telling = Telling((rich_console().width if on_terminal() else _PIPE_WIDTH) - _LEAD)
    async for row in rows:
        paint(telling.lines(row.action))
        sys.stdout.flush()
        if isinstance(row.action, ToolPhase) and row.action.state == "awaiting-confirmation":
            lease = (await store.get(session.id, owner=session.owner)).lease
            if lease is not None and lease.waiting is not None:  # else it was answered long ago
                call = f"{session.id} {lease.waiting.call_id}"
                say(f"Answer it with `talkfold approve {call}` or `talkfold deny {call}`.")
    paint(telling.rest())
