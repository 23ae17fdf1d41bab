"""``erase``: one session for good, or all of an owner's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from ..errors import InvalidArgument
from ..model import Json
from ..store.protocol import Session, SessionStore, Tombstone
from .asking import agreed
from .opening import all_sessions, find, opened
from .options import RowForm, SessionId, Where
from .output import Column, document, record, say, table
from .wording import clock, count, lease_text, moment

__all__ = ("erase",)


async def erase(
    session: SessionId | None = None,
    /,
    *,
    all_of: Annotated[
        str | None, Parameter(name="--all-of", help="Erase every session of this owner, in one transaction.")
    ] = None,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask. The id must then be the whole id.")] = False,
    by: Annotated[str | None, Parameter(help="Who erases it, for the tombstone.")] = None,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Remove a session for good, or all that an owner has.

    The whole log goes, and everything made from it; no byte of it stays in the database. A tombstone without content
    stays, so that the id is never used again. Forks are sessions of their own and stay.

    Asks before it does anything; `--all-of` first lists what would go. A run that lives loses its session.
    """
    if (session is None) is (all_of is None):
        raise InvalidArgument("ID", "name one session, or say --all-of OWNER")
    if all_of is not None and where.owner not in (None, all_of):
        raise InvalidArgument("--all-of", f"--owner says that only {where.owner!r} is there, not {all_of!r}")
    async with opened(where) as store:
        if session is not None:
            await _erase_one(store, session, where, yes=yes, by=by, form=form)
        elif all_of is not None:
            await _erase_all(store, all_of, yes=yes, by=by, form=form)


async def _erase_one(
    store: SessionStore, given: str, where: Where, *, yes: bool, by: str | None, form: RowForm
) -> None:
    found = await (store.get(given, owner=where.owner) if yes else find(store, given, where))
    if not yes and not _agreed(_question(found)):
        say("Nothing was erased.")
        return
    tombstone = await store.erase(found.id, owner=found.owner, by=by)
    if form.json or form.jsonl:
        document(_json(tombstone))
    else:
        say(f"Erased {tombstone.id} and its {count(tombstone.number, 'action')}.")


async def _erase_all(store: SessionStore, owner: str, *, yes: bool, by: str | None, form: RowForm) -> None:
    if not yes:
        sessions = [each async for each in all_sessions(store, Where(owner=owner))]
        if not (form.json or form.jsonl):
            _list(sessions)
        if sessions and not _agreed(_question_of_all(owner, sessions)):
            say("Nothing was erased.")
            return
    erased = await store.erase_owner(owner, by=by)
    if form.json:
        document([_json(each) for each in erased])
    elif form.jsonl:
        for each in erased:
            record(_json(each))
    elif erased:
        actions = sum(each.number for each in erased)
        say(f"Erased {count(len(erased), 'session')} of {owner} with {count(actions, 'action')}.")
    else:
        say(f"{owner} has no sessions.")


def _json(tombstone: Tombstone) -> dict[str, Json]:
    """What is left of a session."""
    row: dict[str, Json] = {
        "erased": tombstone.id,
        "owner": tombstone.owner,
        "number": tombstone.number,
        "at": moment(tombstone.at),
        "by": tombstone.by,
    }
    return {name: value for name, value in row.items() if value is not None}


_COLUMNS: Sequence[Column[Session]] = (
    ("id", lambda it: it.id),
    ("status", lambda it: it.status),
    ("actions", lambda it: str(it.number)),
    ("updated (UTC)", lambda it: clock(it.updated)),
    ("title", lambda it: it.title or "-"),
)


def _list(sessions: Sequence[Session]) -> None:
    """What would go."""
    if sessions:
        table(_COLUMNS, sessions, elastic="title", styles={"id": "bold"})
    for session in sessions:
        if session.lease is not None:
            say(f"{session.id} is running and would lose its run {lease_text(session.lease)}.")


def _question(session: Session) -> str:
    called = f" ({session.title})" if session.title else ""
    return f"Erase {session.id}{called} with {session.number} actions for good?"


def _question_of_all(owner: str, sessions: Sequence[Session]) -> str:
    actions = sum(each.number for each in sessions)
    return f"Erase {count(len(sessions), 'session')} of {owner} with {count(actions, 'action')} for good?"


def _agreed(question: str) -> bool:
    return agreed(question, "--yes", "say it to erase without a question")
