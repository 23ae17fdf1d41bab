"""How the demo speaks: headings, wrapped words, and lines; or nothing at all when only its result is wanted."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence

from ..output import Column, Line, Row, Span, line, on_terminal, paint, table

__all__ = ("Stage",)

_WIDTH = 100


class Stage:
    """Where the acts of the demo are shown. What is shown appears at once, also through a pipe."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self._act = 0

    def title(self, text: str) -> None:
        """What it is about, in one line."""
        self.lines([line((text, "bold"))])

    def act(self, text: str) -> None:
        """Begin the next act."""
        self._act += 1
        self.heading(f"{self._act}  {text}")

    def heading(self, text: str) -> None:
        """A heading with room above it."""
        self.lines([line(""), line((text, "bold cyan"))])

    def tell(self, *spans: str | tuple[str, str], indent: int = 3) -> None:
        """Words to read. Where nobody wraps them, they are wrapped here."""
        told = line(*spans, indent=indent)
        if on_terminal():
            self.lines([told])
        else:
            text = "".join(span.text for span in told.spans)
            wrapped = textwrap.wrap(text, _WIDTH - indent, break_long_words=False, break_on_hyphens=False)
            self.lines(Line((Span(each),), indent) for each in wrapped)

    def lines(self, lines: Iterable[Line], indent: int = 0) -> None:
        """Lines as they are, indented further."""
        if not self._silent:
            paint(Line(each.spans, each.indent + indent, each.lead) for each in lines)
            sys.stdout.flush()

    def table(self, columns: Sequence[Column[Row]], rows: Sequence[Row], elastic: str) -> None:
        """A table under its titles."""
        if not self._silent:
            table(columns, rows, elastic=elastic, indent=3)
            sys.stdout.flush()
