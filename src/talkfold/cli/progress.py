"""A progress bar on stderr: only for a person on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

__all__ = ("Advance", "progress")

Advance: TypeAlias = Callable[[int], None]
"""Called with how much is done so far."""


@contextmanager
def progress(what: str, total: int) -> Generator[Advance]:
    """A bar for ``total`` units of work, gone when done; nothing at all where stderr is no terminal."""
    if not sys.stderr.isatty() or total == 0:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from .output import rich_console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=rich_console(sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
