"""The command: from arguments to an exit code.

Every end has one place here: 0 ok, an error's own code with what was wrong and the next step, 2 for usage,
130 when interrupted, 141 when the reader of stdout went away, 70 for what should not happen.
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import cast

from cyclopts import App, CycloptsError, Group, Parameter
from rich.console import Console

from .._version import __version__
from ..errors import TalkfoldError
from .commands import COMMANDS, GROUPS
from .output import buffer_stdout, on_terminal, say

__all__ = ("INTERNAL", "INTERRUPTED", "PIPE_CLOSED", "USAGE", "build", "run")

USAGE = 2
INTERNAL = 70
INTERRUPTED = 130
PIPE_CLOSED = 141  # what a shell reports for a program that SIGPIPE ended

_UNWRAPPED = 10_000
"""Columns of a help page that nobody looks at on a terminal: each paragraph stays one line, for grep."""

_ABOUT = """Agent conversations as append-only logs that fold into state: reload, audit and retry them safely.

Data goes to stdout, words to stderr. Start with `talkfold demo`."""


def build(*, styled: bool = False) -> App:
    """The cyclopts application; ``styled`` draws its help pages with colour and frames."""
    app = App(
        name="talkfold",
        version=__version__,
        help=_ABOUT,
        help_formatter="default" if styled else "plain",
        help_format="markdown" if styled else "plaintext",
        default_parameter=Parameter(negative=(), show_default=False),
        result_action="return_value",
    )
    groups = {name: Group(name, sort_key=place) for place, name in enumerate(GROUPS)}
    for place, command in enumerate(COMMANDS):
        app.command(
            command.target,
            name=command.name,
            group=groups[command.group],
            sort_key=place,
            help_epilogue=f"Example: {command.example}",
        )
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code. Errors are told on stderr; nothing is raised."""
    if cast("object", sys.stderr) is None:  # so Python has a stream that the shell closed
        sys.stderr = open(os.devnull, "w")
    if cast("object", sys.stdout) is None:
        sys.stderr.write("talkfold: stdout is closed\n  Open it, or send it to /dev/null.\n")
        return INTERNAL
    buffer_stdout()
    try:
        app = build(styled=on_terminal())
        if not arguments or arguments[0] in app.help_flags:
            for command in COMMANDS:  # the overview says what each command does, so each must be loaded
                app[command.name]
        pages = None if on_terminal() else _Pages(width=_UNWRAPPED)
        code = app(list(arguments), exit_on_error=False, print_error=False, console=pages)
        sys.stdout.flush()
        return int(code or 0)
    except CycloptsError as error:
        say(f"talkfold: {error}", f"  {_usage(arguments)}")
        return USAGE
    except TalkfoldError as error:
        say(f"talkfold: {error}", f"  {error.next_step}")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except OSError as error:
        _discard_output()  # a full disk would refuse the last flush too
        if os.environ.get("TALKFOLD_DEBUG"):
            traceback.print_exc()
        where = f"{error.filename}: " if error.filename else ""
        say(
            f"talkfold: the machine refused: {where}{error.strerror or error}",
            "  Look for a full disk or a folder that may not be written; --db names another database.",
        )
        return INTERNAL
    except Exception as error:
        if os.environ.get("TALKFOLD_DEBUG"):
            traceback.print_exc()
        say(
            f"talkfold: this should not have happened ({type(error).__name__}: {error})",
            "  Run it again with TALKFOLD_DEBUG=1 for the traceback, and report it with that.",
        )
        return INTERNAL


def _usage(arguments: Sequence[str]) -> str:
    """What to do about arguments that no command takes."""
    names = {each.name for each in COMMANDS}
    if arguments and arguments[0] in names:
        return f"See `talkfold {arguments[0]} --help`."
    meant = next((place for place, each in enumerate(arguments) if each in names), None)
    if meant and arguments[0].startswith("-"):
        there = [*arguments[meant:], *arguments[:meant]]
        return f"Options come after the command: `talkfold {shlex.join(there)}`."
    return "See `talkfold --help`."


class _Pages(Console):
    """Where help pages go that nobody looks at on a terminal."""

    def on_broken_pipe(self) -> None:
        """Leave the exit code to ``run``; rich would exit with 1."""
        raise BrokenPipeError


def _discard_output() -> None:
    """Where stdout takes nothing any more, let what is buffered, and the interpreter's last flush, go nowhere."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
