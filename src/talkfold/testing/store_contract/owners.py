"""The contract of owners: what belongs to somebody else answers exactly like what is not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

from ...actions import Send
from ...errors import AmbiguousSession, SessionNotFound, TalkfoldError
from ...log import LoggedAction
from ...store.lease import Hold, Waiting
from ...store.protocol import ABSENT, ANY, Appended, SessionStore
from .opening import UsesStore, error_of, follow
from .samples import CONVERSATION

__all__ = ("Owners",)

_Call: TypeAlias = Callable[[SessionStore, str, str | None], Awaitable[object]]

_HELLO = Send("u", "hello")
_HOLD = Hold("run")
_WAITING = Waiting(1, "c", "pay", "approval")

_CALLS: dict[str, _Call] = {
    "get": lambda store, name, owner: store.get(name, owner=owner),
    "update": lambda store, name, owner: store.update(name, title="mine now", owner=owner),
    "append": lambda store, name, owner: store.append(name, [_HELLO], owner=owner),
    "append at 0": lambda store, name, owner: store.append(name, [_HELLO], expected=0, owner=owner),
    "append at 4": lambda store, name, owner: store.append(name, [_HELLO], expected=4, owner=owner),
    "append with its key": lambda store, name, owner: store.append(name, CONVERSATION[:4], key="k", owner=owner),
    "append with another": lambda store, name, owner: store.append(name, [_HELLO], key="k", owner=owner),
    "read": lambda store, name, owner: store.read(name, owner=owner),
    "read ahead": lambda store, name, owner: store.read(name, after=99, owner=owner),
    "state": lambda store, name, owner: store.state(name, owner=owner),
    "state at 1": lambda store, name, owner: store.state(name, at=1, owner=owner),
    "state ahead": lambda store, name, owner: store.state(name, at=99, owner=owner),
    "open": lambda store, name, owner: store.open_session(name, owner=owner),
    "fork": lambda store, name, owner: store.fork(name, owner=owner),
    "fork ahead": lambda store, name, owner: store.fork(name, at=99, owner=owner),
    "erase": lambda store, name, owner: store.erase(name, owner=owner),
    "subscribe": lambda store, name, owner: _first(store, name, owner),
    "subscribe ahead": lambda store, name, owner: _first(store, name, owner, after=99),
    "check": lambda store, name, owner: store.check(name, owner=owner),
    "start": lambda store, name, owner: store.start(name, _HELLO, hold=_HOLD, owner=owner),
    "append by a lease": lambda store, name, owner: store.append(name, [_HELLO], hold=_HOLD, owner=owner),
    "park": lambda store, name, owner: store.park(name, [], hold=_HOLD, waiting=_WAITING, owner=owner),
    "answer": lambda store, name, owner: store.answer(name, [_HELLO], number=1, owner=owner),
    "renew": lambda store, name, owner: store.renew(name, hold=_HOLD, owner=owner),
    "release": lambda store, name, owner: store.release(name, hold=_HOLD, owner=owner),
    "watch": lambda store, name, owner: _watched(store, name, owner),
}
"""Every call that names a session."""

_REFUSED_AT_4 = (
    "append at 0",
    "append with another",
    "read ahead",
    "state ahead",
    "fork ahead",
    "subscribe ahead",
    "append by a lease",
    "park",
    "answer",
    "renew",
    "release",
)
"""Those that no session can answer that has the first four actions of the conversation, and no run."""


def _told(error: TalkfoldError, name: str) -> tuple[object, ...]:
    """All that an error says, but for the id that the caller named itself."""
    return type(error), str(error).replace(name, "*"), error.next_step.replace(name, "*"), sorted(vars(error))


class Owners(UsesStore):
    async def test_a_foreign_id_answers_like_an_unknown_one(self) -> None:
        async with self.open() as store:
            await store.create("theirs", owner="bob", title="secret")
            await store.append("theirs", CONVERSATION[:4], key="k", owner="bob")
            await store.create("gone", owner="bob")
            await store.erase("gone", owner="bob")
            await store.create("unowned")
            before = await store.get("theirs"), await store.get("unowned")
            for name, call in _CALLS.items():
                unknown = await error_of(call(store, "nobody", "ann"))
                assert type(unknown) is SessionNotFound, name
                for foreign in ("theirs", "gone", "unowned"):
                    error = await error_of(call(store, foreign, "ann"))
                    assert _told(error, foreign) == _told(unknown, "nobody"), (name, foreign)
            assert (await store.get("theirs"), await store.get("unowned")) == before

    async def test_a_foreign_id_can_be_made_like_an_unknown_one(self) -> None:
        async with self.open() as store:
            await store.create("a", owner="bob")
            await store.create("b", owner="bob")
            await store.create("c", owner="bob")
            await store.create("d", owner="bob")
            await store.erase("d", owner="bob")
            assert (await store.create("a", owner="ann", title="mine")).owner == "ann"
            assert await store.append("b", [_HELLO], expected=ANY, owner="ann") == Appended(1, 1)
            assert await store.append("c", [_HELLO], expected=ABSENT, owner="ann") == Appended(1, 1)
            assert (await store.create("d", owner="ann")).owner == "ann"
            assert (await store.fork("b", new_id="e", owner="ann")).owner == "ann"
            assert (await store.get("a", owner="bob")).title is None
            assert [(await store.get(name, owner="bob")).number for name in "abc"] == [0, 0, 0]

    async def test_the_same_id_of_two_owners_is_two_sessions(self) -> None:
        async with self.open() as store:
            for owner in ("ann", "bob"):
                await store.create("s", owner=owner, title=owner)
            await store.append("s", CONVERSATION[:5], key="k", owner="ann")
            await store.append("s", [_HELLO], key="k", owner="bob")
            assert [(await store.get("s", owner=owner)).number for owner in ("ann", "bob")] == [5, 1]
            await store.update("s", metadata={"stars": 1}, owner="bob")
            assert (await store.get("s", owner="ann")).metadata is None
            await store.erase("s", owner="ann")
            assert (await store.get("s", owner="bob")).title == "bob"
            assert (await store.check("s", owner="bob")).problems == ()
            assert [session.owner for session in (await store.list()).sessions] == ["bob"]

    async def test_without_an_owner_every_session_is_reached(self) -> None:
        async with self.open() as store:
            for name, call in _CALLS.items():
                await store.create(name, owner="ann")
                await store.append(name, CONVERSATION[:4], key="k", owner="ann")
                if name not in _REFUSED_AT_4:
                    await call(store, name, None)
                    if name != "erase":
                        assert (await store.get(name)).owner == "ann"

    async def test_without_an_owner_an_id_of_two_is_ambiguous(self) -> None:
        async with self.open() as store:
            await store.create("s", owner="ann")
            assert await store.append("s", [_HELLO]) == Appended(1, 1)  # only one is meant yet
            await store.create("s", owner="bob")
            for name, call in {**_CALLS, "append any": _append_any}.items():
                error = await error_of(call(store, "s", None))
                assert isinstance(error, AmbiguousSession), name
                assert set(error.owners) == {"ann", "bob"}
            assert [(await store.get("s", owner=owner)).number for owner in ("ann", "bob")] == [1, 0]
            await store.erase("s", owner="ann")
            assert await store.append("s", [_HELLO]) == Appended(1, 1)  # the erased one is not meant
            assert (await store.get("s")).owner == "bob"

    async def test_without_an_owner_nobodys_session_comes_first(self) -> None:
        """Whoever takes the same id cannot put it out of its keeper's reach."""
        async with self.open() as store:
            await store.create("s", title="nobody's")
            await store.create("s", owner="ann")
            assert (await store.get("s")).title == "nobody's"
            assert await store.append("s", [_HELLO]) == Appended(1, 1)
            assert (await store.get("s", owner="ann")).number == 0
            await store.erase("s")
            assert (await store.get("s")).owner == "ann"

    async def test_an_unowned_session_beside_owned_ones(self) -> None:
        async with self.open() as store:
            for owner in ("ann", "bob"):
                await store.create("s", owner=owner)
            made = await store.create("s", title="nobody's")
            assert (made.owner, made.title, made.number) == (None, "nobody's", 0)
            await store.create("t")
            assert (await store.fork("t", new_id="u")).owner is None
            await store.create("f", owner="ann")
            assert (await store.fork("t", new_id="f", title="beside ann's")).title == "beside ann's"
            assert (await store.get("f", owner="ann")).title is None
            listed = [(session.id, session.owner) for session in (await store.list()).sessions]
            assert sorted(listed, key=str) == sorted(
                [("s", "ann"), ("s", "bob"), ("s", None), ("t", None), ("u", None), ("f", "ann"), ("f", None)], key=str
            )


def _append_any(store: SessionStore, name: str, owner: str | None) -> Awaitable[object]:
    return store.append(name, [_HELLO], expected=ANY, owner=owner)


async def _first(store: SessionStore, name: str, owner: str | None, after: int = 0) -> LoggedAction:
    async with aclosing(follow(store, name, after=after, owner=owner)) as following:
        return await anext(following)


async def _watched(store: SessionStore, name: str, owner: str | None) -> int:
    async with store.watch(name, print, owner=owner) as number:
        return number
