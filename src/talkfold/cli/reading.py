"""``show``, ``retry``: one session, looked at. Nothing here changes it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from msgspec import Raw

from ..codec import encode_state
from ..errors import InvalidArgument
from ..resumable import retry_plan
from .numbering import NEWEST, Moment, number_of
from .opening import find, opened
from .options import AtNumber, Form, SessionId, Where
from .output import document, line, paint, say
from .plan import plan_json, plan_lines
from .sessions import session_json
from .wording import NOBODY, STATE_STYLES, count, is_left, lease_text, state_lines

__all__ = ("retry", "show")


async def show(
    session: SessionId,
    /,
    *,
    moment: Moment = NEWEST,
    last: Annotated[int, Parameter(help="Only so many messages, the newest; 0: all.", show_default=True)] = 100,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Show a conversation as it is now, or as it was at any moment of its log.

    The moment is an action's number, or a turn, a run, a call or a message; with `--before`, just before that.
    `--json` gives the whole state.
    """
    if last < 0:
        raise InvalidArgument("--last", f"{last} is no number of messages")
    async with opened(where) as store:
        found = await find(store, session, where)
        at = await number_of(store, found, moment)
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
    paint(state_lines(then.state, last))
    if (before := len(then.state.messages) - last) > 0 and last:
        say(f"{count(before, 'message')} before these: --last 0 shows all.")


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
