"""eventsourcing: its SQLite recorder, the layer below its aggregates. Synchronous, WAL, FULL, versions checked."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from uuid import NAMESPACE_OID, UUID, uuid5

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteAggregateRecorder, SQLiteDatastore

from ..stores import Store

__all__ = ("STORES",)

TOPIC = "talkfold.actions:Part"


class _Log:
    def __init__(self, recorder: SQLiteAggregateRecorder, name: str) -> None:
        self._recorder = recorder
        self._id: UUID = uuid5(NAMESPACE_OID, name)
        self._number = 0

    async def append(self, items: Sequence[bytes]) -> None:
        first = self._number + 1
        self._recorder.insert_events(
            [StoredEvent(self._id, number, TOPIC, body) for number, body in enumerate(items, first)]
        )
        self._number += len(items)

    async def load(self) -> int:
        """The rows and their JSON as dicts; turning them into its event objects would cost more."""
        return len([json.loads(event.state) for event in self._recorder.select_events(self._id)])


class _Recorder:
    def __init__(self, recorder: SQLiteAggregateRecorder) -> None:
        self._recorder = recorder

    async def log(self, name: str) -> _Log:
        return _Log(self._recorder, name)


@asynccontextmanager
async def _opened(folder: Path) -> AsyncGenerator[_Recorder]:
    datastore = SQLiteDatastore(str(folder / "events.db"))
    try:
        recorder = SQLiteAggregateRecorder(datastore)
        recorder.create_table()
        yield _Recorder(recorder)
    finally:
        datastore.close()


STORES = (Store("eventsourcing SQLite recorder", f"eventsourcing {version('eventsourcing')}", list, _opened),)
