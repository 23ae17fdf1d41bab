"""``check``: proof that stored logs are whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from ..errors import InvalidArgument
from ..model import Json
from ..store.protocol import CheckReport
from .opening import all_sessions, find, opened
from .options import RowForm, SessionId, Where
from .output import Column, document, record, say, table
from .wording import count

__all__ = ("FOUND", "check", "report_json")

FOUND = 1
"""The exit code when a check found something."""


def report_json(report: CheckReport) -> dict[str, Json]:
    """What a check found, as JSON; good when ``problems`` is empty."""
    return {
        "id": report.session_id,
        "number": report.number,
        "digest": report.digest.hex(),
        "snapshots": report.snapshots,
        "problems": [{"code": it.code, "number": it.number, "text": it.text} for it in report.problems],
    }


_COLUMNS: Sequence[Column[CheckReport]] = (
    ("id", lambda it: it.session_id),
    ("result", lambda it: "ok" if not it.problems else count(len(it.problems), "problem")),
    ("actions", lambda it: str(it.number)),
    ("snapshots", lambda it: str(it.snapshots)),
    ("digest", lambda it: it.digest.hex()),
)


async def check(
    session: SessionId | None = None,
    /,
    *,
    all_: Annotated[bool, Parameter(name="--all", help="Check every session.")] = False,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> int:
    """Prove that a stored session is whole.

    Walks the log from its first action: no number is missing, the chain of hashes closes, every action can be
    read, and every snapshot equals the fold. Ends with 1 when something was found.

    The digest is the newest action's hash. Keep it somewhere else, and you can prove later that the log up to
    there is still the same.
    """
    if (session is None) is not all_:
        raise InvalidArgument("ID", "name one session, or say --all")
    async with opened(where) as store:
        if session is not None:
            sessions = [await find(store, session, where)]
        else:
            sessions = [each async for each in all_sessions(store, where)]
        reports = [await store.check(each.id, owner=each.owner) for each in sessions]
    bad = [report for report in reports if report.problems]
    if form.json:
        document([report_json(report) for report in reports] if all_ else report_json(reports[0]))
    elif form.jsonl:
        for report in reports:
            record(report_json(report))
    else:
        if reports:
            table(_COLUMNS, reports, elastic="digest", styles={"id": "bold"})
        for report in bad:
            for problem in report.problems:
                say(f"{report.session_id} at {problem.number}: {problem.text} ({problem.code})")
        say(f"{count(len(reports), 'session')} checked, {len(bad) or 'none'} with problems.")
    return FOUND if bad else 0
