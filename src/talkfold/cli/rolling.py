"""A table that is printed while its rows come: titles once, then each batch of rows as soon as it is there."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Generic, NamedTuple

from .output import Column, Row, clean, on_terminal, rich_console

__all__ = ("Rolling", "Size")

_GAP = 2
_UNLIMITED = 10_000


class Size(NamedTuple):
    """How a column gives way: ``least`` characters are kept for it from the start, and it is left out on a terminal of
    fewer than ``from_width`` columns, or of ``below`` or more. What is no terminal is as wide as need be."""

    least: int = 0
    from_width: int = 0
    below: float = inf


class Rolling(Generic[Row]):
    """Such a table on stdout. ``elastic`` is the title of its one column of any length.

    A column is as wide as its widest cell so far; what comes later and is wider moves the columns after it. On a
    terminal the elastic column takes what is left of the width, and its text goes on below.
    """

    def __init__(
        self,
        columns: Sequence[Column[Row]],
        *,
        elastic: str,
        sizes: Mapping[str, Size],
        styles: Mapping[str, str] | None = None,
    ) -> None:
        self._styles = styles or {}
        self._elastic = elastic
        self._width = rich_console().width if on_terminal() else None
        kept = [(each, sizes.get(each[0], Size())) for each in columns]
        columns_there = _UNLIMITED if self._width is None else self._width
        kept = [(each, size) for each, size in kept if size.from_width <= columns_there < size.below]
        self._columns = [each for each, _ in kept]
        self._widths = {title: max(len(title), size.least) for (title, _), size in kept}
        self._begun = False

    def add(self, rows: Iterable[Row]) -> None:
        """Print further rows, at once."""
        cells = [{title: clean(show(row)) for title, show in self._columns} for row in rows]
        if not cells:
            return
        titled = cells if self._begun else [{title: title for title in self._widths}, *cells]
        for title in self._widths:
            if title != self._elastic:
                self._widths[title] = max(self._widths[title], *(len(row[title]) for row in titled))
        if self._width is None:
            self._plain(titled)
        else:
            self._rich(cells, self._width)
        self._begun = True
        sys.stdout.flush()

    def _plain(self, rows: list[dict[str, str]]) -> None:
        # The elastic column is as wide as this batch needs: what follows it stands in line at least there.
        widths = {**self._widths, self._elastic: max(len(row[self._elastic]) for row in rows)}
        gap = " " * _GAP
        sys.stdout.writelines(
            gap.join(cell.ljust(widths[title]) for title, cell in row.items()).rstrip() + "\n" for row in rows
        )

    def _rich(self, rows: list[dict[str, str]], width: int) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        fixed = {title: each for title, each in self._widths.items() if title != self._elastic}
        left = max(12, width - sum(fixed.values()) - _GAP * len(fixed))
        grid = Table(
            box=box.SIMPLE_HEAD,  # it sets one space between columns
            show_header=not self._begun,
            show_edge=False,
            pad_edge=False,
            padding=(0, _GAP - 1, 0, 0),
            header_style="bold",
        )
        for title in self._widths:
            columns = fixed.get(title, left)
            grid.add_column(title, style=self._styles.get(title, ""), width=columns, overflow="fold")
        for row in rows:
            grid.add_row(*map(Text, row.values()))
        rich_console().print(grid)
