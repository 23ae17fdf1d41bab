"""``list``, ``fork``, ``rename``: sessions as wholes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import to_builtins

from ..errors import InvalidArgument
from ..model import Json, SessionStatus
from ..store.lease import Lease
from ..store.protocol import Page, Session
from .opening import find, opened
from .options import AtNumber, Form, RowForm, SessionId, Where
from .output import Column, clean, document, line, on_terminal, paint, record, say, table
from .wording import NOBODY, clock, is_left, lease_text, moment

__all__ = ("fork", "list_sessions", "rename", "session_json")


def session_json(session: Session) -> dict[str, Json]:
    """A session's row as JSON: camelCase, times as RFC 3339, the digest as hex, absent instead of null."""
    row: dict[str, Json] = {
        "id": session.id,
        "owner": session.owner,
        "title": session.title,
        "status": session.status,
        "number": session.number,
        "digest": session.digest.hex(),
        "size": session.size,
        "created": moment(session.created),
        "updated": moment(session.updated),
        "metadata": session.metadata,
        "forkedFrom": session.forked_from,
        "forkedAt": session.forked_at,
        "lease": None if session.lease is None else _lease_json(session.lease),
    }
    return {name: value for name, value in row.items() if value is not None}


def _lease_json(lease: Lease) -> dict[str, Json]:
    """A living run's lease. ``waiting`` is the call that it is parked on."""
    row: dict[str, Json] = {
        "run": lease.run,
        "holder": lease.holder,
        "since": moment(lease.since),
        "expires": moment(lease.expires),
    }
    if lease.waiting is not None:
        row["waiting"] = to_builtins(lease.waiting)
        if lease.waiting.expires is not None:
            row["waiting"]["expires"] = moment(lease.waiting.expires)
    return row


_COLUMNS: Sequence[Column[Session]] = (
    ("id", lambda it: it.id),
    ("status", lambda it: it.status),
    ("actions", lambda it: str(it.number)),
    ("updated (UTC)", lambda it: clock(it.updated)),
    ("owner", lambda it: it.owner or "-"),
    ("title", lambda it: it.title or "-"),
)

_RUN: Column[Session] = ("run", lambda it: lease_text(it.lease) if it.lease else NOBODY if is_left(it) else "-")
"""Only where a run lives, or one has died: most of the time nobody needs the room."""


async def list_sessions(
    *,
    status: Annotated[SessionStatus | None, Parameter(help="Only sessions with this status.")] = None,
    title: Annotated[str | None, Parameter(help="Only sessions with this text in the title.")] = None,
    where_: Annotated[
        tuple[str, ...],
        Parameter(
            name="--where",
            help="Only sessions whose metadata has KEY=VALUE; may be repeated. A value that reads as a JSON "
            "number, true, false or null is meant so; put JSON quotes around it to mean the text.",
        ),
    ] = (),
    limit: Annotated[int, Parameter(help="At most so many sessions, 1 to 1,000.", show_default=True)] = 50,
    cursor: Annotated[str | None, Parameter(help="Go on where an earlier list ended.")] = None,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """List sessions, newest first.

    A session that a living run owns says which run, in which process, since when, and what it waits for.

    When there are more, the cursor of the next page is told on stderr, and in `--json` as `next`.
    """
    wanted = dict(map(_condition, where_))
    async with opened(where, metadata_keys=tuple(wanted)) as store:
        page = await store.list(
            owner=where.owner, status=status, title=title, metadata=wanted or None, limit=limit, cursor=cursor
        )
    _answer(page, form)


def _answer(page: Page, form: RowForm) -> None:
    if form.json:
        more = {} if page.next is None else {"next": page.next}
        document({"sessions": [session_json(each) for each in page.sessions], **more})
        return
    if form.jsonl:
        for session in page.sessions:
            record(session_json(session))
    elif page.sessions:
        running = [session for session in page.sessions if session.lease is not None or is_left(session)]
        beside = running and not on_terminal()
        table((*_COLUMNS, _RUN) if beside else _COLUMNS, page.sessions, elastic="title", styles={"id": "bold"})
        if not beside:  # a terminal is too narrow for one more column
            name, run = _RUN
            paint(line((each.id, "bold"), f": {name} ", (run(each), "yellow")) for each in running)
    else:
        say("No sessions.")
    if page.next is not None:
        say(f"There are more: --cursor {page.next}")


def _condition(given: str) -> tuple[str, Any]:
    key, equals, text = given.partition("=")
    if not key or not equals:
        raise InvalidArgument("--where", f"{given!r} is not KEY=VALUE")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return key, text if isinstance(value, dict | list) else value


async def fork(
    session: SessionId,
    /,
    *,
    at: AtNumber = None,
    new_id: Annotated[str | None, Parameter(help="The id of the new session. [default: a random one]")] = None,
    title: Annotated[str | None, Parameter(help="The title of the new session.")] = None,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Copy a session, whole or up to an action, into a new one.

    The new session's id is printed; the old session stays as it is.
    """
    async with opened(where) as store:
        source = await find(store, session, where)
        made = await store.fork(source.id, at=at, new_id=new_id, owner=source.owner, title=title)
    if form.json:
        document(session_json(made))
        return
    sys.stdout.write(clean(made.id) + "\n")
    say(f"Forked from {source.id} at {made.forked_at}.")


async def rename(
    session: SessionId,
    title: Annotated[str, Parameter(help="The new title.")],
    /,
    *,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Give a session another title. The log is not touched."""
    async with opened(where) as store:
        found = await find(store, session, where)
        renamed = await store.update(found.id, owner=found.owner, title=title)
    if form.json:
        document(session_json(renamed))
    else:
        say(f"{renamed.id} is now called {title!r}.")
