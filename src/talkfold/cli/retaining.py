"""``retain``: sessions that nobody has written to for long are erased, after a look at which."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter

from ..errors import InvalidArgument
from ..model import Json, SessionStatus
from ..store.retention import Expired, Retention
from .opening import opened
from .options import RowForm, Where
from .output import Column, document, record, say, table
from .wording import clock, count, moment

__all__ = ("period", "retain")

_UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def period(option: str, given: str) -> timedelta:
    """A length of time such as ``90d``. Raises InvalidArgument for ``option``."""
    match = re.fullmatch(r"([0-9]{1,9}) *([a-z]+)", given.strip())
    if match is None or match[2] not in _UNITS:
        hint = "; m could be minutes or months: say min or d" if match is not None and match[2] == "m" else ""
        raise InvalidArgument(option, f"{given!r} is no length of time: say 30min, 12h, 90d or 2w{hint}")
    number = int(match[1])
    if not number:
        raise InvalidArgument(option, f"{given!r} is no time at all, and would pick every session")
    try:
        return number * _UNITS[match[2]]
    except OverflowError:
        raise InvalidArgument(option, f"{given!r} is longer than the calendar") from None


async def retain(
    *,
    older_than: Annotated[
        str, Parameter(name="--older-than", help="Sessions without an append for so long: 30min, 12h, 90d or 2w.")
    ],
    status: Annotated[
        tuple[SessionStatus, ...], Parameter(help="Only sessions listed with this status; may be repeated.")
    ] = (),
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Erase them; without it, they are only listed.")] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Only list them, as without `--yes`.")] = False,
    by: Annotated[str | None, Parameter(help="Who erases them, for the tombstones.")] = None,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Erase the sessions that nobody has written to for long.

    Whole sessions only, and never one that a living run owns. Without `--yes` it is a dry run that lists what would go.
    With it, each session is looked at again at the moment when it is erased: what was written to meanwhile stays.

    A session that a dead run left is listed as streaming until it is settled, and counts as that.
    """
    if yes and dry_run:
        raise InvalidArgument("--dry-run", "it says the contrary of --yes; say one of them")
    rule = Retention(period("--older-than", older_than), where.owner, status)
    async with opened(where) as store:
        picked = await store.retain(rule, by=by, dry_run=not yes)
    if form.json:
        document({"dryRun": not yes, "sessions": [_json(each) for each in picked]})
        return
    if form.jsonl:
        for each in picked:
            record(_json(each))
    elif picked:
        table(_COLUMNS, picked, elastic="owner", styles={"id": "bold"})
    _tell(picked, older_than, erased=yes)


def _tell(picked: Sequence[Expired], older_than: str, *, erased: bool) -> None:
    if not picked:
        say(f"No session has been without an append for {older_than}.")
        return
    what = f"{count(len(picked), 'session')} with {count(sum(each.number for each in picked), 'action')}"
    if erased:
        say(f"Erased {what}.")
    else:
        say(f"{what} would be erased; nothing was. Say the same with --yes to erase them for good.")


def _json(session: Expired) -> dict[str, Json]:
    """A session that is over, or was."""
    row: dict[str, Json] = {
        "id": session.id,
        "owner": session.owner,
        "status": session.status,
        "number": session.number,
        "size": session.size,
        "updated": moment(session.updated),
    }
    return {name: value for name, value in row.items() if value is not None}


_COLUMNS: Sequence[Column[Expired]] = (
    ("id", lambda it: it.id),
    ("status", lambda it: it.status),
    ("actions", lambda it: str(it.number)),
    ("updated (UTC)", lambda it: clock(it.updated)),
    ("owner", lambda it: it.owner or "-"),
)
