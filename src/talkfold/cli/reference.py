"""The page ``docs/cli.md``, made from the commands themselves.

``python -m talkfold.cli.reference docs/cli.md`` writes it; a test compares the page with what this makes.
"""

from __future__ import annotations

import io
import sys
import textwrap
from pathlib import Path

from cyclopts import App
from rich.console import Console

from .app import build
from .commands import COMMANDS, GROUPS

__all__ = ("page",)

_WIDTH = 110

_HEAD = """# The command line

`pip install 'talkfold[cli]'` installs the command `talkfold`; `python -m talkfold` is the same. This page is made from
the commands' own help (`make docs`).

- **stdout is data, stderr is words.** Tables and colour only on a terminal, plain text otherwise; `NO_COLOR` and
  `FORCE_COLOR` are obeyed. Text from a conversation reaches a terminal with its control characters escaped.
- **`--json`** on every command: one JSON document. **`--jsonl`** where there are rows: one document a line.
- **The database** is `--db`, else `TALKFOLD_DB`, else `chat.db` in the platform's folder for user data. Only `import`,
  `migrate` and `demo` make a new one.
- **An id** may be shortened as long as only one session begins so. `erase --yes` wants the whole id.
- **`-`** as FILE is stdin.
- Errors say what was wrong and what to do next. `TALKFOLD_DEBUG=1` adds the traceback of what should not happen.

| exit code | meaning |
|---|---|
| 0 | ok |
| 1 | `check` or `doctor` found something, or `findings` an error |
| 2 | usage: an option or argument makes no sense |
| 3 | not found: no such session or database, or it was erased |
| 4 | conflict: the session exists, or is not at the expected number; no such call waits there; search is switched off |
| 5 | the database is too old or too new, or its migrations are not this talkfold's |
| 6 | bad input: not JSON, not an action, a damaged line, not a talkfold database |
| 70 | internal or from the machine: a full disk, a damaged database, a fault |
| 130 | interrupted |
| 141 | the reader of stdout went away |
"""


def page() -> str:
    """The whole page, as Markdown."""
    app = build()
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"## {group}\n")
        parts += [
            f"### talkfold {command.name}\n\n```text\n{_help(app, command.name)}\n```\n"
            for command in COMMANDS
            if command.group == group
        ]
    return "\n".join(parts)


def _help(app: App, name: str) -> str:
    out = io.StringIO()
    app.help_print([name], console=Console(file=out, width=10_000, color_system=None))
    lines = out.getvalue().strip().splitlines()
    return "\n".join(_entry(each.rstrip()) for each in lines)


def _entry(text: str) -> str:
    """An argument or an option, wrapped under its name; any other line as it is."""
    return textwrap.fill(text, _WIDTH, subsequent_indent="      ") if text.startswith("  ") else text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
