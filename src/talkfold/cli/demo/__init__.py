"""``demo``: the whole idea in seven short acts, with an agent that really runs and is really killed."""

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
from ...model import Json
from ...store import open_store
from ..options import Form, Source
from ..output import document
from . import archive
from .live import LiveRun
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
    """See what it is good for, in ten seconds: an agent's process is killed, and nothing is lost or done twice.

    The agent, its tools, the tool server and the processes are real; only the model is a script, so nothing goes
    over the network. FILE has conversations in the chat-completions form, one `{id, messages}` a line; without it four
    invented ones are imported. The demo makes a database of its own and names it at the end, so that you can look
    around in it.
    """
    folder = Path(tempfile.mkdtemp(prefix="talkfold-demo-"))
    try:
        path = folder / "chat.db" if db is None else _new_database(db)
        shown = await _play(Stage(silent=form.json), path.resolve(), folder, file)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if form.json:
        document({"database": str(path), "folder": str(folder), **shown})


async def _play(stage: Stage, database: Path, folder: Path, file: str | None) -> dict[str, Json]:
    async with open_store(database) as store:
        rows = await archive.bring_in(store, file)
        stage.title("An agent's process dies in the middle of its work. What now?")
        stage.gap()
        stage.tell(
            "An agent talks with a person and calls tools that do real things. talkfold writes down every step, and "
            "works out the rest from what is written: what people see, what the model gets, what is left to do. So "
            "nothing is lost, and nothing is done twice. This is a real run; only the model is a script.",
            indent=0,
        )
        run = LiveRun(stage, store, database, folder)
        killed = await run.until_killed()
        settled, plan = await run.open_again()
        done = await run.retry(killed)
        imported = archive.show_imported(stage, rows, own=file is not None)
        proof = await archive.prove(stage, store, run.session_id, killed["number"])
    stage.heading("Look around")
    stage.command(f"export TALKFOLD_DB={shlex.quote(str(database))}")
    live = run.session_id
    for command in (f"show {live}", f"show {live} --at {killed['number']}", f"steps {live}", "list", "check --all"):
        stage.command(f"{_invocation()} {command}")
    return {
        "session": live,
        "killed": killed,
        "settled": settled,
        "retry": plan,
        "done": done,
        "imported": imported,
        "check": proof,
    }


def _invocation() -> str:
    """How this very talkfold is called from here: its name when that finds it, else its path."""
    if shutil.which("talkfold"):
        return "talkfold"
    script = Path(sys.argv[0])
    if script.name != "talkfold":
        return f"{shlex.quote(sys.executable)} -m talkfold"
    return shlex.quote(os.path.relpath(script) if script.is_relative_to(Path.cwd()) else str(script))


def _new_database(db: str) -> Path:
    path = Path(db)
    if path.exists():
        raise InvalidArgument("--db", f"{db} is there already; the demo only writes to a new database")
    return path
