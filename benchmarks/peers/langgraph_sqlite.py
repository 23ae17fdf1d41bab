"""langgraph-checkpoint-sqlite: ``AsyncSqliteSaver``. Every step stores a checkpoint with the whole conversation."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ..stores import Store

__all__ = ("STORES",)

CHANNEL = "messages"


class _Thread:
    def __init__(self, saver: AsyncSqliteSaver, name: str) -> None:
        self._saver = saver
        self._config: RunnableConfig = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        self._items: list[Any] = []

    async def append(self, items: Sequence[Any]) -> None:
        self._items.extend(items)
        number = len(self._items)
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {CHANNEL: self._items}
        checkpoint["channel_versions"] = {CHANNEL: number}
        self._config = await self._saver.aput(
            self._config, checkpoint, {"source": "loop", "step": number}, {CHANNEL: number}
        )

    async def load(self) -> int:
        found = await self._saver.aget_tuple(self._config)
        assert found is not None
        return len(found.checkpoint["channel_values"][CHANNEL])


class _Saver:
    def __init__(self, saver: AsyncSqliteSaver) -> None:
        self._saver = saver

    async def log(self, name: str) -> _Thread:
        return _Thread(self._saver, name)


def _prepare(bodies: Sequence[bytes]) -> list[Any]:
    """Plain dicts, which its serializer packs faster than message objects."""
    return [json.loads(body) for body in bodies]


@asynccontextmanager
async def _opened(folder: Path) -> AsyncGenerator[_Saver]:
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        yield _Saver(saver)


STORES = (
    Store(
        "langgraph AsyncSqliteSaver",
        f"langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')}",
        _prepare,
        _opened,
    ),
)
