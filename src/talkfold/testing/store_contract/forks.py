"""The contract of a fork: a copy of a log up to a number, which then goes its own way."""

from __future__ import annotations

from ...actions import Send
from ...errors import SessionExists
from ...log import Entry, LoggedAction
from ...store.protocol import Appended
from .opening import UsesStore, error_of
from .samples import CONVERSATION, ODD_BODIES

__all__ = ("Forks",)


def _copied(row: LoggedAction) -> tuple[object, ...]:
    """All of a row but its hash, which covers the session's id."""
    return row.number, row.time, row.body, row.action, row.run, row.actor, row.meta


class Forks(UsesStore):
    async def test_a_fork_at_every_number_is_that_prefix(self) -> None:
        async with self.open() as store:
            source = await store.create("s", title="Weather", metadata={"project": "north"})
            await store.append("s", CONVERSATION, run="r", actor="Ann", meta={"usage": 10**20})
            log = await store.read("s")
            for at in range(len(CONVERSATION) + 1):
                made = await store.fork("s", at=at, new_id=f"f{at}")
                assert made == await store.get(f"f{at}")
                assert (made.number, made.forked_from, made.forked_at) == (at, "s", at)
                assert (made.title, made.metadata) == (source.title, source.metadata)
                assert [_copied(row) for row in await store.read(made.id)] == [_copied(row) for row in log[:at]]
                assert made.size == sum(len(row.body) for row in log[:at])
                state = (await store.state("s", at=at)).state
                assert (await store.state(made.id)).state == state
                assert made.status == state.status
                report = await store.check(made.id)
                assert (report.problems, report.digest) == ((), made.digest)
            assert await store.read("s") == log

    async def test_a_fork_is_of_the_head_unless_told(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [*ODD_BODIES, Entry(CONVERSATION[0], time=7)])
            made = await store.fork("s", title="Another way")
            assert made.id != "s"
            assert (made.title, made.forked_at, made.number) == (
                "Another way",
                len(ODD_BODIES) + 1,
                len(ODD_BODIES) + 1,
            )
            assert [_copied(row) for row in await store.read(made.id)] == [
                _copied(row) for row in await store.read("s")
            ]

    async def test_a_fork_and_its_source_are_independent(self) -> None:
        async with self.open() as store:
            await store.create("s", metadata={"project": "north"})
            await store.append("s", CONVERSATION[:8], key="k")
            await store.fork("s", at=4, new_id="f")
            assert await store.append("f", [Send("u", "my way")], key="k", expected=4) == Appended(
                5, 5
            )  # a key of its own
            await store.update("f", title="fork", metadata={"project": "south"})
            source = await store.get("s")
            assert (source.number, source.title, source.metadata) == (8, None, {"project": "north"})
            log = await store.read("f")
            await store.erase("s")
            assert await store.read("f") == log
            assert (await store.get("f")).forked_from == "s"
            assert (await store.check("f")).problems == ()

    async def test_a_fork_of_a_fork(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:9])
            await store.fork("s", at=7, new_id="f")
            made = await store.fork("f", at=5, new_id="g")
            assert (made.forked_from, made.forked_at) == ("f", 5)
            assert (await store.state("g")).state == (await store.state("s", at=5)).state
            assert (await store.check("g")).problems == ()

    async def test_a_fork_belongs_to_the_owner_of_its_source(self) -> None:
        async with self.open() as store:
            await store.create("s", owner="ann")
            await store.append("s", CONVERSATION[:3], owner="ann")
            assert (await store.fork("s", new_id="by-ann", owner="ann")).owner == "ann"
            assert (await store.fork("s", new_id="by-the-operator")).owner == "ann"
            assert (await store.get("by-the-operator", owner="ann")).number == 3

    async def test_a_fork_takes_no_id_that_is_taken(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:3])
            taken = await store.create("t", title="mine")
            for new_id in ("t", "s"):
                assert isinstance(await error_of(store.fork("s", new_id=new_id)), SessionExists)
            assert await store.get("t") == taken
            assert (await store.get("s")).number == 3

    async def test_a_long_log_is_forked_whole(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [Send("u", str(number)) for number in range(12_345)])
            await store.fork("s", at=11_111, new_id="f")
            assert (await store.get("f")).number == 11_111
            assert (await store.check("f")).problems == ()
            last = await store.read("f", after=11_110)
            assert [row.action for row in last] == [Send("u", "11110")]
