"""Any row of calls, against a model that is a dict of lists.

The stores under test are memory, and two SQLite stores on one file, which are closed and opened again now and
then, snapshots coming and going meanwhile. The model knows nothing of them; what it answers is what the docstrings of
``SessionStore`` say.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from plain_model import Model, Modelled
from raw_database import raw

from talkfold.actions import Retry, Send
from talkfold.codec import encode_action
from talkfold.errors import (
    CursorAhead,
    TalkfoldError,
    VersionConflict,
)
from talkfold.model import SessionState
from talkfold.store import ABSENT, ANY, EXISTS, Hold, Retention, SessionStore, Waiting, open_store
from talkfold.store.sqlite import snapshotter
from talkfold.testing.store_contract import METADATA_KEYS, Clock
from talkfold.testing.store_contract.samples import CONVERSATION, ODD_BODIES

OWNERS = st.sampled_from([None, None, None, "ann", "bob"])
IDS = st.sampled_from(["a", "b", "c"])
KEYS = st.sampled_from([None, None, "k", "l"])
TITLES = st.sampled_from([None, "", "Oslo", "OSLO weather", "50%"])
METADATA = st.none() | st.dictionaries(
    st.sampled_from(["project", "stars", "other"]), st.sampled_from([None, 1, True, "1", "north", 0.5, [1], {}])
)
BODIES = st.lists(
    st.sampled_from([*map(encode_action, CONVERSATION), *ODD_BODIES, encode_action(Send("u", "x" * 300))]),
    min_size=1,
    max_size=12,
)
EXPECTED = st.sampled_from([ANY, ANY, EXISTS, EXISTS, ABSENT, "head", "head", "behind", "ahead"])
NUMBERS = st.integers(0, 40)
HOLDS = st.sampled_from([Hold("r1", 3), Hold("r1", 3), Hold("r2", 6)])


class StoreMachine(RuleBasedStateMachine):
    """Each rule makes one call, to one of the stores, and looks whether the model says the same."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.clock = Clock()
        self.model.now = self.clock.stop()
        self.loop = asyncio.new_event_loop()
        self.opened: list[AbstractAsyncContextManager[SessionStore]] = []
        self.stores: list[SessionStore] = []

    def place(self) -> list[AbstractAsyncContextManager[SessionStore]]:
        """The stores to open, all of the same sessions."""
        raise NotImplementedError

    def run(self, call: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(call, 30))

    @initialize()
    def open_all(self) -> None:
        self.opened = self.place()
        self.stores = [self.run(opened.__aenter__()) for opened in self.opened]

    def close_all(self) -> None:
        for opened in self.opened:
            self.run(opened.__aexit__(None, None, None))
        self.opened = []

    def same(self, call: Awaitable[Any], modelled: Callable[[], Any]) -> Any:
        """The store's answer, once the model has given the same: the same value, or the same error."""
        refusal: TalkfoldError | None = None
        due = None
        try:
            due = modelled()
        except TalkfoldError as error:
            refusal = error
        if refusal is None:
            answer = self.run(call)
            assert due in (None, answer)
            return answer
        with pytest.raises(type(refusal)) as caught:
            self.run(call)
        assert type(caught.value) is type(refusal)
        if isinstance(caught.value, VersionConflict) and isinstance(refusal, VersionConflict):
            assert caught.value.actual == refusal.actual
            expected = caught.value.expected
            assert len(caught.value.missing) == max(0, refusal.actual - expected if isinstance(expected, int) else 0)
        return None

    def one(self, which: int) -> SessionStore:
        return self.stores[which % len(self.stores)]

    # ---- what may happen ---------------------------------------------------------------------------------

    @rule(
        which=st.integers(0, 1),
        session_id=IDS,
        owner=OWNERS,
        title=TITLES,
        metadata=METADATA,
        sent=BODIES | st.just([]),
    )
    def create(
        self, which: int, session_id: str, owner: str | None, title: str | None, metadata: Any, sent: list[bytes]
    ) -> None:
        def modelled() -> None:
            session = self.model.add(session_id, owner)
            session.title, session.metadata, session.log = title, dict(metadata or {}), [*sent]

        self.same(
            self.one(which).create(session_id, owner=owner, title=title, metadata=metadata, actions=sent), modelled
        )

    @rule(
        which=st.integers(0, 1),
        session_id=IDS,
        owner=OWNERS,
        sent=BODIES,
        expected=EXPECTED,
        key=KEYS,
        hold=st.none() | HOLDS,
    )
    def append(
        self,
        which: int,
        session_id: str,
        owner: str | None,
        sent: list[bytes],
        expected: Any,
        key: str | None,
        hold: Hold | None,
    ) -> None:
        if isinstance(expected, str):
            try:
                head = len(self.model.find(session_id, owner).log)
            except TalkfoldError:
                head = 0
            expected = max(0, head + {"head": 0, "behind": -3, "ahead": 1}[expected])
        call = self.one(which).append(session_id, sent, owner=owner, expected=expected, key=key, hold=hold)
        self.same(call, lambda: self.model.append(session_id, owner, sent, expected, key, hold))

    @rule(which=st.integers(0, 1), session_id=IDS, owner=OWNERS, title=TITLES, metadata=METADATA)
    def update(self, which: int, session_id: str, owner: str | None, title: str | None, metadata: Any) -> None:
        def modelled() -> None:
            session = self.model.find(session_id, owner)
            session.title = session.title if title is None else title
            if metadata is not None:
                merged = {**session.metadata, **metadata}
                session.metadata = {name: value for name, value in merged.items() if value is not None}

        self.same(self.one(which).update(session_id, owner=owner, title=title, metadata=metadata), modelled)

    @rule(which=st.integers(0, 1), session_id=IDS, new_id=IDS, owner=OWNERS, at=st.none() | NUMBERS)
    def fork(self, which: int, session_id: str, new_id: str, owner: str | None, at: int | None) -> None:
        def modelled() -> None:
            source = self.model.find(session_id, owner)
            if at is not None and at > len(source.log):
                raise CursorAhead(session_id, at, len(source.log))
            copy = self.model.add(new_id, source.owner)
            copy.title, copy.metadata, copy.log = source.title, dict(source.metadata), source.log[:at]

        self.same(self.one(which).fork(session_id, new_id=new_id, owner=owner, at=at), modelled)

    @rule(which=st.integers(0, 1), session_id=IDS, owner=OWNERS)
    def open_session(self, which: int, session_id: str, owner: str | None) -> None:
        def modelled() -> None:
            session = self.model.find(session_id, owner)
            settled.append(session.settle(self.model.now))
            states.append(session.state())

        settled, states = list[bool](), list[SessionState]()
        answer = self.same(self.one(which).open_session(session_id, owner=owner), modelled)
        if answer is not None:
            assert [answer.settled] == settled
            assert [answer.state] == states

    @rule(which=st.integers(0, 1), session_id=IDS, owner=OWNERS, chance=st.integers(0, 2))
    def erase(self, which: int, session_id: str, owner: str | None, chance: int) -> None:
        if chance:
            return  # or no session would live to be interesting

        def modelled() -> None:
            session = self.model.find(session_id, owner)
            session.erased, session.run = True, None

        self.same(self.one(which).erase(session_id, owner=owner), modelled)

    @rule(which=st.integers(0, 1), owner=st.sampled_from(["ann", "bob"]), chance=st.integers(0, 6))
    def erase_owner(self, which: int, owner: str, chance: int) -> None:
        if chance:
            return
        theirs = [session for session in self.model.sessions if session.owner == owner and not session.erased]
        erased = self.run(self.one(which).erase_owner(owner))
        assert [(it.id, it.owner, it.number) for it in erased] == [(it.id, owner, len(it.log)) for it in theirs]
        for session in theirs:
            session.erased, session.run = True, None

    @rule(
        which=st.integers(0, 1),
        owner=OWNERS,
        statuses=st.sets(st.sampled_from(["idle", "streaming", "error"])),
        chance=st.integers(0, 6),
    )
    def retain(self, which: int, owner: str | None, statuses: set[Any], chance: int) -> None:
        due = [
            session
            for session in self.model.sessions
            if not session.erased
            and owner in (None, session.owner)
            and (not statuses or session.state().status in statuses)
            and session.living(self.model.now) is None
        ]
        rule = Retention(timedelta(0), owner, tuple(statuses))
        picked = self.run(self.one(which).retain(rule, dry_run=chance > 0))
        assert [(it.id, it.owner, it.status, it.number) for it in picked] == [
            (it.id, it.owner, it.state().status, len(it.log)) for it in due
        ]
        if not chance:
            for session in due:
                session.erased, session.run = True, None

    @rule(which=st.integers(0, 1), session_id=IDS, owner=OWNERS, after=NUMBERS, limit=st.integers(1, 15))
    def read(self, which: int, session_id: str, owner: str | None, after: int, limit: int) -> None:
        def modelled() -> None:
            log = self.model.find(session_id, owner).log
            if after > len(log):
                raise CursorAhead(session_id, after, len(log))
            due.extend(enumerate(log[after : after + limit], start=after + 1))

        due = list[tuple[int, bytes]]()
        answer = self.same(self.one(which).read(session_id, owner=owner, after=after, limit=limit), modelled)
        assert [(row.number, row.body) for row in answer or ()] == due

    @rule(which=st.integers(0, 1), session_id=IDS, owner=OWNERS, at=st.none() | NUMBERS)
    def state(self, which: int, session_id: str, owner: str | None, at: int | None) -> None:
        def modelled() -> None:
            session = self.model.find(session_id, owner)
            if at is not None and at > len(session.log):
                raise CursorAhead(session_id, at, len(session.log))
            due.append((len(session.log) if at is None else at, session.state(at)))

        due = list[tuple[int, SessionState]]()
        answer = self.same(self.one(which).state(session_id, owner=owner, at=at), modelled)
        assert due == ([] if answer is None else [(answer.number, answer.state)])

    @rule(
        which=st.integers(0, 1),
        owner=OWNERS,
        status=st.sampled_from([None, None, "idle", "streaming", "error"]),
        title=st.sampled_from([None, None, "oslo", "%", ""]),
        stars=st.sampled_from(["any", "any", None, 1, True, "1", 0.5]),
        limit=st.integers(1, 4),
    )
    def list(self, which: int, owner: str | None, status: Any, title: str | None, stars: Any, limit: int) -> None:
        def wanted(session: Modelled) -> bool:
            held = session.metadata.get("stars", "none")
            return (
                not session.erased
                and owner in (None, session.owner)
                and status in (None, session.state().status)
                and (title is None or (session.title is not None and title in session.title.lower()))
                and (
                    stars == "any"
                    or (
                        "stars" not in session.metadata if stars is None else (type(held), held) == (type(stars), stars)
                    )
                )
            )

        found = list[tuple[str, str | None]]()
        cursor = None
        while True:
            page = self.run(
                self.one(which).list(
                    owner=owner,
                    status=status,
                    title=title,
                    metadata=None if stars == "any" else {"stars": stars},
                    limit=limit,
                    cursor=cursor,
                )
            )
            found += [(session.id, session.owner) for session in page.sessions]
            cursor = page.next
            if cursor is None:
                break
        assert found == [(s.id, s.owner) for s in reversed(self.model.sessions) if wanted(s)]

    # ---- runs --------------------------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 999, 1_000, 3_000, 6_000]))
    def wait(self, milliseconds: int) -> None:
        self.model.now = self.clock.forward(milliseconds)

    @rule(
        which=st.integers(0, 1),
        session_id=IDS,
        owner=OWNERS,
        hold=HOLDS,
        action=st.sampled_from([Send("u", "again"), Send("u", "again"), Retry()]),
    )
    def start(self, which: int, session_id: str, owner: str | None, hold: Hold, action: Send | Retry) -> None:
        def modelled() -> None:
            due.append(self.model.start(session_id, owner, action, hold))
            states.append(self.model.find(session_id, owner).state())

        due, states = list[tuple[int, bool]](), list[SessionState]()
        answer = self.same(self.one(which).start(session_id, action, hold=hold, owner=owner), modelled)
        if answer is not None:
            assert ([(answer.number, answer.settled)], [answer.state]) == (due, states)

    @rule(
        which=st.integers(0, 1),
        session_id=IDS,
        owner=OWNERS,
        hold=HOLDS,
        sent=BODIES | st.just([]),
        number=st.none() | st.integers(0, 6),
    )
    def keep(
        self, which: int, session_id: str, owner: str | None, hold: Hold, sent: list[bytes], number: int | None
    ) -> None:
        store = self.one(which)
        if number is None:
            call = store.renew(session_id, hold=hold, owner=owner)
            self.same(call, lambda: self.model.keep(session_id, owner, hold, [], None) and None)
        else:
            waiting = Waiting(number, "c", "pay", "approval")
            call = store.park(session_id, sent, hold=hold, waiting=waiting, owner=owner)
            self.same(call, lambda: self.model.keep(session_id, owner, hold, sent, number))

    @rule(which=st.integers(0, 1), session_id=IDS, owner=OWNERS, sent=BODIES, number=st.integers(1, 6))
    def answer(self, which: int, session_id: str, owner: str | None, sent: list[bytes], number: int) -> None:
        call = self.one(which).answer(session_id, sent, number=number, owner=owner)
        self.same(call, lambda: self.model.answer(session_id, owner, sent, number))

    @rule(which=st.integers(0, 1), session_id=IDS, owner=OWNERS, hold=HOLDS, sent=BODIES | st.just([]))
    def release(self, which: int, session_id: str, owner: str | None, hold: Hold, sent: list[bytes]) -> None:
        call = self.one(which).release(session_id, sent, hold=hold, owner=owner)
        self.same(call, lambda: self.model.release(session_id, owner, sent, hold))

    @invariant()
    def heads_are_as_modelled(self) -> None:
        for index, session in enumerate(self.model.sessions if self.stores else ()):
            if session.owner is None or session.erased:
                continue
            row = self.run(self.one(index).get(session.id, owner=session.owner))
            assert (row.number, row.size, row.title) == (len(session.log), sum(map(len, session.log)), session.title)
            assert (row.metadata or {}) == session.metadata
            run, lease = session.living(self.model.now), row.lease
            assert (lease is None) is (run is None)
            if run is not None:
                waits = None if lease.waiting is None else lease.waiting.number
                assert (lease.run, lease.since, lease.expires, waits) == (run.id, run.since, run.expires, run.waiting)

    def teardown(self) -> None:
        try:
            for session in self.model.sessions if self.stores else ():
                if session.erased or (session.owner is None and self._ambiguous(session.id)):
                    continue
                for store in self.stores:
                    report = self.run(store.check(session.id, owner=session.owner))
                    assert report.problems == ()
                    assert report.number == len(session.log)
                    log = self.run(store.read(session.id, owner=session.owner, limit=10_000))
                    assert [row.body for row in log] == session.log
                    assert self.run(store.state(session.id, owner=session.owner)).state == session.state()
        finally:
            self.close_all()
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    def _ambiguous(self, session_id: str) -> bool:
        return sum(s.id == session_id and not s.erased for s in self.model.sessions) > 1


class MemoryMachine(StoreMachine):
    def place(self) -> Any:
        return [open_store("memory:", metadata_keys=METADATA_KEYS, clock=self.clock)]


class SqliteMachine(StoreMachine):
    """Two stores on one file, and snapshots every 400 bytes instead of every 256 KiB."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="talkfold-model-"))
        self.small = patch.object(snapshotter, "SNAPSHOT_BYTES", 400)
        self.small.start()

    def place(self) -> Any:
        return [
            open_store(self.folder / "chat.db", metadata_keys=METADATA_KEYS, synchronous="NORMAL", clock=self.clock)
            for _ in range(2)
        ]

    @rule()
    def reopen(self) -> None:
        self.close_all()
        for session in self.model.sessions:
            if session.run is not None:
                session.run.there = False
        self.open_all()

    @rule(dropped=st.integers(0, 2**16 - 1))
    def drop_snapshots(self, dropped: int) -> None:
        with raw(self.folder / "chat.db") as connection:
            # When snapshots are taken is a matter of time, so nothing may be drawn for each of them.
            rows = connection.execute("SELECT session, number FROM snapshot ORDER BY session, number").fetchall()
            for index, row in enumerate(rows):
                if dropped >> index % 16 & 1:
                    connection.execute("DELETE FROM snapshot WHERE session = ? AND number = ?", row)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.small.stop()
            shutil.rmtree(self.folder)


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        derandomize=examples < 200,
        print_blob=True,
    )


TestMemoryModel = MemoryMachine.TestCase
TestMemoryModel.settings = _settings(40)
TestSqliteModel = SqliteMachine.TestCase
TestSqliteModel.settings = _settings(30)


@pytest.mark.long
@pytest.mark.timeout(3_600)
class TestSqliteModelForLong(SqliteMachine.TestCase):
    settings = _settings(1_000)
