"""Where an export goes: to stdout, or to a file that is whole or not there at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from ..errors import InvalidArgument
from .output import write

__all__ = ("destination",)


@contextmanager
def destination(given: str | None) -> Generator[Callable[[bytes], None]]:
    """What writes bytes to the file ``given``; to stdout when it is None or ``-``.

    The file takes its name when everything is written; one that had the name before is replaced. Raises
    InvalidArgument when the folder takes no file, or the name is a folder's.
    """
    if given is None or given == "-":
        yield write
        return
    path = Path(given)
    if path.is_dir():
        raise InvalidArgument("--output", f"{given} is a folder; name a file in it")
    if path.exists() and not path.is_file():  # a pipe or a device has no whole to be replaced by
        with path.open("wb") as stream:
            yield lambda data: _put(stream.write(data))
        return
    real = path.resolve()  # a link stays, what it names is replaced
    try:
        file = NamedTemporaryFile(dir=real.parent, prefix=f".{real.name[:80]}.", suffix=".part", delete=False)
    except OSError as error:
        raise InvalidArgument("--output", f"{given}: {error.strerror}") from error
    try:
        with file:
            yield lambda data: _put(file.write(data))
        _let_read(file.name, real)
        os.replace(file.name, real)
    except BaseException:
        Path(file.name).unlink(missing_ok=True)
        raise


def _put(_: int) -> None:
    """A write to a file takes everything or raises."""


def _let_read(made: str, replaced: Path) -> None:
    """Give a file that was made for its writer alone the mode of the one it replaces, or that of any new file."""
    if replaced.exists():
        mode = replaced.stat().st_mode & 0o777
    else:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    Path(made).chmod(mode)
