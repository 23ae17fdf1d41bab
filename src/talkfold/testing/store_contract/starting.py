"""The contract of starting runs: one at a time, and what a dead one left open is settled first."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from ...actions import Finish, MessageStart, Part, Reset, Retry, Send, SessionAction, Stop, ToolCall
from ...errors import (
    InvalidArgument,
    LeaseLost,
    NothingToRetry,
    RunInProgress,
    SessionErased,
    SessionNotFound,
    TalkfoldError,
)
from ...fold import fold
from ...log import LoggedAction
from ...store.lease import Hold, Lease
from ...store.protocol import SessionStore
from .opening import UsesStore, error_of
from .samples import CONVERSATION, has_open_calls

__all__ = ("HOLD", "OTHER", "Starting", "actions")

HOLD = Hold("run 1", 9.0)
OTHER = Hold("run 2", 6.0)
_HELLO = Send("u", "hello")
_OPEN_CALL = (Part(MessageStart("a")), Part(ToolCall("a", "c", "pay", {"sum": 5})))
_NO_HOLDS: tuple[Any, ...] = (
    None,
    "run 1",
    Hold(""),
    Hold("a\nb"),
    Hold("r", 0),
    Hold("r", -1.0),
    Hold("r", float("nan")),
    Hold("r", float("inf")),
    Hold("r", True),
)
_NO_BEGINNINGS: tuple[Any, ...] = (Stop(), Reset(), Part(Finish("stop")), b'{"type":"stop"}', None)


def actions(log: tuple[LoggedAction, ...]) -> list[SessionAction]:
    """What was logged, without its envelopes."""
    return [row.action for row in log]


class Starting(UsesStore):
    async def test_a_run_begins_with_its_lease_and_its_first_action(self) -> None:
        now = self.clock.stop()
        async with self.open() as store:
            await store.create("s", actions=CONVERSATION[:19])
            started = await store.start("s", _HELLO, hold=HOLD, actor="ann", meta={"page": 1})
            (row,) = await store.read("s", after=19)
            assert (row.action, row.run, row.actor, row.meta, row.time) == (_HELLO, "run 1", "ann", {"page": 1}, now)
            assert (started.number, started.settled) == (20, False)
            assert started.state == fold([*CONVERSATION[:19], _HELLO])
            lease = (await store.get("s")).lease
            assert lease is not None
            assert lease.holder
            assert lease == Lease("run 1", lease.holder, now, now + 9_000)

    @pytest.mark.parametrize("action", [_HELLO, Retry(), Reset()], ids=lambda action: type(action).__name__)
    async def test_another_turn_beside_a_living_run_is_refused(self, action: SessionAction) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.start("s", _HELLO, hold=HOLD)
            error = await error_of(store.append("s", [Part(MessageStart("a")), action]))
            assert isinstance(error, RunInProgress)
            assert error.lease.run == HOLD.run
            assert (await store.get("s")).number == 1
            await store.append("s", [Part(MessageStart("a")), Stop()])  # all else may be logged
            await store.release("s", hold=HOLD)
            await store.append("s", [action])

    @pytest.mark.parametrize("action", [_HELLO, Retry(), Reset()], ids=lambda action: type(action).__name__)
    async def test_another_turn_takes_the_lease_of_a_dead_run(self, action: SessionAction) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("s")
            await store.start("s", _HELLO, hold=HOLD)
            self.clock.forward(9_000)
            await store.append("s", [action])
            assert isinstance(await error_of(store.append("s", [_OPEN_CALL[0]], hold=HOLD)), LeaseLost)
            assert (await store.get("s")).number == 2

    async def test_of_many_only_one_begins(self) -> None:
        async with self.open() as store:
            await store.create("s")
            won, lost = list[str](), list[RunInProgress]()

            async def begin(run: str) -> None:
                try:
                    await store.start("s", Send(run, run), hold=Hold(run))
                except RunInProgress as error:
                    lost.append(error)
                else:
                    won.append(run)

            async with anyio.create_task_group() as group:
                for index in range(20):
                    group.start_soon(begin, f"r{index}")
            assert len(won) == 1
            assert {error.lease.run for error in lost} == set(won)
            assert actions(await store.read("s")) == [Send(won[0], won[0])]

    async def test_a_living_run_is_in_progress_for_everybody(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("s")
            await store.start("s", _HELLO, hold=HOLD)
            self.clock.forward(8_999)
            before = await store.get("s")
            for hold in (OTHER, HOLD):  # and for itself
                for action in (_HELLO, Retry()):
                    error = await error_of(store.start("s", action, hold=hold))
                    assert isinstance(error, RunInProgress)
                    assert (error.session_id, error.lease) == ("s", before.lease)
            assert await store.get("s") == before

    async def test_from_the_end_of_the_lease_on_another_may_begin(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("s")
            await store.start("s", _HELLO, hold=HOLD)
            now = self.clock.forward(9_000)
            started = await store.start("s", Send("u2", "again"), hold=OTHER)
            assert (started.number, started.settled) == (3, True)
            lease = (await store.get("s")).lease
            assert lease is not None
            assert (lease.run, lease.since, lease.expires) == ("run 2", now, now + 6_000)

    @pytest.mark.parametrize("first", [Send("u2", "again"), Retry()])
    async def test_what_a_dead_run_left_open_is_settled_first(self, first: Send | Retry) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("s")
            await store.start("s", _HELLO, hold=HOLD)
            await store.append("s", _OPEN_CALL, hold=HOLD)
            self.clock.forward(9_000)
            started = await store.start("s", first, hold=OTHER, actor="ann", meta={"page": 1})
            assert started.settled
            log = await store.read("s")
            assert actions(log) == [_HELLO, *_OPEN_CALL, Stop(), first]
            stop, begin = log[-2:]
            assert (stop.run, stop.actor, stop.meta) == ("run 1", "talkfold", {"cause": "reload"})
            assert (begin.run, begin.actor, begin.meta) == ("run 2", "ann", {"page": 1})
            assert started.state == fold(actions(log)) == (await store.state("s")).state
            assert not has_open_calls(started.state)

    async def test_a_dead_run_that_left_the_session_in_order_needs_no_stop(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("s")
            await store.start("s", _HELLO, hold=HOLD)
            await store.append("s", [Part(Finish("stop"))], hold=HOLD)
            self.clock.forward(9_000)
            assert not (await store.start("s", _HELLO, hold=OTHER)).settled
            assert actions(await store.read("s")) == [_HELLO, Part(Finish("stop")), _HELLO]

    async def test_what_nobody_ran_is_settled_as_well(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=CONVERSATION[:6])
            assert (await store.start("s", _HELLO, hold=HOLD)).settled
            stop = (await store.read("s"))[6]
            assert (stop.action, stop.run, stop.actor, stop.meta) == (Stop(), None, "talkfold", {"cause": "reload"})

    async def test_a_retry_needs_a_user_message(self) -> None:
        async with self.open() as store:
            for name, log in {
                "empty": (),
                "reset": (_HELLO, Reset()),
                "open": _OPEN_CALL,  # and is not settled either
            }.items():
                await store.create(name, actions=log)
                before = await store.get(name)
                assert isinstance(await error_of(store.start(name, Retry(), hold=HOLD)), NothingToRetry)
                assert await store.get(name) == before
            await store.append("reset", [_HELLO, Part(Finish("stop"))])
            assert (await store.start("reset", Retry(), hold=HOLD)).state.status == "streaming"

    async def test_what_is_no_beginning_or_no_hold_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            for action in _NO_BEGINNINGS:
                assert isinstance(await error_of(store.start("s", action, hold=HOLD)), InvalidArgument), action
            for hold in _NO_HOLDS:
                assert isinstance(await error_of(store.start("s", _HELLO, hold=hold)), InvalidArgument), hold
            session = await store.get("s")
            assert (session.number, session.lease) == (0, None)

    async def test_a_session_that_is_not_there(self) -> None:
        async with self.open() as store:
            await store.create("gone")
            await store.erase("gone")
            assert isinstance(await error_of(store.start("none", _HELLO, hold=HOLD)), SessionNotFound)
            assert isinstance(await error_of(store.start("gone", _HELLO, hold=HOLD)), SessionErased)

    # ---- opening -----------------------------------------------------------------------------------------

    async def test_opening_leaves_a_living_run_alone(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _running(store)
            self.clock.forward(8_999)
            before = await store.get("s")
            opened = await store.open_session("s")
            assert (opened.session, opened.settled) == (before, False)
            assert opened.session.lease is not None
            assert opened.state == (await store.state("s")).state
            assert has_open_calls(opened.state)

    async def test_opening_settles_a_dead_run_under_its_id_once(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _running(store)
            self.clock.forward(9_000)
            opened = await store.open_session("s", cause="the process died")
            assert (opened.settled, opened.session.lease, opened.state.status) == (True, None, "idle")
            (stop,) = await store.read("s", after=3)
            assert (stop.action, stop.run, stop.actor) == (Stop(), "run 1", "talkfold")
            assert stop.meta == {"cause": "the process died"}
            assert not (await store.open_session("s")).settled
            assert (await store.get("s")).number == 4

    async def test_opening_takes_the_lease_of_a_dead_run_that_left_order(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _running(store)
            await store.append("s", [Part(Finish("aborted"))], hold=HOLD)
            self.clock.forward(9_000)
            assert not (await store.open_session("s")).settled
            await _is_lost(store)

    async def test_a_run_that_was_settled_writes_nothing_more(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _running(store)
            self.clock.forward(9_000)
            await store.open_session("s")
            await _is_lost(store)
            await store.start("s", _HELLO, hold=OTHER)
            await _is_lost(store)

    # ---- who sees it -------------------------------------------------------------------------------------

    async def test_a_living_lease_is_shown_and_a_dead_one_is_not(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("idle")
            await _running(store)
            lease = (await store.get("s")).lease
            assert lease is not None
            listed = {session.id: session.lease for session in (await store.list()).sessions}
            assert listed == {"s": lease, "idle": None}
            assert (await store.update("s", title="t")).lease == lease
            self.clock.forward(9_000)
            assert (await store.get("s")).lease is None
            assert [session.lease for session in (await store.list()).sessions] == [None, None]
            assert (await store.renew("s", hold=HOLD)) == (await store.get("s")).lease

    async def test_a_fork_has_no_run(self) -> None:
        async with self.open() as store:
            await _running(store)
            assert (await store.fork("s", new_id="f")).lease is None
            assert (await store.start("f", _HELLO, hold=HOLD)).settled
            assert (await store.renew("s", hold=HOLD)).run == "run 1"

    async def test_a_run_of_an_erased_session_learns_of_it(self) -> None:
        async with self.open() as store:
            await _running(store)
            await store.erase("s")
            calls: tuple[Any, ...] = (
                store.append("s", [_HELLO], hold=HOLD),
                store.renew("s", hold=HOLD),
                store.release("s", hold=HOLD),
                store.open_session("s"),
            )
            for call in calls:
                assert isinstance(await error_of(call), SessionErased)


async def _running(store: SessionStore) -> None:
    """A session whose run has an open call; its log has three actions."""
    await store.create("s")
    await store.start("s", _HELLO, hold=HOLD)
    await store.append("s", _OPEN_CALL, hold=HOLD)


async def _is_lost(store: SessionStore) -> None:
    before = await store.get("s")
    calls: tuple[Any, ...] = (
        store.append("s", [_HELLO], hold=HOLD),
        store.release("s", [Part(Finish("stop"))], hold=HOLD),
        store.release("s", hold=HOLD),
        store.renew("s", hold=HOLD),
    )
    for call in calls:
        error: TalkfoldError = await error_of(call)
        assert (error.code, vars(error)["session_id"], vars(error)["run"]) == ("lease_lost", "s", "run 1")
    assert await store.get("s") == before
