"""``check``: proof that stored logs are whole, and what they were when their digests were noted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from ..errors import InvalidArgument
from ..model import Json
from ..store.protocol import CheckReport, Session, SessionStore
from .noting import Digests, Missing, digest_of, look_for, read_noted
from .opening import all_sessions, find, opened
from .options import RowForm, SessionId, Where
from .output import Column, clean, document, on_terminal, record, say, table
from .progress import progress
from .wording import count

__all__ = ("FOUND", "check", "report_json")

FOUND = 1
"""The exit code when a check found something."""


def report_json(report: CheckReport, owner: str | None = None) -> dict[str, Json]:
    """What a check found, as JSON; good when ``problems`` is empty. ``since``: up to where it is what was noted."""
    row: dict[str, Json] = {
        "id": report.session_id,
        "owner": owner,
        "number": report.number,
        "digest": report.digest.hex(),
        "snapshots": report.snapshots,
        "since": report.since,
        "problems": [{"code": it.code, "number": it.number, "text": it.text} for it in report.problems],
    }
    return {name: value for name, value in row.items() if value is not None}


class _Checked(NamedTuple):
    """A session, what was found, and whether a digest of it had been noted."""

    session: Session
    report: CheckReport
    noted: bool

    @property
    def json(self) -> dict[str, Json]:
        """As an answer's row."""
        return report_json(self.report, self.session.owner)


def _noted_text(it: _Checked) -> str:
    if not it.noted:
        return "-"
    return "no" if it.report.since is None else f"to {it.report.since}"


_COLUMNS: Sequence[Column[_Checked]] = (
    ("id", lambda it: it.report.session_id),
    ("result", lambda it: "ok" if not it.report.problems else count(len(it.report.problems), "problem")),
    ("actions", lambda it: str(it.report.number)),
    ("snapshots", lambda it: str(it.report.snapshots)),
)
_AS_NOTED: Column[_Checked] = ("as noted", _noted_text)
_DIGEST: Column[_Checked] = ("digest", lambda it: it.report.digest.hex())


async def check(
    session: SessionId | None = None,
    /,
    *,
    all_: Annotated[bool, Parameter(name="--all", help="Check every session.")] = False,
    since: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="A digest that was noted before: prove that the log up to there is the same. With `--all` the file "
            "that `check --all --jsonl` wrote then; `-` is stdin.",
        ),
    ] = None,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> int:
    """Prove that a stored session is whole.

    Walks the log from its first action: no number is missing, the chain of hashes closes, every action can be
    read, and every snapshot equals the fold. Ends with 1 when something was found.

    The digest is the newest action's hash. Note it down, or keep what `--all --jsonl` answers, where the writers of the
    database cannot reach it: `--since` proves later that the log up to there is still the same. The chain alone cannot
    tell a log that somebody has written anew from the first action.
    """
    if (session is None) is not all_:
        raise InvalidArgument("ID", "name one session, or say --all")
    missing: list[Missing] = []
    if session is not None:
        digest = None if since is None else digest_of(since)
        async with opened(where) as store:
            found = await find(store, session, where)
            report = await store.check(found.id, owner=found.owner, since=digest)
        checked = [_Checked(found, report, digest is not None)]
    else:
        noted = None if since is None else read_noted(since)
        async with opened(where) as store:
            checked = await _check_all(store, where, noted or {})
            if noted is not None:
                missing = await _missing(store, where, noted, checked)
    gone = any(each.erased is None for each in missing)
    rows = [*(each.json for each in checked), *(each.json for each in missing)]
    if form.json:
        document(rows if all_ else rows[0])
    elif form.jsonl:
        for row in rows:
            record(row)
    else:
        _show(checked)
        _tell(checked, missing, counted=all_ and since is not None)
    return FOUND if gone or any(each.report.problems for each in checked) else 0


async def _check_all(store: SessionStore, where: Where, noted: Digests) -> list[_Checked]:
    sessions = [each async for each in all_sessions(store, where)]
    checked: list[_Checked] = []
    with progress("checking", len(sessions)) as advance:
        for session in sessions:
            digest = noted.get((session.id, session.owner))
            report = await store.check(session.id, owner=session.owner, since=digest)
            checked.append(_Checked(session, report, digest is not None))
            advance(len(checked))
    return checked


async def _missing(store: SessionStore, where: Where, noted: Digests, checked: Sequence[_Checked]) -> list[Missing]:
    """The sessions that were noted and are not there, of those that ``--owner`` lets see."""
    there = {(each.session.id, each.session.owner) for each in checked}
    return [
        await look_for(store, session_id, owner)
        for session_id, owner in noted
        if (session_id, owner) not in there and where.owner in (None, owner)
    ]


def _show(checked: Sequence[_Checked]) -> None:
    """The results. A terminal has no room for a digest in a table: there each has a line, to be copied whole."""
    if not checked:
        return
    noted = (_AS_NOTED,) if any(each.noted for each in checked) else ()
    beside = not on_terminal()
    columns = (*_COLUMNS, *noted, _DIGEST) if beside else (*_COLUMNS, *noted)
    table(columns, checked, elastic="digest" if beside else "id", styles={"id": "bold"})
    if not beside:
        sys.stdout.write("digests:\n")
        for each in checked:
            sys.stdout.write(f"{each.report.digest.hex()}  {clean(each.session.id)}\n")


def _tell(checked: Sequence[_Checked], missing: Sequence[Missing], *, counted: bool) -> None:
    for each in checked:
        for problem in each.report.problems:
            say(f"{each.session.id} at {problem.number}: {problem.text} ({problem.code})")
    for lost in missing:
        say(f"{lost.id}: {lost.text}")
    if counted:
        same = sum(each.report.since is not None for each in checked)
        new = sum(not each.noted for each in checked)
        say(f"{count(same, 'log')} as noted, {len(missing)} missing or erased, {new} not noted before.")
    elif len(checked) == 1 and checked[0].report.since is not None:
        say(f"{checked[0].session.id}: {_same(checked[0].report)}.")
    bad = sum(bool(each.report.problems) for each in checked) + sum(each.erased is None for each in missing)
    say(f"{count(len(checked), 'session')} checked, {bad or 'none'} with problems.")


def _same(report: CheckReport) -> str:
    if not report.since:
        return "nothing had been logged when that was noted"
    return f"the log up to action {report.since} is what was noted"
