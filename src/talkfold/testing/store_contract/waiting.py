"""The contract of parked calls: what waits, who may answer, and what ends the wait."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from ...actions import (
    Finish,
    MessageStart,
    Part,
    Reset,
    Retry,
    Send,
    SessionAction,
    Stop,
    TextDelta,
    ToolCall,
    ToolPhase,
    ToolResult,
)
from ...errors import CallNotWaiting, InvalidArgument, InvalidJson, LeaseLost, SessionNotFound
from ...store.lease import Waiting
from ...store.protocol import SessionStore
from .opening import UsesStore, error_of
from .starting import HOLD, OTHER

__all__ = ("Waits",)

_HELLO = Send("u", "hello")
_CALL = (Part(MessageStart("a")), Part(ToolCall("a", "c", "pay", {"sum": 5})))
_ASKING = ToolPhase("pay", "awaiting-confirmation", "Pay 5?")
_YES = ToolPhase("pay", "running")
_WAITING = Waiting(3, "c", "pay", "approval", "Pay 5?")

_ANOTHER_TURN: tuple[SessionAction, ...] = (_HELLO, Retry(), Reset())
_GOING_ON: tuple[SessionAction, ...] = (
    Part(TextDelta("a", "word")),
    Part(ToolResult("x", 1)),
    Part(Finish("stop"), within="c"),
    _YES,
)


class Waits(UsesStore):
    async def test_a_parked_call_is_noted_in_the_lease(self) -> None:
        now = self.clock.stop()
        async with self.open() as store:
            await _called(store)
            self.clock.forward(10)
            waiting = Waiting(3, "c", "pay", "client", "Pay 5?", now + 500, "c0")
            assert await store.park("s", [_ASKING], hold=HOLD, waiting=waiting, meta={"n": 1}) == 4
            asking = (await store.read("s"))[-1]
            assert (asking.action, asking.run, asking.actor, asking.meta) == (_ASKING, "run 1", None, {"n": 1})
            lease = (await store.get("s")).lease
            assert lease is not None
            assert (lease.waiting, lease.since, lease.expires) == (waiting, now, now + 9_010)

    async def test_parking_without_actions_and_on_another_call(self) -> None:
        async with self.open() as store:
            await _parked(store)
            other = Waiting(3, "d", "look", "client")
            assert await store.park("s", [], hold=HOLD, waiting=other) == 4
            assert await _waits(store) == other

    async def test_a_call_that_is_not_in_the_log_cannot_wait(self) -> None:
        async with self.open() as store:
            await _called(store)
            before = await store.get("s")
            for number in (0, -1, 5):
                call = store.park("s", [_ASKING], hold=HOLD, waiting=replace(_WAITING, number=number))
                assert isinstance(await error_of(call), InvalidArgument), number
            call = store.park("s", [b"{"], hold=HOLD, waiting=_WAITING)
            assert isinstance(await error_of(call), InvalidJson)
            assert await store.get("s") == before
            assert await store.park("s", [_ASKING], hold=HOLD, waiting=replace(_WAITING, number=4)) == 4

    async def test_a_wait_outlives_renewals_and_parts(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _parked(store)
            for _ in range(3):
                self.clock.forward(8_000)
                await store.renew("s", hold=HOLD)
                self.clock.forward(8_000)
                await store.append("s", [Part(TextDelta("a", "word"))], hold=HOLD)
            assert await _waits(store) == _WAITING
            assert (await store.answer("s", [_YES], number=3)) == 8

    # ---- answering ---------------------------------------------------------------------------------------

    async def test_an_answer_is_logged_under_the_runs_id_and_ends_the_wait(self) -> None:
        async with self.open() as store:
            await _parked(store)
            lease = (await store.get("s")).lease
            assert lease is not None
            assert await store.answer("s", [_YES], number=3, actor="ann", meta={"page": 1}) == 5
            answer = (await store.read("s"))[-1]
            assert (answer.action, answer.run, answer.actor) == (_YES, "run 1", "ann")
            assert answer.meta == {"page": 1, "answers": 3}
            assert (await store.get("s")).lease == replace(lease, waiting=None)

    async def test_of_several_answers_the_first_is_taken(self) -> None:
        async with self.open() as store:
            await _parked(store)
            taken, late = list[int](), list[CallNotWaiting]()

            async def reply(actor: str) -> None:
                try:
                    taken.append(await store.answer("s", [_YES], number=3, actor=actor))
                except CallNotWaiting as error:
                    late.append(error)

            async with anyio.create_task_group() as group:
                for index in range(10):
                    group.start_soon(reply, f"a{index}")
            assert (taken, len(late)) == ([5], 9)
            assert {(error.session_id, error.call) for error in late} == {("s", "the call of action 3")}
            assert (await store.get("s")).number == 5

    async def test_an_answer_to_another_call_is_refused(self) -> None:
        async with self.open() as store:
            await _parked(store)
            for number in (2, 4, 99):
                error = await _refused(store, number)
                assert error.call == f"the call of action {number}"
                assert "'c'" in error.reason  # it says which one does wait
                assert "3" in error.reason
            assert await _waits(store) == _WAITING

    async def test_an_answer_where_nothing_waits_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            reasons = [(await _refused(store, 3)).reason]  # no run at all
            await store.start("s", _HELLO, hold=HOLD)
            await store.append("s", _CALL, hold=HOLD)
            reasons.append((await _refused(store, 3)).reason)  # it is not parked
            assert len(set(reasons)) == 2

    async def test_an_answer_may_come_until_its_time_is_over(self) -> None:
        now = self.clock.stop()
        async with self.open() as store:
            await _called(store)
            waiting = replace(_WAITING, expires=now + 500)
            await store.park("s", [], hold=HOLD, waiting=waiting)
            self.clock.forward(500)
            error = await _refused(store, 3)
            assert (error.call, error.reason) == ("call 'c'", "its time is over")
            assert await _waits(store) == waiting
            await store.park("s", [], hold=HOLD, waiting=replace(waiting, expires=now + 501))
            assert await store.answer("s", [_YES], number=3) == 4

    async def test_nobody_answers_a_dead_run(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _parked(store)
            self.clock.forward(9_000)
            assert "living" in (await _refused(store, 3)).reason
            await store.renew("s", hold=HOLD)  # it was only slow
            assert await store.answer("s", [_YES], number=3) == 5

    async def test_the_wait_of_a_dead_run_is_not_its_successors(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _parked(store)
            self.clock.forward(9_000)
            await store.start("s", _HELLO, hold=OTHER)
            assert await _waits(store) is None
            await _refused(store, 3)

    async def test_an_answer_says_something(self) -> None:
        async with self.open() as store:
            await _parked(store)
            bad: tuple[Any, ...] = ([], [b"{"], [_YES, 3])
            for answer in bad:
                assert not isinstance(await error_of(store.answer("s", answer, number=3)), CallNotWaiting)
            for number in (-1, True, 1.5, None):
                call = store.answer("s", [_YES], number=number)  # type: ignore[arg-type]
                assert isinstance(await error_of(call), InvalidArgument)
            assert isinstance(await error_of(store.answer("none", [_YES], number=3)), SessionNotFound)
            assert await _waits(store) == _WAITING

    # ---- what ends a wait --------------------------------------------------------------------------------

    @pytest.mark.parametrize("by_the_run", [False, True])
    async def test_a_stop_ends_it_whoever_logs_it(self, by_the_run: bool) -> None:
        async with self.open() as store:
            await _parked(store)
            batch: list[SessionAction] = [Part(TextDelta("a", "word")), Stop(), Part(TextDelta("a", "word"))]
            await store.append("s", batch, hold=HOLD if by_the_run else None)
            assert await _waits(store) is None
            await _refused(store, 3)
            assert (await store.append("s", [_YES], hold=HOLD)).last == 8  # the lease is still the run's

    @pytest.mark.parametrize("action", _ANOTHER_TURN, ids=lambda action: type(action).__name__)
    async def test_another_turn_of_the_run_itself_ends_it(self, action: SessionAction) -> None:
        async with self.open() as store:
            await _parked(store)
            await store.append("s", [action], hold=HOLD)
            assert await _waits(store) is None
            await _refused(store, 3)

    async def test_after_a_stop_nothing_is_parked(self) -> None:
        async with self.open() as store:
            await _called(store)
            await store.append("s", [Stop()])
            await store.park("s", [], hold=HOLD, waiting=_WAITING)
            assert await _waits(store) is None
            await _refused(store, 3)

    async def test_a_prompt_may_be_any_text(self) -> None:
        async with self.open() as store:
            await _called(store)
            odd = replace(_WAITING, prompt='Pay "\ud83d" \0 \n?')
            await store.park("s", [], hold=HOLD, waiting=odd)
            assert await _waits(store) == odd

    async def test_the_run_itself_ends_it_after_its_time(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await _called(store)
            soon = replace(_WAITING, expires=self.clock() + 1_000)
            await store.park("s", [], hold=HOLD, waiting=soon)
            self.clock.forward(1_000)
            assert "time is over" in (await _refused(store, 3)).reason
            other = store.answer("s", [_YES], number=3, hold=OTHER)
            assert isinstance(await error_of(other), LeaseLost)
            assert await store.answer("s", [_YES], number=3, hold=HOLD) == 4
            assert await _waits(store) is None
            again = store.answer("s", [_YES], number=3, hold=HOLD)
            assert isinstance(await error_of(again), CallNotWaiting)

    async def test_other_actions_do_not(self) -> None:
        async with self.open() as store:
            await _parked(store)
            await store.append("s", _GOING_ON)
            await store.append("s", _GOING_ON, hold=HOLD)
            assert await _waits(store) == _WAITING

    async def test_a_refused_stop_ends_nothing(self) -> None:
        async with self.open() as store:
            await _parked(store)
            await error_of(store.append("s", [Stop()], expected=1))
            assert await _waits(store) == _WAITING


async def _called(store: SessionStore) -> None:
    """A run with an open call, that of action 3."""
    await store.create("s")
    await store.start("s", _HELLO, hold=HOLD)
    await store.append("s", _CALL, hold=HOLD)


async def _parked(store: SessionStore) -> None:
    """The same, parked on it; its log has four actions."""
    await _called(store)
    await store.park("s", [_ASKING], hold=HOLD, waiting=_WAITING)


async def _waits(store: SessionStore) -> Waiting | None:
    lease = (await store.get("s")).lease
    assert lease is not None
    return lease.waiting


async def _refused(store: SessionStore, number: int) -> CallNotWaiting:
    """The refusal of an answer, which changes nothing."""
    before = await store.get("s")
    error = await error_of(store.answer("s", [_YES], number=number))
    assert isinstance(error, CallNotWaiting)
    assert await store.get("s") == before
    return error
