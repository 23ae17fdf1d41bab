"""A question to the person at the terminal, before something that cannot be undone."""

from __future__ import annotations

import sys

from ..errors import InvalidArgument
from .output import clean

__all__ = ("agreed",)


def agreed(question: str, option: str, otherwise: str) -> bool:
    """Ask on stderr and read the answer from stdin; only y and yes agree.

    Raises InvalidArgument for ``option``, with ``otherwise`` as its reason, where there is nobody to ask.
    """
    if not sys.stdin.isatty():
        raise InvalidArgument(option, f"there is nobody here to ask; {otherwise}")
    sys.stdout.flush()
    sys.stderr.write(f"{clean(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
