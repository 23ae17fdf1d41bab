"""Input: a file or stdin, as a binary stream."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ..codec import MAX_DOCUMENT_BYTES, TornLine
from ..errors import InvalidArgument, TooLarge
from .output import say

__all__ = ("read_document", "source", "warn_torn")


@contextmanager
def source(given: str) -> Generator[BinaryIO]:
    """The file with this path, or stdin for ``-``. Raises InvalidArgument when it cannot be opened."""
    if given == "-":
        if cast("object", sys.stdin) is None:  # so Python has it when the shell closed it
            raise InvalidArgument("FILE", "-: stdin is closed")
        yield sys.stdin.buffer
        return
    try:
        stream = Path(given).open("rb")
    except OSError as error:
        raise InvalidArgument("FILE", f"{given}: {error.strerror}") from error
    with stream:
        yield stream


def read_document(stream: BinaryIO, what: str) -> bytes:
    """A whole JSON document. Raises TooLarge before more is read than the codec takes."""
    data = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise TooLarge(what, len(data), MAX_DOCUMENT_BYTES)
    return data


def warn_torn(torn: TornLine) -> None:
    """Tell on stderr that the file was cut short, and that the rest was taken."""
    how = f"was cut short after {torn.size} bytes" if torn.size else "and what follows it is missing"
    say(f"talkfold: line {torn.line} {how}, as a crash leaves it; everything before it was read.")
