"""The contract of retention: whole sessions that were idle for long enough, and none that runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from ...actions import Finish, MessageStart, Part, Send
from ...errors import InvalidArgument, SessionErased, StoreClosed
from ...store.lease import Hold
from ...store.retention import Expired, Retention
from .opening import UsesStore, error_of
from .samples import CONVERSATION

__all__ = ("Retaining",)

_DAY = 24 * 3600 * 1000
_DONE = (Send("u", "hi"), Part(MessageStart("a")), Part(Finish("stop")))


def _days(number: float) -> timedelta:
    return timedelta(days=number)


class Retaining(UsesStore):
    async def test_sessions_without_an_append_for_long_enough_go(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("old", owner="ann", title="t", actions=_DONE)
            await store.create("woken", actions=_DONE)
            await store.create("never begun", owner="ann")
            self.clock.forward(_DAY)
            await store.append("woken", _DONE)
            await store.create("new", actions=_DONE)
            rule = Retention(_days(1))
            before = (await store.list()).sessions
            old = await store.get("old")
            picked = await store.retain(rule)
            assert picked == (
                Expired("old", "idle", 3, old.size, old.updated, "ann"),
                Expired("never begun", "idle", 0, 0, old.updated, "ann"),
            )
            assert (await store.list()).sessions == before  # until somebody says so, nothing goes
            assert await store.retain(rule, by="the clock", dry_run=False) == picked
            assert [it.id for it in (await store.list()).sessions] == ["new", "woken"]
            error = await error_of(store.get("old"))
            assert isinstance(error, SessionErased)
            assert (error.at, error.by) == (self.clock(), "the clock")
            assert await store.retain(rule, dry_run=False) == ()
            for name in ("new", "woken"):
                assert (await store.check(name)).problems == ()

    async def test_the_rule_is_exact_to_the_millisecond(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("s")
            rule = Retention(timedelta(milliseconds=250))
            self.clock.forward(249)
            assert await store.retain(rule) == ()
            self.clock.forward(1)
            assert [it.id for it in await store.retain(rule)] == ["s"]

    async def test_only_the_named_owner_and_statuses(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            for owner in ("ann", "bob", None):
                await store.create("done", owner=owner, actions=_DONE)
                await store.create("left", owner=owner, actions=_DONE[:2])
            self.clock.forward(_DAY)

            async def picked(owner: str | None, *statuses: Any) -> list[tuple[str, str | None]]:
                return [(it.id, it.owner) for it in await store.retain(Retention(_days(1), owner, statuses))]

            assert await picked("ann") == [("done", "ann"), ("left", "ann")]
            # One that a dead run left is listed as streaming, and is what it is listed as.
            assert await picked(None, "streaming") == [("left", "ann"), ("left", "bob"), ("left", None)]
            assert await picked("bob", "idle", "error") == [("done", "bob")]
            assert await picked("bob", "error") == []
            assert await picked("nobody has this name") == []
            await store.retain(Retention(_days(1), "bob", ("idle",)), dry_run=False)
            assert isinstance(await error_of(store.get("done", owner="bob")), SessionErased)
            assert len((await store.list()).sessions) == 5

    async def test_a_session_with_a_living_run_stays(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            await store.create("runs")
            await store.start("runs", Send("u", "hi"), hold=Hold("r1", seconds=10.0))
            self.clock.forward(9_999)
            rule = Retention(timedelta(seconds=5))
            assert await store.retain(rule) == ()
            assert await store.retain(rule, dry_run=False) == ()
            self.clock.forward(1)  # dead
            assert [it.status for it in await store.retain(rule)] == ["streaming"]
            assert len(await store.retain(rule, dry_run=False)) == 1

    async def test_many_go_as_well(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            for number in range(230):
                await store.create(f"s{number}", actions=CONVERSATION if number % 50 == 0 else ())
            self.clock.forward(1)
            await store.create("kept")
            erased = await store.retain(Retention(timedelta(milliseconds=1)), dry_run=False)
            assert [it.id for it in erased] == [f"s{number}" for number in range(230)]
            assert [it.id for it in (await store.list(limit=300)).sessions] == ["kept"]

    async def test_a_rule_that_means_nothing_is_refused(self) -> None:
        ninety, finished = cast("Any", 90), cast("Any", ("finished",))
        bad: tuple[Any, ...] = (
            None,
            timedelta(days=1),
            Retention(timedelta(seconds=-1)),
            Retention(ninety),
            Retention(_days(1), ""),
            Retention(_days(1), None, finished),
        )
        async with self.open() as store:
            await store.create("s")
            for rule in bad:
                for dry_run in (True, False):
                    assert isinstance(await error_of(store.retain(rule, dry_run=dry_run)), InvalidArgument), rule
            assert isinstance(await error_of(store.retain(Retention(_days(1)), by="")), InvalidArgument)
            assert [it.id for it in (await store.list()).sessions] == ["s"]
        assert isinstance(await error_of(store.retain(Retention(_days(1)))), StoreClosed)
