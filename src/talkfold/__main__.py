"""``talkfold`` and ``python -m talkfold``: the command line, when its extra is installed."""

from __future__ import annotations

import io
import sys
from importlib.util import find_spec

__all__ = ("main",)

_EXTRA = ("cyclopts", "rich", "platformdirs")


def main() -> None:
    """Run the command line with the process's arguments and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a word that the terminal cannot show is no fault
    if any(find_spec(name) is None for name in _EXTRA):
        sys.stderr.write("The command line needs more: pip install 'talkfold[cli]'\n")
        sys.exit(2)
    from .cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
