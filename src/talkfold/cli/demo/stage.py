"""How the demo speaks: headings, wrapped words, and lines; or nothing at all when only its result is wanted."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from ..output import Line, line, on_terminal, rich_console

__all__ = ("Stage",)

_WIDTH = 80
"""The most columns that are used, also where there are more: longer lines are hard to read."""

_INDENT = 3


class Stage:
    """Where the acts of the demo are shown. What is shown appears at once, also through a pipe."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self._act = 0

    @property
    def width(self) -> int:
        """The columns that are used."""
        return min(_WIDTH, shutil.get_terminal_size().columns) if on_terminal() else _WIDTH

    def title(self, text: str) -> None:
        """What it is about, in one line."""
        self.lines([line((text, "bold"))], indent=0)

    def act(self, text: str) -> None:
        """Begin the next act."""
        self._act += 1
        self.heading(f"{self._act}  {text}")

    def heading(self, text: str) -> None:
        """A heading with room around it."""
        self.lines([line(""), line((text, "bold cyan"))], indent=0)

    def gap(self) -> None:
        """An empty line."""
        self.lines([line("")], indent=0)

    def tell(self, *spans: str | tuple[str, str], indent: int = _INDENT) -> None:
        """Words to read."""
        self.lines([line(*spans)], indent=indent)

    def command(self, text: str) -> None:
        """A command that a person may type: never wrapped, so that it can be copied."""
        if not self._silent:
            self._print(line((text, "bold"), indent=_INDENT), wrapped=False)

    def lines(self, lines: Iterable[Line], indent: int = _INDENT) -> None:
        """Lines, indented further; what does not fit goes on below, beside the lead."""
        for each in lines:
            if not self._silent:
                self._print(Line(each.spans, each.indent + indent, each.lead), wrapped=True)

    @contextmanager
    def waiting(self, what: str) -> Generator[None]:
        """Something takes a moment: on a terminal one sees that it does, and what it is."""
        if self._silent or not sys.stdout.isatty():
            yield
            return
        from rich.live import Live
        from rich.padding import Padding
        from rich.spinner import Spinner

        spinner = Padding(Spinner("dots", f"{what} …", style="cyan"), (0, 0, 0, _INDENT))
        with Live(spinner, console=rich_console(), transient=True, refresh_per_second=12):
            yield

    def _print(self, each: Line, *, wrapped: bool) -> None:
        before = len(each.lead.text) + each.indent
        room = max(self.width - before, 20) if wrapped else 10_000
        if on_terminal():
            from rich.text import Text

            console = rich_console()
            console.width = max(console.width, self.width) if wrapped else 10_000
            body = Text.assemble(*each.spans)
            first = Text(" " * each.indent).append(*each.lead)
            for row in body.wrap(console, room) or [body]:
                row.rstrip()
                console.print(first + row, soft_wrap=True)
                first = Text(" " * before)
        else:
            text = "".join(span.text for span in each.spans)
            rows = textwrap.wrap(text, room, break_on_hyphens=False) if len(text) > room else [text]
            first_ = " " * each.indent + each.lead.text
            for row in rows:
                sys.stdout.write((first_ + row).rstrip() + "\n")
                first_ = " " * before
        sys.stdout.flush()
