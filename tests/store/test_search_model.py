"""Search against looking at every text of every log, whatever was written, erased, forked and switched before."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from raw_database import raw

from talkfold.actions import Finish, MessageStart, Part, Reasoning, Reset, Retry, Send, SessionAction, Stop, TextDelta
from talkfold.errors import SearchIsOff
from talkfold.store import SessionStore, open_store
from talkfold.store.search import texts
from talkfold.store.search.query import parse_query
from talkfold.store.search.texts import Texts
from talkfold.store.sqlite import indexer, search_rows

WORDS = ("mug", "Mug", "müg", "basket", "bas", "ket", "blue mug", "a_b", "我们")
PIECES = st.sampled_from([*WORDS, " ", " ", ", ", "mu", "g", "bask", "et", "x" * 40])
QUERIES = st.sampled_from(
    ["mug", "mu*", "basket", "bas*", "blue mug", '"blue mug"', '"mug basket"', "bas ket", "a_b", "我", "我们", "x*"]
)
ACTIONS: st.SearchStrategy[SessionAction] = st.one_of(
    st.builds(lambda text: Send("u", text), PIECES),
    st.builds(
        lambda lane, delta: Part(TextDelta(lane[1], delta), within=lane[0]),
        st.sampled_from([(None, "a"), (None, "b"), ("d", "a")]),
        PIECES,
    ),
    st.builds(
        lambda within, part: Part(part, within=within),
        st.sampled_from([None, "d"]),
        st.sampled_from([MessageStart("a"), Finish("stop"), Reasoning("a", "blue mug basket")]),
    ),
    st.sampled_from([Stop(), Retry(), Reset()]),
)
LOGS = st.lists(ACTIONS, min_size=1, max_size=12)
IDS = st.sampled_from(["a", "b", "c", "d"])
OWNERS = {"a": None, "b": "ann", "c": "bob", "d": "ann"}


def scan(log: Sequence[SessionAction], query: str) -> list[tuple[int, int, str]]:
    """What a search of one log must find, newest first."""
    reader, asked = Texts(), parse_query(query)
    for number, action in enumerate(log, start=1):
        reader.add(number, action)
    found = [text for text in (*reader.finished, *reader.unfinished()) if text.words and asked.matches(text.words)]
    return [(text.first, text.last, text.kind) for text in sorted(found, reverse=True)]


async def everything(store: SessionStore, query: str, limit: int, **narrowed: Any) -> list[tuple[str, int, int, str]]:
    """The hits of all pages."""
    found = list[tuple[str, int, int, str]]()
    cursor: str | None = None
    while True:
        page = await store.search(query, limit=limit, cursor=cursor, **narrowed)
        found += [(hit.session_id, hit.first, hit.last, hit.kind) for hit in page.hits]
        cursor = page.next
        if cursor is None:
            return found


class SearchMachine(RuleBasedStateMachine):
    """Two SQLite stores on one file. What is indexed behind their backs, and when, is left to chance."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="talkfold-search-"))
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.stores: list[SessionStore] = []
        self.logs: dict[str, list[SessionAction]] = {}
        self.names: list[str] = []
        self.erased: set[str] = set()
        self.off = False
        self.patches = [
            patch.object(indexer, "QUIET_SECONDS", 0.0005),
            patch.object(search_rows, "MOST_ACTIONS", 7),
            patch.object(texts, "_CHUNK", 60),
            patch.object(texts, "_MOST_STREAMS", 2),
            patch.object(texts, "_LONGEST", 20),
        ]
        for each in self.patches:
            each.start()

    def run(self, call: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(call)

    @initialize()
    def open_all(self) -> None:
        for _ in range(2):
            store = open_store(self.folder / "chat.db", synchronous="NORMAL")
            self.stores.append(self.run(self.stack.enter_async_context(store)))

    def close_all(self) -> None:
        self.run(self.stack.aclose())
        self.stores.clear()

    @rule()
    def reopen(self) -> None:
        self.close_all()
        self.open_all()

    @rule(which=st.integers(0, 1), name=IDS, log=LOGS, pause=st.sampled_from([0, 0, 0, 0.003]))
    def append(self, which: int, name: str, log: list[SessionAction], pause: float) -> None:
        if name in self.erased:
            return
        if name not in self.names:
            self.run(self.stores[which].create(name, owner=OWNERS[name], actions=log))
            self.names.append(name)
        else:
            self.run(self.stores[which].append(name, log))
        self.logs.setdefault(name, []).extend(log)
        self.run(asyncio.sleep(pause))

    @rule(which=st.integers(0, 1), name=IDS, at=st.integers(0, 20))
    def fork(self, which: int, name: str, at: int) -> None:
        copy = f"{name}{len(self.names)}"
        if name in self.logs:
            at = min(at, len(self.logs[name]))
            self.run(self.stores[which].fork(name, at=at, new_id=copy))
            self.logs[copy] = self.logs[name][:at]
            self.names.append(copy)

    @rule(which=st.integers(0, 1), name=IDS, chance=st.integers(0, 3))
    def erase(self, which: int, name: str, chance: int) -> None:
        if name in self.logs and not chance:
            self.run(self.stores[which].erase(name))
            del self.logs[name]
            self.erased.add(name)

    @rule(which=st.integers(0, 1), on=st.sampled_from([True, True, False]))
    def switch(self, which: int, on: bool) -> None:
        self.run(self.stores[which].set_search(on))
        self.off = not on

    @rule(which=st.integers(0, 1), name=IDS)
    def forget(self, which: int, name: str) -> None:
        """Somebody throws a part of the index away by hand: progress and rows of one session."""
        with raw(self.folder / "chat.db") as connection:
            row = connection.execute("SELECT key FROM session WHERE id = ?", (name,)).fetchone()
            if row is not None:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("DELETE FROM search WHERE rowid BETWEEN ? AND ?", search_rows.rows_of(row[0]))
                connection.execute("DELETE FROM search_progress WHERE session = ?", row)
                connection.execute("COMMIT")

    @rule(
        which=st.integers(0, 1),
        query=QUERIES,
        limit=st.integers(1, 5),
        owner=st.sampled_from([None, None, "ann", "bob", "eve"]),
        name=st.none() | IDS,
    )
    def search(self, which: int, query: str, limit: int, owner: str | None, name: str | None) -> None:
        if name is not None and (name not in self.logs or owner not in (None, OWNERS[name])):
            return
        call = everything(self.stores[which], query, limit, owner=owner, session_id=name)
        if self.off:
            with pytest.raises(SearchIsOff):
                self.run(call)
            return
        due = [
            (each, *text)
            for each in reversed(self.names)
            if each in self.logs and name in (None, each) and owner in (None, OWNERS[each[:1]])
            for text in scan(self.logs[each], query)
        ]
        assert self.run(call) == due

    def teardown(self) -> None:
        try:
            self.close_all()
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
        finally:
            for each in self.patches:
                each.stop()
            shutil.rmtree(self.folder)


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        derandomize=examples < 200,
        print_blob=True,
    )


TestSearchModel = SearchMachine.TestCase
TestSearchModel.settings = _settings(40)


@pytest.mark.long
@pytest.mark.timeout(3_600)
class TestSearchModelForLong(SearchMachine.TestCase):
    settings = _settings(1_000)
