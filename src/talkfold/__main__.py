"""``talkfold`` and ``python -m talkfold``: the command line, when its extra is installed."""

from __future__ import annotations

import sys

__all__ = ("main",)

_EXTRA = frozenset({"cyclopts", "rich", "platformdirs"})


def main() -> None:
    """Run the command line with the process's arguments and exit with its code."""
    try:
        from .cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.exit(_say("The command line needs more: pip install 'talkfold[cli]'"))
    sys.exit(run(sys.argv[1:]))


def _say(words: str) -> int:
    sys.stderr.write(words + "\n")
    return 2


if __name__ == "__main__":
    main()
