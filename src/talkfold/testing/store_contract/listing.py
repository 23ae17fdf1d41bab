"""The contract of a list: newest first, filters that mean what they say, pages that hold still."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from ...actions import Part, RunError, Send
from ...errors import InvalidArgument, InvalidCursor, MetadataKeyNotAllowed
from ...model import Json
from ...store.protocol import SessionStore
from .opening import UsesStore, error_of

__all__ = ("Listing",)

_NO_FILTER: Any = ["done"]

_VALUES: tuple[tuple[str, Json], ...] = (
    ("one", 1),
    ("true", True),
    ("text", "1"),
    ("zero", 0),
    ("false", False),
    ("empty", ""),
    ("half", 0.5),
    ("quote", 'it\'s "50%" _\\ é 🎈'),
    ("list", [1]),
    ("object", {"stars": 1}),
)
"""Sessions by name, each with its own kind of `stars`."""


class Listing(UsesStore):
    async def test_newest_first_whole_rows(self) -> None:
        async with self.open() as store:
            for name in "abc":
                await store.create(name, title=name, metadata={"project": name})
            await store.append("a", [Send("u", "later than all")])
            page = await store.list()
            assert page.next is None
            assert page.sessions == tuple([await store.get(name) for name in "cba"])

    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 11])
    async def test_pages_cover_all_once(self, limit: int) -> None:
        async with self.open() as store:
            names = [f"s{index}" for index in range(10)]
            for name in names:
                await store.create(name)
            assert await _all(store, limit) == names[::-1]

    async def test_pages_hold_still_while_others_write(self) -> None:
        async with self.open() as store:
            names = [f"s{index:02}" for index in range(30)]
            for name in names:
                await store.create(name, title="t")
            seen: list[str] = []
            cursor: str | None = None
            step = 0
            while True:
                page = await store.list(limit=4, cursor=cursor)
                seen += [session.id for session in page.sessions]
                cursor = page.next
                if cursor is None:
                    break
                await store.create(f"new{step}")  # newer than all: on a page that was read already
                await store.update(names[step], title="touched")
                await store.append(names[-step - 1], [Send("u", "touched")])
                await store.fork(names[step], new_id=f"fork{step}")
                if names[15] not in seen and step == 1:
                    await store.erase(names[15])
                step += 1
            assert seen == [name for name in reversed(names) if name != names[15]]

    async def test_by_owner_and_status(self) -> None:
        async with self.open() as store:
            for owner in ("ann", "bob", None):
                await store.create(f"{owner} idle", owner=owner)
                await store.create(f"{owner} streaming", owner=owner)
                await store.append(f"{owner} streaming", [Send("u", "hi")], owner=owner)
                await store.create(f"{owner} error", owner=owner)
                await store.append(f"{owner} error", [Send("u", "hi"), Part(RunError("no"))], owner=owner)
            assert len(await _all(store, 2)) == 9
            assert await _all(store, 2, owner="ann") == ["ann error", "ann streaming", "ann idle"]
            assert await _all(store, 1, owner="nobody") == []
            for status in ("idle", "streaming", "error"):
                expected = [f"{owner} {status}" for owner in (None, "bob", "ann")]
                assert await _all(store, 2, status=status) == expected
                assert await _all(store, 2, status=status, owner="bob") == [f"bob {status}"]

    async def test_by_a_text_in_the_title(self) -> None:
        titles = ("Oslo weather", "oslo 50% off", "OSLO_2", "Ærø", "ærø", "", "back\\slash 'quote\"")
        async with self.open() as store:
            for index, title in enumerate(titles):
                await store.create(f"s{index}", title=title)
            await store.create("untitled")

            async def found(text: str) -> list[str | None]:
                return [session.title for session in (await store.list(title=text)).sessions][::-1]

            assert await found("OSLO") == ["Oslo weather", "oslo 50% off", "OSLO_2"]
            assert await found("slo 5") == ["oslo 50% off"]
            assert await found("%") == ["oslo 50% off"]
            assert await found("_") == ["OSLO_2"]
            assert await found("\\S") == ["back\\slash 'quote\""]
            assert await found("'QUOTE\"") == ["back\\slash 'quote\""]
            assert await found("Ærø") == ["Ærø"]  # only ASCII letters lose their case
            assert await found("nowhere") == []
            assert set(titles) >= set(await found("")) >= set(titles) - {""}

    async def test_by_metadata_of_every_kind(self) -> None:
        async with self.open() as store:
            for name, value in _VALUES:
                await store.create(name, metadata={"stars": value, "other": 1})
            await store.create("without", metadata={"other": 1})
            await store.create("bare")
            for name, value in _VALUES:
                if isinstance(value, (str, int, float)):
                    found = (await store.list(metadata={"stars": value})).sessions
                    assert [session.id for session in found] == [name], value
            assert [session.id for session in (await store.list(metadata={"stars": None})).sessions] == [
                "bare",
                "without",
            ]
            assert (await store.list(metadata={"stars": 2})).sessions == ()

    async def test_filters_are_all_of_them(self) -> None:
        async with self.open() as store:
            for project in ("north", "south"):
                for stars in (1, 2):
                    for title in ("Alpha", "Beta"):
                        await store.create(
                            f"{project} {stars} {title}", title=title, metadata={"project": project, "stars": stars}
                        )
            assert await _all(store, 1, title="alp", metadata={"project": "south", "stars": 2}) == ["south 2 Alpha"]
            assert await _all(store, 1, metadata={"project": "north"}) == [
                "north 2 Beta",
                "north 2 Alpha",
                "north 1 Beta",
                "north 1 Alpha",
            ]

    async def test_a_list_follows_changes(self) -> None:
        async with self.open() as store:
            await store.create("s", title="old", metadata={"stars": 1})
            await store.update("s", title="new", metadata={"stars": 2})
            assert await _all(store, 5, title="old") == []
            assert await _all(store, 5, metadata={"stars": 1}) == []
            assert await _all(store, 5, title="new", metadata={"stars": 2}, status="idle") == ["s"]
            await store.append("s", [Send("u", "hi")])
            assert await _all(store, 5, status="idle") == []
            await store.open_session("s")
            assert await _all(store, 5, status="idle") == ["s"]
            await store.erase("s")
            assert await _all(store, 5) == []

    async def test_keys_outside_the_allow_list_are_refused(self) -> None:
        async with self.open() as store:
            await store.create("s", metadata={"other": 1})
            for key in ("other", "", "project.name", "project' OR 1 --", '$."stars"', "Stars"):
                error = await error_of(store.list(metadata={key: 1}))
                assert isinstance(error, MetadataKeyNotAllowed)
                assert error.key == key

    async def test_what_is_no_filter_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            for call in (
                store.list(status=_NO_FILTER),
                store.list(metadata={"stars": _NO_FILTER}),
                store.list(title="NUL \0"),
                store.list(title=_NO_FILTER),
                store.list(owner=""),
                *(store.list(limit=bad) for bad in (0, -1, 1_001, True)),
            ):
                assert isinstance(await error_of(call), InvalidArgument)

    async def test_cursors_that_nobody_gave_out_are_refused(self) -> None:
        async with self.open() as store:
            for index in range(5):
                await store.create(f"s{index}")
            good = (await store.list(limit=2)).next
            assert good is not None
            mark, rest = good[0], good[1:]
            for bad in (
                *("", " ", "0", "next", "k", "m", "'; DROP TABLE session; --", good + "\0", f" {good}", f"{good} "),
                *(mark + tail for tail in ("", "-1", "+5", " 5", "0x5", "1_0", "٣", "f" * 16, "f" * 99, f"0{rest}")),
                good.upper(),
            ):
                error = await error_of(store.list(cursor=bad))
                assert isinstance(error, InvalidCursor), bad
                assert error.cursor == bad
            assert len((await store.list(cursor=good)).sessions) == 3

    async def test_ten_thousand_sessions(self) -> None:
        async with self.open() as store:

            async def create(names: range) -> None:
                for name in names:
                    await store.create(f"s{name}", owner="ann" if name % 100 == 0 else "bob")

            async with anyio.create_task_group() as group:
                for start in range(0, 10_000, 200):
                    group.start_soon(create, range(start, start + 200))
            seen = await _all(store, 1_000)
            assert len(seen) == 10_000
            assert set(seen) == {f"s{name}" for name in range(10_000)}
            assert len(await _all(store, 7, owner="ann")) == 100


async def _all(store: SessionStore, limit: int, **filters: Json) -> list[str]:
    """The ids of all pages, each page no longer than asked for and none of them idle."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.list(limit=limit, cursor=cursor, **filters)
        assert len(page.sessions) <= limit
        assert page.sessions or not found
        found += [session.id for session in page.sessions]
        cursor = page.next
        if cursor is None:
            return found
