"""What a row gets to work with, and how big it may be."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from .stores import Item, OpenedStore, Store

__all__ = ("Bench", "disk_bytes", "fill")


@dataclass(frozen=True)
class Bench:
    """A run: the folder on the disk that is measured, the peers, and the sizes."""

    folder: Path
    peers: Sequence[Store]
    quick: bool = False

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    @asynccontextmanager
    async def scratch(self) -> AsyncGenerator[Path]:
        """A new folder, removed at the end."""
        folder = Path(mkdtemp(dir=self.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    @asynccontextmanager
    async def opened(self, stores: Sequence[Store]) -> AsyncGenerator[list[tuple[Store, OpenedStore]]]:
        """Each store open in a new folder of its own."""
        async with AsyncExitStack() as stack:
            yield [
                (store, await stack.enter_async_context(store.opened(await stack.enter_async_context(self.scratch()))))
                for store in stores
            ]


async def fill(store: Store, folder: Path, items: Sequence[Item], batch: int = 100, name: str = "s-1") -> None:
    """Write a conversation in transactions of ``batch`` items, and close the store."""
    async with store.opened(folder) as opened:
        log = await opened.log(name)
        for start in range(0, len(items), batch):
            await log.append(items[start : start + batch])


def disk_bytes(folder: Path) -> int:
    """All files of a closed store."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
