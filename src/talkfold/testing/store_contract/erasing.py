"""The contract of erasing all that an owner has."""

from __future__ import annotations

from typing import Any

from ...actions import Send
from ...errors import InvalidArgument, LeaseLost, SessionErased, StoreClosed
from ...store.lease import Hold
from .opening import UsesStore, error_of, follow
from .samples import CONVERSATION

__all__ = ("Erasing",)


class Erasing(UsesStore):
    async def test_all_of_an_owners_sessions_go_and_no_others(self) -> None:
        async with self.open() as store:
            for name, owner in (("a", "ann"), ("b", "bob"), ("c", "ann"), ("a", "bob"), ("n", None), ("a", None)):
                await store.create(name, owner=owner, title="t", actions=CONVERSATION)
            erased = await store.erase_owner("ann", by="the clerk")
            assert [(it.id, it.owner, it.number, it.by) for it in erased] == [
                (name, "ann", len(CONVERSATION), "the clerk") for name in ("a", "c")
            ]
            assert len({it.at for it in erased}) == 1
            for name in ("a", "c"):
                for call in (store.get(name, owner="ann"), store.create(name, owner="ann")):
                    error = await error_of(call)
                    assert isinstance(error, SessionErased)
                    assert (error.at, error.by) == (erased[0].at, "the clerk")
            left = (await store.list()).sessions
            assert {(it.id, it.owner) for it in left} == {("b", "bob"), ("a", "bob"), ("n", None), ("a", None)}
            for session in left:
                if session.owner is not None:
                    assert (await store.check(session.id, owner=session.owner)).problems == ()

    async def test_a_second_time_there_is_nothing_to_erase(self) -> None:
        async with self.open() as store:
            await store.create("a", owner="ann")
            first = await store.erase("a", owner="ann", by="me")
            await store.create("b", owner="ann")
            assert [it.id for it in await store.erase_owner("ann")] == ["b"]
            assert await store.erase_owner("ann", by="another") == ()
            assert await store.erase_owner("nobody has this name") == ()
            error = await error_of(store.get("a", owner="ann"))
            assert isinstance(error, SessionErased)
            assert (error.at, error.by) == (first.at, "me")

    async def test_a_living_run_loses_its_session(self) -> None:
        async with self.open() as store:
            await store.create("a", owner="ann")
            await store.start("a", Send("u", "hi"), hold=Hold("r1"), owner="ann")
            assert len(await store.erase_owner("ann")) == 1
            assert isinstance(await error_of(store.renew("a", hold=Hold("r1"), owner="ann")), SessionErased)
            await store.create("b", owner="ann")  # and the run has no way into another
            assert isinstance(await error_of(store.renew("b", hold=Hold("r1"), owner="ann")), LeaseLost)

    async def test_followers_hear_of_it(self) -> None:
        async with self.open() as store:
            await store.create("a", owner="ann")
            following = follow(store, "a", owner="ann")
            told = list[int]()
            async with store.watch("a", told.append, owner="ann"):
                await store.erase_owner("ann")
            assert told == [-1]
            assert isinstance(await error_of(anext(following)), SessionErased)

    async def test_a_fork_is_a_session_of_its_own(self) -> None:
        """Erasing the one that it was copied from leaves it; what it has of it then is the id."""
        async with self.open() as store:
            await store.create("a", owner="ann", actions=CONVERSATION)
            await store.fork("a", new_id="f", owner="ann")
            await store.erase("a", owner="ann")
            fork = await store.get("f", owner="ann")
            assert (fork.forked_from, fork.number) == ("a", len(CONVERSATION))
            assert [it.id for it in await store.erase_owner("ann")] == ["f"]

    async def test_what_names_no_owner_is_refused(self) -> None:
        bad: tuple[Any, ...] = (None, "", "a\nb", 7)
        async with self.open() as store:
            await store.create("s")
            for owner in bad:
                assert isinstance(await error_of(store.erase_owner(owner)), InvalidArgument)
            assert isinstance(await error_of(store.erase_owner("ann", by="")), InvalidArgument)
            assert (await store.get("s")).number == 0
        assert isinstance(await error_of(store.erase_owner("ann")), StoreClosed)
