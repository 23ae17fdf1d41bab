"""The contract of a store, held by both of ours."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from talkfold.store import SessionStore, open_store
from talkfold.testing.store_contract import METADATA_KEYS, StoreContract


class TestMemoryStore(StoreContract):
    def open(self) -> AbstractAsyncContextManager[SessionStore]:
        return open_store("memory:", metadata_keys=METADATA_KEYS, clock=self.clock)


class TestMemoryStoreOnTrio(TestMemoryStore):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "trio"


class TestSqliteStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "chat.db"

    def open(self) -> AbstractAsyncContextManager[SessionStore]:
        return open_store(self.path, metadata_keys=METADATA_KEYS, clock=self.clock)
