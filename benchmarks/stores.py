"""What a thing that keeps conversations must do to be measured: append, and load again.

talkfold, plain sqlite3 and every peer are one ``Store`` each, so that every row of the table times them through
the same few calls. Each is used the way its own documentation says, at its fastest durable setting that it offers
without changing its source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

__all__ = ("Item", "OpenedStore", "Store", "StoredLog")

Item = Any
"""One action in the form that a store takes, made outside of the measured time."""


class StoredLog(Protocol):
    """One conversation in an open store."""

    async def append(self, items: Sequence[Item]) -> None:
        """Write the items; they are on the disk when this returns."""
        ...

    async def load(self) -> int:
        """Read the whole conversation back as objects to work with. Returns how many items or parts there were."""
        ...


class OpenedStore(Protocol):
    """A store that is open."""

    async def log(self, name: str) -> StoredLog:
        """The conversation of that name; a new one when it is not there yet."""
        ...


@dataclass(frozen=True)
class Store:
    """A way to keep conversations in SQLite. ``version`` names the package and its version.

    ``prepare`` turns the JSON of actions into items; ``opened`` opens the store in a folder of its own.
    ``batches``: it can write several items in one transaction. ``every``: it takes part in every n-th round
    only, for the slow ones.
    """

    name: str
    version: str
    prepare: Callable[[Sequence[bytes]], list[Item]]
    opened: Callable[[Path], AbstractAsyncContextManager[OpenedStore]]
    batches: bool = True
    every: int = 1
