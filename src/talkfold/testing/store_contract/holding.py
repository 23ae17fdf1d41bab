"""The contract of writing by a lease: a run's appends, renewals, and how it gives the lease back."""

from __future__ import annotations

from typing import Any

import pytest

from ...actions import Finish, Part, Send, Stop, TextDelta
from ...errors import (
    InvalidArgument,
    InvalidJson,
    LeaseLost,
    RunInProgress,
    SessionNotFound,
    TalkfoldError,
    VersionConflict,
)
from ...log import Entry
from ...store.lease import Hold, Waiting
from ...store.protocol import ABSENT, ANY, Appended, Expected, SessionStore
from .opening import UsesStore, error_of
from .starting import HOLD, OTHER, actions

__all__ = ("Holding",)

_HELLO = Send("u", "hello")
_PART = Part(TextDelta("a", "word "))
_END = Part(Finish("stop"))


class Holding(UsesStore):
    async def test_a_run_writes_under_its_id(self) -> None:
        async with self.open() as store:
            await _begun(store)
            appended = await store.append(
                "s", [_PART, Entry(_PART, actor="bob")], hold=HOLD, actor="ann", meta={"n": 1}
            )
            assert appended == Appended(2, 3)
            first, second = await store.read("s", after=1)
            assert (first.run, first.actor, first.meta) == ("run 1", "ann", {"n": 1})
            assert (second.run, second.actor, second.meta) == ("run 1", "bob", {"n": 1})
            assert (await store.append("s", [_PART], hold=HOLD, run="run 1")).last == 4
            error = await error_of(store.append("s", [_PART], hold=HOLD, run="run 2"))
            assert isinstance(error, InvalidArgument)

    async def test_a_lease_is_renewed_on_the_way_when_a_third_is_over(self) -> None:
        now = self.clock.stop()
        async with self.open() as store:
            await _begun(store)
            self.clock.forward(3_000)  # exactly a third
            await store.append("s", [_PART], hold=HOLD)
            assert await _expires(store) == now + 9_000
            self.clock.forward(1)
            await store.append("s", [_PART], hold=HOLD)
            assert await _expires(store) == now + 12_001
            await store.append("s", [_PART])  # somebody else's append keeps nobody alive
            self.clock.forward(5_000)
            await store.append("s", [_PART])
            assert await _expires(store) == now + 12_001

    async def test_a_run_that_writes_lives_as_long_as_it_writes(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _begun(store)
            for _ in range(10):
                self.clock.forward(8_000)
                await store.append("s", [_PART], hold=HOLD)
                assert isinstance(await error_of(store.start("s", _HELLO, hold=OTHER)), RunInProgress)

    async def test_who_has_no_lease_writes_nothing(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await _refused(store, HOLD)
            await store.start("s", _HELLO, hold=HOLD)
            await _refused(store, OTHER)
            await store.release("s", [_END], hold=HOLD)
            await _refused(store, HOLD)

    async def test_a_lease_that_is_over_but_nobodys_is_still_its_own(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _begun(store)
            for call in ("append", "renew", "park", "release"):
                now = self.clock.forward(60_000)
                assert (await store.get("s")).lease is None
                if call == "append":
                    await store.append("s", [_PART], hold=HOLD)
                elif call == "renew":
                    await store.renew("s", hold=HOLD)
                elif call == "park":
                    await store.park("s", [], hold=HOLD, waiting=Waiting(1, "c", "pay", "approval"))
                else:
                    await store.release("s", [_END], hold=HOLD)
                    break
                assert await _expires(store) == now + 9_000
            assert actions(await store.read("s")) == [_HELLO, _PART, _END]

    @pytest.mark.parametrize("expected", [ANY, ABSENT])
    async def test_a_run_makes_no_session(self, expected: Expected) -> None:
        async with self.open() as store:
            error = await error_of(store.append("s", [_PART], hold=HOLD, expected=expected))
            assert isinstance(error, LeaseLost)
            assert isinstance(await error_of(store.append("s", [_PART], hold=HOLD)), SessionNotFound)
            assert isinstance(await error_of(store.get("s")), SessionNotFound)

    async def test_what_is_refused_renews_nothing(self) -> None:
        now = self.clock.stop()
        async with self.open() as store:
            await _begun(store)
            self.clock.forward(8_000)
            error = await error_of(store.append("s", [_PART], hold=HOLD, expected=7))
            assert isinstance(error, VersionConflict)
            assert isinstance(await error_of(store.append("s", [b"{"], hold=HOLD)), InvalidJson)
            assert await _expires(store) == now + 9_000

    async def test_a_key_gives_the_first_answer_even_when_the_lease_is_lost(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _begun(store)
            first = await store.append("s", [_PART], hold=HOLD, key="k")
            self.clock.forward(9_000)
            await store.open_session("s")
            again = await store.append("s", [_PART], hold=HOLD, key="k")
            assert again == Appended(first.first, first.last, repeated=True)

    async def test_others_write_while_a_run_lives(self) -> None:
        async with self.open() as store:
            await _begun(store)
            assert (await store.append("s", [Stop()], actor="ann", run="ann's")).last == 2
            stop = (await store.read("s"))[1]
            assert (stop.run, stop.actor) == ("ann's", "ann")
            assert (await store.append("s", [_PART], hold=HOLD)).last == 3  # the lease is still the run's

    # ---- renew and release -------------------------------------------------------------------------------

    async def test_renewing_keeps_it_from_now_on(self) -> None:
        now = self.clock.stop()
        async with self.open() as store:
            await _begun(store)
            before = await store.get("s")
            assert before.lease is not None
            self.clock.forward(1)
            lease = await store.renew("s", hold=HOLD)
            after = await store.get("s")
            assert lease == after.lease
            assert (lease.run, lease.holder, lease.since) == ("run 1", before.lease.holder, now)
            assert lease.expires == now + 9_001
            assert (after.number, after.updated) == (before.number, before.updated)
            assert (await store.renew("s", hold=Hold("run 1", 0.5))).expires == now + 501  # by the hold of the moment

    async def test_releasing_logs_the_end_and_gives_it_back(self) -> None:
        async with self.open() as store:
            await _begun(store)
            assert await store.release("s", [_PART, _END], hold=HOLD, meta={"usage": 3}) == 3
            end = (await store.read("s"))[-1]
            assert (end.action, end.run, end.meta) == (_END, "run 1", {"usage": 3})
            session = await store.get("s")
            assert (session.lease, session.status) == (None, "idle")
            assert not (await store.start("s", _HELLO, hold=OTHER)).settled

    async def test_releasing_without_a_word(self) -> None:
        async with self.open() as store:
            await _begun(store)
            assert await store.release("s", hold=HOLD) == 1
            assert (await store.get("s")).lease is None
            assert (await store.open_session("s")).settled
            stop = (await store.read("s"))[-1]
            assert (stop.action, stop.run) == (Stop(), None)  # nobody's by now

    async def test_a_refused_release_keeps_the_lease(self) -> None:
        async with self.open() as store:
            await _begun(store)
            before = await store.get("s")
            assert isinstance(await error_of(store.release("s", [_PART, b"{"], hold=HOLD)), InvalidJson)
            assert await store.get("s") == before

    async def test_a_run_may_begin_anew_under_its_id(self) -> None:
        async with self.open() as store:
            await _begun(store)
            await store.release("s", [_END], hold=HOLD)
            await store.start("s", _HELLO, hold=HOLD)
            assert (await store.append("s", [_PART], hold=HOLD)).last == 4


async def _begun(store: SessionStore) -> None:
    await store.create("s")
    await store.start("s", _HELLO, hold=HOLD)


async def _expires(store: SessionStore) -> int:
    lease = (await store.get("s")).lease
    assert lease is not None
    return lease.expires


async def _refused(store: SessionStore, hold: Hold) -> None:
    """Every call by this hold is LeaseLost, and changes nothing."""
    before = await store.get("s")
    calls: tuple[Any, ...] = (
        store.append("s", [_PART], hold=hold),
        store.append("s", [_PART], hold=hold, expected=77),
        store.park("s", [_PART], hold=hold, waiting=Waiting(1, "c", "pay", "approval")),
        store.renew("s", hold=hold),
        store.release("s", [_END], hold=hold),
        store.release("s", hold=hold),
    )
    for call in calls:
        error: TalkfoldError = await error_of(call)
        assert isinstance(error, LeaseLost)
        assert (error.session_id, error.run) == ("s", hold.run)
    assert await store.get("s") == before
