"""``migrate`` and ``doctor``: the database itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

from anyio import to_thread
from cyclopts import Parameter
from msgspec import to_builtins

from ..errors import DatabaseNotFound, DatabaseTooOld
from ..store.migrate import Migration, migration_scripts
from ..store.sqlite.doctor import Diagnosis, diagnose
from .opening import database_path, opened
from .options import Form, Where
from .output import Line, document, line, paint, say
from .proof import FOUND
from .wording import count

__all__ = ("doctor", "migrate")


async def migrate(
    *,
    check: Annotated[
        bool, Parameter(help="Only say what would be applied; ends with 5 when that is anything.")
    ] = False,
    where: Where = Where(),
    form: Form = Form(),
) -> int:
    """Bring a database up to date with this talkfold, or make a new one.

    Each migration is applied whole or not at all. A database that a newer talkfold wrote is refused.
    """
    path = database_path(where)
    pending = await _pending(where, new=not check)
    if not check:
        async with opened(where, create=True):
            pass
    names = [each.name for each in pending]
    if form.json:
        document({"database": os.fspath(path), ("pending" if check else "applied"): names})
    elif names:
        paint(line(name) for name in names)
    what = count(len(pending), "migration")
    say(f"{path}: " + (f"{what} {'to apply' if check else 'applied'}." if pending else "up to date."))
    return DatabaseTooOld.exit_code if check and pending else 0


async def _pending(where: Where, *, new: bool) -> tuple[Migration, ...]:
    """What the database lacks; everything when ``new`` allows one that is not there yet."""
    try:
        async with opened(where):
            return ()
    except DatabaseTooOld as error:
        return migration_scripts()[error.found :]
    except DatabaseNotFound:
        if not new:
            raise
        return migration_scripts()


# ---- doctor ---------------------------------------------------------------------------------------------

_STYLES = {"fine": "green", "note": "yellow", "bad": "bold red"}


async def doctor(
    *,
    thorough: Annotated[bool, Parameter(help="Compare every index with its table, too; reads the whole file.")] = False,
    where: Where = Where(),
    form: Form = Form(),
) -> int:
    """Look at a database and the place where it lies.

    Versions, journal mode, the size of the write-ahead log, integrity, free space, network file systems. Nothing
    is changed. Ends with 1 when something needs a hand.
    """
    path = database_path(where)
    diagnosis = await to_thread.run_sync(lambda: diagnose(path, thorough=thorough))
    if form.json:
        document({**to_builtins(diagnosis), "healthy": diagnosis.healthy})
    else:
        paint(_facts(diagnosis))
        paint(
            line(f"{remark.subject}: {remark.text}", lead=(f"{remark.severity:<5}", _STYLES[remark.severity]))
            for remark in diagnosis.remarks
        )
    return 0 if diagnosis.healthy else FOUND


def _facts(seen: Diagnosis) -> Iterator[Line]:
    unknown = "unknown"
    facts = {
        "database": seen.path,
        "versions": f"talkfold {seen.talkfold}, SQLite {seen.sqlite}, aiosqlite {seen.aiosqlite}",
        "migration": f"{unknown if seen.migration is None else seen.migration} of {seen.known_migrations}",
        "contents": unknown
        if seen.sessions is None
        else f"{count(seen.sessions, 'session')}, {count(seen.actions or 0, 'action')}",
        "journal": f"{seen.journal_mode or unknown}, {count(seen.wal_size, 'byte')} in the write-ahead log",
        "size": f"{count(seen.size, 'byte')}; {count(seen.free_space, 'byte')} free beside it",
        "place": f"network file system ({kind})" if (kind := seen.network_file_system) else "local disk",
    }
    for name, fact in facts.items():
        yield line(fact, lead=(f"{name:<11}", "bold"))
