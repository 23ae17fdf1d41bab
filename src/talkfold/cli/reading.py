"""``show``, ``steps``, ``retry``: one session, looked at. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from msgspec import Raw

from ..actions import Part, SessionAction, TextDelta
from ..codec import encode_logged, encode_state
from ..errors import CursorAhead, InvalidArgument
from ..fold import fold
from ..log import LoggedAction
from ..model import SessionState
from ..reducer import session_reducer
from ..resumable import retry_plan
from .opening import find, opened, read_log
from .options import AtNumber, Form, RowForm, SessionId, Where
from .output import Column, document, line, paint, preview, record, say, table, write
from .plan import plan_json, plan_lines
from .sessions import session_json
from .wording import NOBODY, STATE_STYLES, action_kind, clock, count, is_left, lease_text, row_text, state_lines

__all__ = ("Step", "retry", "show", "step_numbers", "steps", "walk")


async def show(session: SessionId, /, *, at: AtNumber = None, where: Where = Where(), form: Form = Form()) -> None:
    """Show a conversation as it is now, or as it was after any action of its log."""
    async with opened(where) as store:
        found = await find(store, session, where)
        then = await store.state(found.id, at=at, owner=found.owner)
    if form.json:
        state = Raw(encode_state(then.state))
        document({"session": session_json(found), "number": then.number, "state": state})
        return
    status = then.state.status
    title = f"  {found.title}" if found.title else ""
    paint(
        [
            line(
                (found.id, "bold"),
                f"{title}  {count(then.number, 'action')}  ",
                (status, STATE_STYLES[status]),
            )
        ]
    )
    if found.lease is not None:
        paint([line((f"run {lease_text(found.lease)}", "yellow"))])
    elif is_left(found):
        paint([line((NOBODY, "yellow"))])
    paint(state_lines(then.state))


# ---- steps ----------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One or several actions of the log read as one step: a run of text deltas counts as one."""

    first: LoggedAction
    last: LoggedAction
    kind: str
    text: str
    state: SessionState
    changed: bool


_COLUMNS: Sequence[Column[Step]] = (
    ("number", lambda it: step_numbers(it)),
    ("time (UTC)", lambda it: clock(it.first.time)),
    ("kind", lambda it: it.kind),
    ("what happened", lambda it: it.text),
    ("status", lambda it: it.state.status),
    ("effect", lambda it: "" if it.changed else "none"),
)


def step_numbers(step: Step) -> str:
    """The number of a step's action, or the first and last of several."""
    first, last = step.first.number, step.last.number
    return str(first) if first == last else f"{first}-{last}"


async def steps(
    session: SessionId,
    /,
    *,
    first: Annotated[int, Parameter(name="--from", help="Begin with this action.", show_default=True)] = 1,
    last: Annotated[int | None, Parameter(name="--to", help="End with this action. [default: the newest]")] = None,
    every: Annotated[bool, Parameter(help="A row for every action, also for each piece of a streamed text.")] = False,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Walk through a log, one action after the other.

    Each row says what happened, the session's status after it, and whether it changed anything. With `--json`
    and `--jsonl` the logged actions themselves are printed, with their envelopes, one for every action.
    """
    if first < 1:
        raise InvalidArgument("--from", "actions are counted from 1")
    async with opened(where) as store:
        found = await find(store, session, where)
        end = found.number if last is None else last
        if end > found.number:
            raise CursorAhead(found.id, end, found.number)
        if form.jsonl:
            async for logged in read_log(store, found, first, end):
                record(encode_logged(logged))
            return
        log = [each async for each in read_log(store, found, first, end)]
        before = (await store.state(found.id, at=min(first - 1, found.number), owner=found.owner)).state
    if form.json:
        write(b"[" + b",".join(map(encode_logged, log)) + b"]\n")
    elif log:
        table(
            _COLUMNS,
            list(walk(log, before, every=every)),
            elastic="what happened",
            styles={"kind": "bold", "effect": "dim"},
        )
    else:
        say("No actions there.")


def walk(log: Iterable[LoggedAction], state: SessionState, *, every: bool = False) -> Iterator[Step]:
    """The log as steps, folded from ``state``; unless ``every``, a run of text deltas is one step."""
    for run in ([each] for each in log) if every else _runs(log):
        single = len(run) == 1
        after = session_reducer(state, run[0].action) if single else fold([it.action for it in run], state)
        kind = action_kind(run[0].action)
        yield Step(
            run[0],
            run[-1],
            kind if single else f"{kind} x{len(run)}",
            row_text(run[0]) if single else _joined(run),
            after,
            after is not state if single else after != state,
        )
        state = after


def _runs(log: Iterable[LoggedAction]) -> Iterator[list[LoggedAction]]:
    run: list[LoggedAction] = []
    for logged in log:
        if run and not _same_text(run[-1].action, logged.action):
            yield run
            run = []
        run.append(logged)
    if run:
        yield run


def _same_text(one: SessionAction, other: SessionAction) -> bool:
    return (
        isinstance(one, Part)
        and isinstance(other, Part)
        and isinstance(one.part, TextDelta)
        and isinstance(other.part, TextDelta)
        and (one.within, one.part.message_id) == (other.within, other.part.message_id)
    )


def _joined(run: Sequence[LoggedAction]) -> str:
    parts = [it.action for it in run if isinstance(it.action, Part)]
    inside = f"in {parts[0].within}: " if parts[0].within is not None else ""
    return inside + preview("".join(it.part.delta for it in parts if isinstance(it.part, TextDelta)))


# ---- retry ----------------------------------------------------------------------------------------------


async def retry(session: SessionId, /, *, at: AtNumber = None, where: Where = Where(), form: Form = Form()) -> None:
    """Show what Retry sends, what it drops and why, and what might run a second time.

    The conversation is kept through the last finished tool call after the last user message. Nothing is
    changed.
    """
    async with opened(where) as store:
        found = await find(store, session, where)
        then = await store.state(found.id, at=at, owner=found.owner)
    plan = retry_plan(then.state.messages)
    if form.json:
        document({"id": found.id, "number": then.number, **plan_json(plan)})
    else:
        paint(plan_lines(plan))
    if found.lease is not None and at is None:
        say(f"Run {found.lease.run} is still at it; what it finishes is kept too: see `talkfold follow {found.id}`.")
    else:
        say("Nothing was run: this is only what Retry sends. `talkfold.runs.retry_run` runs it.")
