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
        room = max(self.width - each.indent - len(each.lead.text), 20) if wrapped else None
        (_paint if on_terminal() else _write)(each, room)
        sys.stdout.flush()


def _paint(each: Line, room: int | None) -> None:
    """Print a line with its styles, wrapped to so many columns beside its lead."""
    from rich.text import Text

    console = rich_console()
    body = Text.assemble(*each.spans)
    first = Text(" " * each.indent).append(*each.lead)
    before = Text(" " * len(first))
    for row in [body] if room is None else body.wrap(console, room) or [body]:
        row.rstrip()
        console.print(first + row, soft_wrap=True)
        first = before


def _write(each: Line, room: int | None) -> None:
    """The same without styles."""
    text = "".join(span.text for span in each.spans)
    first = " " * each.indent + each.lead.text
    before = " " * len(first)
    fits = room is None or len(text) <= room
    for row in [text] if fits else textwrap.wrap(text, room or 0, break_on_hyphens=False):
        sys.stdout.write((first + row).rstrip() + "\n")
        first = before
