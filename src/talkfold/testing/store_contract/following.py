"""The contract of a subscription: first what is there, then what comes; every action once, in order."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from ...actions import Send
from ...errors import CursorAhead, InvalidArgument, SessionErased, StoreClosed, TalkfoldError
from ...log import LoggedAction
from ...store.protocol import SessionStore
from .opening import UsesStore, error_of, follow, numbers
from .samples import CONVERSATION

__all__ = ("Following",)

_HELLO = Send("u", "hello")
_NO_NUMBERS: tuple[Any, ...] = (-1, True, 1.5)


async def _take(store: SessionStore, count: int, *, after: int = 0, owner: str | None = None) -> list[LoggedAction]:
    """The first actions of a subscription, which is then closed."""
    taken: list[LoggedAction] = []
    async with aclosing(follow(store, "s", after=after, owner=owner)) as following:
        async for logged in following:
            taken.append(logged)
            if len(taken) == count:
                break
    return taken


class Following(UsesStore):
    async def test_the_backlog_after_any_number(self) -> None:
        async with self.open() as store:
            await store.create("s", owner="ann")
            await store.append("s", CONVERSATION)
            log = await store.read("s")
            for after in (0, 1, 9, len(log) - 1):
                assert tuple(await _take(store, len(log) - after, after=after, owner="ann")) == log[after:]

    async def test_the_backlog_then_what_comes(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:5])
            taken: list[LoggedAction] = []

            async def take() -> None:
                taken.extend(await _take(store, 14, after=2))

            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    group.start_soon(take)
                    await anyio.sleep(0.02)
                    for _ in range(3):
                        await store.append("s", CONVERSATION[:1])
                        await anyio.sleep(0.01)
                    await store.append("s", CONVERSATION[:8])
            assert tuple(taken) == (await store.read("s", after=2))

    async def test_from_before_the_first_action(self) -> None:
        async with self.open() as store:
            await store.create("s")
            async with aclosing(follow(store, "s")) as following, anyio.create_task_group() as group:
                group.start_soon(store.append, "s", [_HELLO])
                with anyio.fail_after(10):
                    assert (await anext(following)).number == 1

    async def test_many_followers_each_see_all_of_it_once(self) -> None:
        chance = random.Random(7)
        total = 300
        async with self.open() as store:
            await store.create("s")
            seen: dict[int, tuple[int, list[int]]] = {}

            async def take(name: int) -> None:
                await anyio.sleep(chance.random() * 0.05)
                after = chance.randrange(
                    min((await store.get("s")).number + 1, total)
                )  # the last one is always to come
                got: list[int] = []
                seen[name] = (after, got)
                async with aclosing(follow(store, "s", after=after)) as following:
                    async for logged in following:
                        got.append(logged.number)
                        if chance.random() < 0.05:
                            await anyio.sleep(0.002)  # a slow one falls behind and catches up
                        if logged.number == total:
                            return

            async def write(count: int) -> None:
                while count:
                    size = min(count, chance.randrange(1, 8))
                    await store.append("s", [_HELLO] * size)
                    count -= size

            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    for name in range(40):
                        group.start_soon(take, name)
                    for _ in range(3):
                        group.start_soon(write, total // 3)
            assert len(seen) == 40
            for after, got in seen.values():
                assert got == list(range(after + 1, total + 1))

    async def test_what_a_follower_sees_is_in_the_log(self) -> None:
        async with self.open() as store:
            await store.create("s")

            async def write() -> None:
                for _ in range(50):
                    await store.append("s", [_HELLO])

            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(write)
                    async with aclosing(follow(store, "s")) as following:
                        async for logged in following:
                            assert (await store.read("s", after=logged.number - 1, limit=1)) == (logged,)
                            if logged.number == 50:
                                break

    async def test_followers_of_other_sessions_are_left_alone(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.create("other")
            async with aclosing(follow(store, "other")) as following:
                with anyio.move_on_after(0.1) as waited:
                    await store.append("s", [_HELLO])
                    await anext(following)
                assert waited.cancelled_caught

    async def test_a_number_that_is_not_there_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:3])
            error = await error_of(anext(follow(store, "s", after=4)))
            assert isinstance(error, CursorAhead)
            assert (error.number, error.head) == (4, 3)
            for bad in _NO_NUMBERS:
                call = anext(follow(store, "s", after=bad))
                assert isinstance(await error_of(call), InvalidArgument)

    @pytest.mark.parametrize("backlog", [0, 3])
    async def test_a_session_erased_meanwhile(self, backlog: int) -> None:
        async with self.open() as store:
            await store.create("s")
            if backlog:
                await store.append("s", CONVERSATION[:backlog])
            ends = await _ends(store, 3, backlog, lambda: store.erase("s"))
            assert [type(end) for end in ends] == [SessionErased] * 3

    @pytest.mark.parametrize("backlog", [0, 3])
    async def test_a_store_closed_meanwhile(self, backlog: int) -> None:
        opened = self.open()
        store = await opened.__aenter__()
        await store.create("s")
        if backlog:
            await store.append("s", CONVERSATION[:backlog])
        ends = await _ends(store, 3, backlog, lambda: opened.__aexit__(None, None, None))
        assert [type(end) for end in ends] == [StoreClosed] * 3

    async def test_closing_and_cancelling_followers_leaves_the_store_at_work(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:3])
            for attempt in range(20):
                following = follow(store, "s", after=attempt % 4)
                with anyio.move_on_after(0.001 * (attempt % 5)):
                    async for _ in following:
                        pass
                await following.aclose()
                await following.aclose()
            unstarted = follow(store, "s")
            await unstarted.aclose()
            assert (await store.append("s", [_HELLO])).last == 4
            assert numbers(await _take(store, 4)) == [1, 2, 3, 4]


async def _ends(
    store: SessionStore, followers: int, backlog: int, end: Callable[[], Awaitable[object]]
) -> list[TalkfoldError]:
    """How followers that have read the backlog and wait for more are told that there will be none."""
    ends: list[TalkfoldError] = []
    waiting = anyio.Semaphore(0)

    async def take() -> None:
        following = follow(store, "s")
        for _ in range(backlog):
            await anext(following)
        waiting.release()
        ends.append(await error_of(anext(following)))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for _ in range(followers):
                group.start_soon(take)
            for _ in range(followers):
                await waiting.acquire()
            await anyio.sleep(0.02)
            await end()
    return ends
