"""``demo``: the whole idea in seven short acts, with a process that is really killed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...errors import InvalidArgument
from ...store import open_store
from ..options import Form, Source
from ..output import document, line
from . import acts
from .stage import Stage

__all__ = ("demo",)


async def demo(
    file: Source | None = None,
    /,
    *,
    db: Annotated[
        str | None, Parameter(help="The database to make for it. [default: a new one in the temporary folder]")
    ] = None,
    form: Form = Form(),
) -> None:
    """See what it is good for, in twenty seconds: a run is killed, loaded again, retried and proven.

    FILE has conversations in the chat-completions form, one `{id, messages}` a line; without it four invented ones
    are used. The demo makes a database of its own and names it at the end, so that you can look around in it.
    """
    path = _new_database(db)
    stage = Stage(silent=form.json)
    async with open_store(path) as store:
        stage.title("A conversation is a log; its state is what the log folds into.")
        stage.tell(
            "talkfold writes down everything that happens between a person, an agent and its tools, and works out "
            "the rest by going through it again. What that is good for, in seven short acts:",
            indent=0,
        )
        imported = await acts.bring_in(stage, store, file)
        live = await acts.run_and_kill(stage, store, path)
        settled = await acts.load_again(stage, store, live)
        await acts.step_through(stage, store, live)
        plan = await acts.plan_retry(stage, store, live)
        await acts.go_on(stage, store, live)
        proof = await acts.prove(stage, store, live)
    where = f"--db {shlex.quote(str(path))}"
    stage.heading("Look around")
    for command in (f"show {live}", f"steps {live}", f"export {live} --format openai", "list", "check --all"):
        stage.lines([line((f"{_invocation()} {command} {where}", "bold"))], indent=3)
    if form.json:
        document({"database": str(path), "imported": imported, "settled": settled, "retry": plan, "check": proof})


def _invocation() -> str:
    """How this very talkfold is called from here: its name when that finds it, else its path."""
    if shutil.which("talkfold"):
        return "talkfold"
    script = Path(sys.argv[0])
    if script.name != "talkfold":
        return f"{shlex.quote(sys.executable)} -m talkfold"
    return shlex.quote(os.path.relpath(script) if script.is_relative_to(Path.cwd()) else str(script))


def _new_database(db: str | None) -> Path:
    if db is None:
        return Path(tempfile.mkdtemp(prefix="talkfold-demo-")) / "chat.db"
    path = Path(db)
    if path.exists():
        raise InvalidArgument("--db", f"{db} is there already; the demo only writes to a new database")
    return path
