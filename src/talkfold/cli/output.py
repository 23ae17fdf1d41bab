"""What goes to stdout and stderr: JSON for programs, plain lines for pipes, colour and tables on a terminal.

Text from a conversation is never trusted: before it reaches a terminal, control characters, direction
overrides and lone surrogates are written as escapes, so that a log cannot move the cursor or hide a word.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

if TYPE_CHECKING:
    from rich.console import Console

__all__ = (
    "Column",
    "Line",
    "Row",
    "Span",
    "buffer_stdout",
    "clean",
    "document",
    "json_bytes",
    "line",
    "on_terminal",
    "paint",
    "preview",
    "record",
    "rich_console",
    "say",
    "table",
    "write",
)

Row = TypeVar("Row")
Column: TypeAlias = tuple[str, Callable[[Row], str]]
"""A table's column: its title and what it shows of a row."""

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """The text on one line and harmless to a terminal: anything else becomes an escape such as ``\\n``."""
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def preview(text: str, width: int = 72) -> str:
    """At most ``width`` characters of the text, on one line; ``…`` shows that there was more."""
    short = clean(" ".join(text[: width * 8].split()))
    return short if len(short) <= width else short[: width - 1] + "…"


def on_terminal(stream: IO[str] | None = None) -> bool:
    """Whether a person reads the stream (stdout by default) on a terminal; ``FORCE_COLOR`` says so."""
    return (stream or sys.stdout).isatty() or bool(os.environ.get("FORCE_COLOR"))


def rich_console(stream: IO[str] | None = None) -> Console:
    """A console that prints text as it is, without markup and without guessing. Obeys ``NO_COLOR``."""
    from rich.console import Console

    return Console(file=stream or sys.stdout, markup=False, highlight=False, emoji=False, soft_wrap=False)


# ---- for programs ---------------------------------------------------------------------------------------


def buffer_stdout() -> None:
    """Put a buffer before an unbuffered stdout (``PYTHONUNBUFFERED``): without one, what a write leaves is lost."""
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and isinstance(raw := cast("object", sys.stdout.buffer), io.RawIOBase):
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding=out.encoding, errors=out.errors, line_buffering=True
        )


def write(data: bytes) -> None:
    """Bytes to stdout, after whatever text was printed before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    if getattr(sys.stdout, "line_buffering", False):
        sys.stdout.flush()


def document(value: object) -> None:
    """One JSON document on stdout, indented on a terminal. Bytes and ``msgspec.Raw`` are JSON already."""
    data = value if isinstance(value, bytes) else json_bytes(value)
    write((msgspec.json.format(data, indent=2) if sys.stdout.isatty() else data) + b"\n")


def record(value: object) -> None:
    """One JSON document on a line of its own."""
    write((value if isinstance(value, bytes) else json_bytes(value)) + b"\n")


def json_bytes(value: object) -> bytes:
    """The value as JSON; a lone surrogate becomes its escape."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, legal in JSON as an escape and unknown to msgspec
        return json.dumps(value, default=_plain, ensure_ascii=True, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    return json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else msgspec.to_builtins(value)


# ---- for people -----------------------------------------------------------------------------------------


class Span(NamedTuple):
    """A piece of a line with a rich style (empty: none)."""

    text: str
    style: str = ""


class Line(NamedTuple):
    """A line for people. What of ``spans`` does not fit goes on below, beside ``lead``; both are indented."""

    spans: tuple[Span, ...]
    indent: int = 0
    lead: Span = Span("")


def line(*spans: str | tuple[str, str], indent: int = 0, lead: tuple[str, str] = ("", "")) -> Line:
    """A line made of plain strings and ``(text, style)`` pairs; the text is cleaned here."""
    pairs = (span if isinstance(span, tuple) else (span, "") for span in spans)
    return Line(tuple(Span(clean(text), style) for text, style in pairs), indent, Span(*lead))


def paint(lines: Iterable[Line], stream: IO[str] | None = None) -> None:
    """Print lines: styled and wrapped on a terminal, plain otherwise."""
    out = stream or sys.stdout
    if not on_terminal(out):
        for each in lines:
            out.write(" " * each.indent + each.lead.text + "".join(span.text for span in each.spans) + "\n")
        return
    from rich.table import Table
    from rich.text import Text

    console = rich_console(out)
    for each in lines:
        body = Text.assemble(*each.spans)
        before = Text(" " * each.indent).append(*each.lead)
        if not before:
            console.print(body)
            continue
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(before, body)
        console.print(grid)


def say(*lines_: str) -> None:
    """Words for the person, on stderr."""
    sys.stdout.flush()
    sys.stderr.writelines(clean(each) + "\n" for each in lines_)


def table(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    elastic: str,
    styles: Mapping[str, str] | None = None,
    indent: int = 0,
) -> None:
    """Rows under their titles on stdout: a rich table on a terminal, else columns set with spaces.

    ``elastic`` is the title of the column that gives way where the terminal is narrow; ``styles`` gives a column's
    rich style by its title.
    """
    titles = [title for title, _ in columns]
    cells = [[clean(show(row)) for _, show in columns] for row in rows]
    if on_terminal():
        from rich import box
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for title in titles:
            style = (styles or {}).get(title, "")
            least = 12 if title == elastic else len(title)
            grid.add_column(title, style=style, min_width=least, overflow="fold")  # folded, so nothing is lost
        for row in cells:
            grid.add_row(*map(Text, row))
        rich_console().print(Padding(grid, (0, 0, 0, indent), expand=False))
        return
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    for row in [titles, *cells]:
        set_ = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(" " * indent + set_.rstrip() + "\n")
