"""The contract of a session's row: create, get, rename, metadata, erase; and of a store that is closed."""

from __future__ import annotations

from typing import Any

import pytest

from ...actions import Send
from ...errors import (
    InvalidArgument,
    NotJsonValue,
    SessionErased,
    SessionExists,
    SessionNotFound,
    StoreClosed,
    TalkfoldError,
)
from ...log import chain_start
from ...store.protocol import ABSENT, ANY, Session
from .opening import UsesStore, error_of, follow
from .samples import CONVERSATION

__all__ = ("Sessions",)

_BAD_NAMES: tuple[Any, ...] = ("", "a\nb", "a\0b", "\ud83d", "x" * 513, 7)


class Sessions(UsesStore):
    async def test_a_new_session_is_empty(self) -> None:
        async with self.open() as store:
            made = await store.create("s", title="Weather", metadata={"project": "north", "deep": {"n": [1.0, 10**30]}})
            assert made == await store.get("s")
            assert made == Session(
                id="s",
                status="idle",
                number=0,
                digest=chain_start("s"),
                size=0,
                created=made.created,
                updated=made.created,
                title="Weather",
                metadata={"project": "north", "deep": {"n": [1.0, 10**30]}},
            )
            assert made.metadata is not None
            assert type(made.metadata["deep"]["n"][0]) is float
            assert await store.read("s") == ()
            assert (await store.state("s")).number == 0

    async def test_a_session_can_be_made_with_its_first_actions(self) -> None:
        async with self.open() as store:
            made = await store.create("s", title="Weather", actions=CONVERSATION)
            assert made == await store.get("s")
            assert made.number == len(CONVERSATION)
            assert [row.action for row in await store.read("s")] == list(CONVERSATION)
            assert (await store.check("s")).problems == ()

    async def test_bad_first_actions_make_no_session(self) -> None:
        async with self.open() as store:
            with pytest.raises(TalkfoldError):
                await store.create("s", actions=[*CONVERSATION, b'{"type":"nonsense"}'])
            with pytest.raises(SessionNotFound):
                await store.get("s")

    async def test_a_session_without_an_id_gets_a_new_one(self) -> None:
        async with self.open() as store:
            made = [await store.create() for _ in range(20)]
            assert len({session.id for session in made}) == 20
            assert [await store.get(session.id) for session in made] == made

    async def test_an_id_is_taken_once(self) -> None:
        async with self.open() as store:
            first = await store.create("s", title="first")
            with pytest.raises(SessionExists) as caught:
                await store.create("s", title="second")
            assert caught.value.session_id == "s"
            assert await store.get("s") == first

    async def test_names_that_cannot_be_kept_are_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            for bad in _BAD_NAMES:
                for call in (
                    store.create(bad),
                    store.create("n", owner=bad),
                    store.append("s", [Send("u", "hi")], key=bad),
                    store.append("s", [Send("u", "hi")], run=bad),
                    store.append("s", [Send("u", "hi")], actor=bad),
                    store.append(bad, [Send("u", "hi")], expected=ANY),
                    store.fork("s", new_id=bad),
                ):
                    assert isinstance(await error_of(call), InvalidArgument), bad
            assert (await store.get("s")).number == 0
            assert len((await store.list()).sessions) == 1

    async def test_rename(self) -> None:
        async with self.open() as store:
            before = await store.create("s", title="old", metadata={"project": "north"})
            for title in ("new", "", "50 % _of_ it", "ÅÄÖ 🎈", "two\nlines"):
                after = await store.update("s", title=title)
                assert after.title == title
                assert after.metadata == before.metadata
                assert after == await store.get("s")
            assert (await store.update("s")).title == "two\nlines"

    async def test_metadata_is_merged_by_key_and_none_removes(self) -> None:
        async with self.open() as store:
            await store.create("s", title="kept", metadata={"project": "north", "stars": 3})
            changed = await store.update("s", metadata={"stars": 4, "new": [None, {"a": 1}]})
            assert changed.metadata == {"project": "north", "stars": 4, "new": [None, {"a": 1}]}
            assert list(changed.metadata or ()) == ["project", "stars", "new"]
            assert (await store.update("s", metadata={"project": None, "nobody": None})).metadata == {
                "stars": 4,
                "new": [None, {"a": 1}],
            }
            left = await store.update("s", metadata={"stars": None, "new": None})
            assert not left.metadata
            assert left.title == "kept"
            assert left == await store.get("s")

    async def test_a_refused_update_changes_nothing(self) -> None:
        no_object: Any = ["stars"]
        async with self.open() as store:
            before = await store.create("s", title="old", metadata={"project": "north"})
            for call in (
                store.update("s", title="new", metadata={"project": float("nan")}),
                store.update("s", title="new", metadata={"project": {1: 2}}),
                store.update("s", title="half a pair \ud83d", metadata={"project": "south"}),
                store.update("s", title="NUL \0", metadata={"project": "south"}),
                store.update("s", title="new", metadata=no_object),
            ):
                assert isinstance(await error_of(call), (NotJsonValue, InvalidArgument))
            assert await store.get("s") == before

    async def test_metadata_that_grows_too_large_is_refused_whole(self) -> None:
        half = "x" * (10 * 2**20)
        async with self.open() as store:
            before = await store.create("s", title="old", metadata={"one": half})
            assert isinstance(await error_of(store.update("s", title="new", metadata={"two": half})), TalkfoldError)
            assert await store.get("s") == before

    async def test_times_are_milliseconds_in_order(self) -> None:
        async with self.open() as store:
            made = await store.create("s")
            await store.append("s", [Send("u", "hi")])
            grown = await store.get("s")
            (logged,) = await store.read("s")
            assert 1_500_000_000_000 < made.created <= grown.updated
            assert grown.created == made.created
            assert made.created <= logged.time <= grown.updated

    async def test_an_erased_session_leaves_only_its_tombstone(self) -> None:
        async with self.open() as store:
            await store.create("s", owner="ann", title="secret", metadata={"project": "secret"})
            await store.append("s", CONVERSATION[:5], key="k")
            await store.create("other", owner="ann")
            tombstone = await store.erase("s", owner="ann", by="the clerk")
            assert (tombstone.id, tombstone.number, tombstone.owner, tombstone.by) == ("s", 5, "ann", "the clerk")
            for call in (
                store.get("s"),
                store.update("s", title="again"),
                store.append("s", [Send("u", "hi")]),
                store.append("s", [Send("u", "hi")], expected=ANY),
                store.append("s", [Send("u", "hi")], expected=ABSENT),
                store.append("s", [Send("u", "hi")], expected=5),
                store.append("s", CONVERSATION[:5], key="k"),
                store.read("s"),
                store.state("s"),
                store.state("s", at=0),
                store.open_session("s"),
                store.fork("s"),
                store.erase("s"),
                store.check("s"),
                anext(follow(store, "s")),
                store.create("s", owner="ann"),
                store.fork("other", new_id="s"),
            ):
                error = await error_of(call)
                assert isinstance(error, SessionErased)
                assert (error.session_id, error.at, error.by) == ("s", tombstone.at, "the clerk")
            assert [session.id for session in (await store.list()).sessions] == ["other"]

    async def test_erasing_is_of_one_session(self) -> None:
        async with self.open() as store:
            for name in ("before", "s", "after"):
                await store.create(name)
                await store.append(name, CONVERSATION)
            kept = [await store.read(name) for name in ("before", "after")]
            await store.erase("s")
            assert [await store.read(name) for name in ("before", "after")] == kept
            for name in ("before", "after"):
                assert (await store.check(name)).problems == ()

    async def test_a_session_that_never_was(self) -> None:
        async with self.open() as store:
            for call in (
                store.get("s"),
                store.update("s", title="t"),
                store.append("s", [Send("u", "hi")]),
                store.append("s", [Send("u", "hi")], expected=0),
                store.read("s"),
                store.state("s"),
                store.open_session("s"),
                store.fork("s"),
                store.erase("s"),
                store.check("s"),
                anext(follow(store, "s")),
            ):
                error = await error_of(call)
                assert isinstance(error, SessionNotFound)
                assert error.session_id == "s"
            assert (await store.list()).sessions == ()

    async def test_a_closed_store_says_so(self) -> None:
        async with self.open() as store:
            await store.create("s")
        for call in (
            store.create("t"),
            store.get("s"),
            store.list(),
            store.update("s", title="t"),
            store.append("s", [Send("u", "hi")]),
            store.append("t", [Send("u", "hi")], expected=ANY),
            store.read("s"),
            store.state("s"),
            store.open_session("s"),
            store.fork("s"),
            store.erase("s"),
            store.check("s"),
            anext(follow(store, "s")),
        ):
            assert isinstance(await error_of(call), StoreClosed)
