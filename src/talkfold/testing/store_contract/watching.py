"""The contract of watching: every move of a session's end is told, at least once after the last of several."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio

from ...actions import Finish, Part, Send, TextDelta
from ...errors import SessionErased, SessionNotFound
from ...store.lease import Waiting
from ...store.protocol import SessionStore
from .opening import UsesStore, error_of
from .samples import CONVERSATION
from .starting import HOLD

__all__ = ("Watching",)

_HELLO = Send("u", "hello")


class _Told:
    """What a watcher was told, in order."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._more = anyio.Event()

    def __call__(self, number: int) -> None:
        self.numbers.append(number)
        self._more.set()
        self._more = anyio.Event()

    async def until(self, last: int) -> None:
        with anyio.fail_after(10):
            while self.numbers[-1:] != [last]:
                await self._more.wait()


async def _enter(store: SessionStore, session_id: str, owner: str | None = None) -> None:
    async with store.watch(session_id, print, owner=owner):
        pass


class Watching(UsesStore):
    async def test_every_kind_of_move_is_told(self) -> None:
        self.clock.stop()
        told = _Told()
        async with self.open() as store:
            await store.create("s")
            async with store.watch("s", told) as number:
                assert number == 0
                await store.start("s", _HELLO, hold=HOLD)
                await told.until(1)
                await store.append("s", CONVERSATION[1:4])
                await told.until(4)
                await store.append("s", [Part(TextDelta("a", "word"))], hold=HOLD)
                await told.until(5)
                await store.park("s", [_HELLO], hold=HOLD, waiting=Waiting(1, "c", "pay", "approval"))
                await told.until(6)
                await store.answer("s", [_HELLO], number=1)
                await told.until(7)
                await store.release("s", [Part(TextDelta("a", "word"))], hold=HOLD)
                await told.until(8)
                await store.open_session("s")
                await told.until(9)
            assert sorted(told.numbers) == told.numbers

    async def test_it_begins_where_the_session_ends(self) -> None:
        told = _Told()
        async with self.open() as store:
            await store.create("s", owner="ann", actions=CONVERSATION[:7])
            async with store.watch("s", told, owner="ann") as number:
                await anyio.sleep(0.02)
                assert (number, told.numbers) == (7, [])
                await store.append("s", [_HELLO])
                await told.until(8)

    async def test_what_does_not_move_the_end_is_not_told(self) -> None:
        told = _Told()
        async with self.open() as store:
            await store.create("s")
            await store.create("other")
            await store.start("s", _HELLO, hold=HOLD)
            async with store.watch("s", told):
                await store.append("other", [_HELLO])
                await store.renew("s", hold=HOLD)
                await store.update("s", title="t")
                await store.park("s", [], hold=HOLD, waiting=Waiting(1, "c", "pay", "approval"))
                await error_of(store.append("s", [_HELLO], expected=77))
                await store.release("s", hold=HOLD)
                await anyio.sleep(0.03)
                assert told.numbers == []

    async def test_after_the_end_nothing_is_told(self) -> None:
        told = _Told()
        async with self.open() as store:
            await store.create("s")
            async with store.watch("s", told):
                pass
            await store.append("s", [_HELLO])
            await anyio.sleep(0.03)
            await store.erase("s")
            assert told.numbers == []
        assert told.numbers == []

    async def test_nothing_is_lost_however_fast_others_write(self) -> None:
        total = 300
        async with self.open() as store:
            await store.create("s")
            seen: list[tuple[int, list[int]]] = []

            async def look(delay: float) -> None:
                await anyio.sleep(delay)
                told = _Told()
                async with store.watch("s", told) as number:
                    seen.append((number, told.numbers))
                    if number < total:
                        await told.until(total)

            async def write() -> None:
                for _ in range(total // 3):
                    await store.append("s", [_HELLO])

            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    for _ in range(3):
                        group.start_soon(write)
                    for index in range(40):
                        group.start_soon(look, index * 0.001)
            assert len(seen) == 40
            for number, told in seen:
                assert told == sorted(told)
                assert all(number < each <= total for each in told)

    async def test_an_erased_session_is_told_as_such(self) -> None:
        told = _Told()
        async with self.open() as store:
            await store.create("s", actions=[_HELLO])
            async with store.watch("s", told):
                await store.append("s", [Part(Finish("stop"))])
                await told.until(2)
                await store.erase("s")
                await told.until(-1)
                assert told.numbers.count(-1) == 1
            assert isinstance(await error_of(_enter(store, "s")), SessionErased)

    async def test_a_closed_store_is_told_as_such(self) -> None:
        told = {"s": _Told(), "t": _Told()}
        async with AsyncExitStack() as stack:
            async with self.open() as store:
                for name, one in told.items():
                    await store.create(name)
                    await stack.enter_async_context(store.watch(name, one))
            assert [one.numbers for one in told.values()] == [[-1], [-1]]

    async def test_one_that_fails_stops_nobody_else(self) -> None:
        told = _Told()

        def fail(number: int) -> None:
            raise RuntimeError(number)

        async with self.open() as store:
            await store.create("s")
            async with store.watch("s", fail), store.watch("s", told), store.watch("s", fail):
                assert (await store.append("s", [_HELLO])).last == 1
                assert (await store.append("s", [_HELLO])).last == 2
                await told.until(2)

    async def test_a_session_that_is_not_there(self) -> None:
        async with self.open() as store:
            await store.create("s", owner="bob")
            assert isinstance(await error_of(_enter(store, "none")), SessionNotFound)
            assert isinstance(await error_of(_enter(store, "s", "ann")), SessionNotFound)
