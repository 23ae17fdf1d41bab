"""The agent's process, as the demo sees it: started, watched, and ended whatever happens."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Literal

import anyio
from anyio import CancelScope
from anyio.abc import Process

from ...actions import SessionAction
from ...runs import follow
from ...store.protocol import SessionStore
from ..telling import Telling
from .stage import Stage

__all__ = ("Watching", "agent_process", "command")

_LOOK_SECONDS = 0.02
_PATIENCE = 30.0
"""Seconds that the process may take to begin its run."""

_WORDS = "agent.log"
"""The file with what it says on stderr: nothing, when all is well."""


@asynccontextmanager
async def agent_process(
    database: Path, session_id: str, folder: Path, how: Literal["start", "retry"]
) -> AsyncGenerator[Process]:
    """A process that runs the agent, with ``folder`` as its own; gone at the end of the block.

    It hears no Ctrl-C of the terminal: whoever started it ends it.
    """
    with (folder / _WORDS).open("ab") as words:
        command = [sys.executable, "-m", "talkfold.cli.demo.worker", str(database), session_id, how]
        process = await anyio.open_process(
            command, stdin=PIPE, stdout=DEVNULL, stderr=words, cwd=folder, start_new_session=True
        )
    try:
        yield process
    finally:
        with CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
        if not (folder / _WORDS).stat().st_size:
            (folder / _WORDS).unlink()


async def command(*arguments: str) -> list[str]:
    """What a command of ours says on stderr. Raises CalledProcessError when it fails."""
    asked = [sys.executable, "-m", "talkfold", *arguments]
    ended = await anyio.run_process(asked, stdin=DEVNULL, start_new_session=True)
    return ended.stderr.decode("utf-8", "replace").splitlines()


class Watching:
    """Shows a session's actions as they are logged; ``number`` is that of the last one shown."""

    def __init__(self, stage: Stage, store: SessionStore, session_id: str, folder: Path, number: int = 0) -> None:
        self.number: int = number
        self._stage = stage
        self._store = store
        self._session_id = session_id
        self._folder = folder
        self._telling = Telling(stage.width - 15)

    async def begin(self, process: Process) -> None:
        """Wait until the process runs the session."""
        with anyio.fail_after(_PATIENCE), self._stage.waiting("the agent's process starts"):
            while (await self._store.get(self._session_id)).lease is None:
                if process.returncode is not None:
                    raise self._failure()
                await anyio.sleep(_LOOK_SECONDS)

    async def until(self, last: Callable[[SessionAction], bool]) -> None:
        """Show what is logged, up to an action like this. Raises RuntimeError when the run ends before."""
        async with aclosing(follow(self._store, self._session_id, after=self.number)) as rows:
            async for row in rows:
                self._stage.lines(self._telling.lines(row.action), indent=5)
                self.number = row.number
                if last(row.action):
                    self._stage.lines(self._telling.rest(), indent=5)
                    return
        raise self._failure()

    def _failure(self) -> RuntimeError:
        file = self._folder / _WORDS
        said = file.read_text("utf-8", "replace").strip().splitlines() if file.exists() else []
        return RuntimeError(f"the agent's process ended early: {said[-1] if said else 'it said nothing'}")
