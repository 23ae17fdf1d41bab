"""The contract of a search: whole words of whole texts, of the right owner, and of every append that returned."""

from __future__ import annotations

from typing import Any

import pytest

from ...actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from ...errors import InvalidArgument, InvalidCursor, SearchIsOff, SessionErased, SessionNotFound
from ...store import SearchHit, SessionStore
from .opening import UsesStore, error_of

__all__ = ("Searching",)

_NO_TEXT: Any = 7

_TALK: tuple[SessionAction, ...] = (
    Send("u1", "Put the Blue mug in my basket, please"),
    Part(MessageStart("a1")),
    Part(Reasoning("a1", "A mug that is blau")),
    Part(TextDelta("a1", "Sure, one mo")),
    Part(TextDelta("a1", "ment: the bas")),
    Part(TextDelta("a1", "ket comes.")),
    Part(ToolCall("a1", "c1", "add_to_basket", {"item": "mug", "sizes": [330, {"unit": "ml"}], "gift": True})),
    ToolPhase("add_to_basket", "awaiting-confirmation", "Shall I buy it?"),
    Part(ToolResult("c1", {"content": [{"type": "text", "text": "Ordered: 4711"}]})),
    Part(ToolCall("a1", "c2", "pay", {})),
    Part(ToolError("c2", "Error: the card was declined")),
    Part(RunError("The model went away", "network")),
)

_FOUND: tuple[tuple[str, list[tuple[int, int, str]]], ...] = (
    ("mug", [(7, 7, "tool-call"), (3, 3, "reasoning"), (1, 1, "send")]),
    ("MUG blue", [(1, 1, "send")]),
    ('"blue mug"', [(1, 1, "send")]),
    ('"mug blue"', []),
    ("moment", [(4, 6, "text-delta")]),
    ('"moment the basket"', [(4, 6, "text-delta")]),
    ("bask", []),
    ("bask*", [(7, 7, "tool-call"), (4, 6, "text-delta"), (1, 1, "send")]),
    ('"in my bas"*', [(1, 1, "send")]),
    ("add_to_basket", [(7, 7, "tool-call")]),
    ("330", [(7, 7, "tool-call")]),
    ("unit ml sizes", [(7, 7, "tool-call")]),
    ("buy", [(8, 8, "toolPhase")]),
    ("4711", [(9, 9, "tool-result")]),
    ("declined", [(11, 11, "tool-error")]),
    ("model away", [(12, 12, "error")]),
    ("nowhere", []),
    ("mug nowhere", []),
)

_MEANINGLESS = (
    *("AND", "OR", "NOT mug", "words:mug", "words : mug", "marks:nobody", "nobody", "ksend", "NEAR(mug basket)"),
    *("mug + basket nowhere", "^put nowhere", "{words} : mug", "nowhere') OR (mug", 'mug" OR "basket', "*mug* nowhere"),
)


class Searching(UsesStore):
    @pytest.mark.parametrize(("query", "found"), _FOUND)
    async def test_what_is_found(self, query: str, found: list[tuple[int, int, str]]) -> None:
        async with self.open() as store:
            await store.create("s", actions=_TALK)
            hits = await _all(store, 200, query)
            assert [(hit.first, hit.last, hit.kind) for hit in hits] == found

    async def test_a_hit_says_where_and_why(self) -> None:
        async with self.open() as store:
            await store.create("s", owner="ann", actions=_TALK)
            shown = [(hit, _marked(hit)) for hit in await _all(store, 200, "mug basket")]
            assert [
                (hit.session_id, hit.owner, hit.name, hit.message_id, hit.call_id, text) for hit, text in shown
            ] == [
                ("s", "ann", "add_to_basket", "a1", "c1", "add_to_[basket] item: [mug], sizes: 330, unit: ml, gift"),
                ("s", "ann", None, "u1", None, "Put the Blue [mug] in my [basket], please"),
            ]

    async def test_a_long_text_shows_the_piece_that_counts(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=[Send("u", "hay " * 5_000 + "a Nädle here " + "hay " * 5_000)])
            (hit,) = await _all(store, 5, "nadle")
            assert len(hit.excerpt) < 400
            assert "a [Nädle] here" in _marked(hit)
            assert hit.excerpt.startswith("…")
            assert hit.excerpt.endswith("…")

    @pytest.mark.parametrize("query", _MEANINGLESS)
    async def test_nothing_else_has_a_meaning(self, query: str) -> None:
        async with self.open() as store:
            await store.create("s", actions=_TALK)
            assert await _all(store, 5, query) == []

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("Crème BRÛLÉE", "creme brulee"),
            ("creme brulee", "Crème brûlée"),
            ("Straße", "STRASSE"),
            ("Ångström", "ångström"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("我爱北京天安门", "北京"),
            ("東京タワー", "タワー"),
            ("สวัสดีครับ", "ครับ"),
            ("한국어 공부", "공부"),
            ("हिन्दी में", "हिन्दी"),
            ("user@example.com", "example.com"),
            ("don't", "don't"),
            ("half \ud83d pair", "half pair"),
            ("NUL \0 in it", "nul in"),
        ],
    )
    async def test_words_of_the_world(self, text: str, query: str) -> None:
        async with self.open() as store:
            await store.create("s", actions=[Send("u", text), Send("u", "other")])
            assert [hit.first for hit in await _all(store, 5, query)] == [1]
            assert [hit.first for hit in await _all(store, 5, f'"{query}"')] == [1]

    async def test_streams_side_by_side_are_texts_of_their_own(self) -> None:
        async with self.open() as store:
            actions = [Part(MessageStart("n"), within=lane) for lane in "abc"]
            await store.create("s", actions=actions)
            for piece in ("need", "le in", " hay"):
                for lane in "abc":
                    await store.append("s", [Part(TextDelta("n", piece), within=lane)])
            await store.append("s", [Part(Finish("stop"), within="b"), Part(TextDelta("n", "stack"), within="b")])
            await store.append("s", [Part(TextDelta("n", "stack"), within="a")])
            assert [(hit.first, hit.last) for hit in await _all(store, 5, "needle hay*")] == [(6, 12), (5, 11), (4, 15)]
            assert [(hit.first, hit.last) for hit in await _all(store, 5, "haystack")] == [(4, 15)]
            assert [(hit.first, hit.last) for hit in await _all(store, 5, "stack")] == [(14, 14)]

    async def test_a_text_is_found_while_it_grows(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=[Part(MessageStart("a"))])
            await store.append("s", [Part(TextDelta("a", "nee"))])
            assert [hit.last for hit in await _all(store, 5, "nee")] == [2]
            await store.append("s", [Part(TextDelta("a", "dle"))])
            assert await _all(store, 5, "nee") == []
            assert [hit.last for hit in await _all(store, 5, "needle")] == [3]
            await store.append("s", [Part(Reasoning("a", "hm")), Part(TextDelta("a", "work"))])
            assert [(hit.first, hit.last) for hit in await _all(store, 5, "needle")] == [(2, 3)]
            assert [(hit.first, hit.last) for hit in await _all(store, 5, "work")] == [(5, 5)]

    async def test_a_very_long_message_is_found_everywhere(self) -> None:
        async with self.open() as store:
            words = "".join(f"word{index} x{index:05}y " for index in range(12_000))
            cut = [words[start : start + 7] for start in range(0, len(words), 7)]
            await store.create("s", actions=[Part(MessageStart("a")), *(Part(TextDelta("a", each)) for each in cut)])
            for index in range(0, 12_000, 499):
                (hit,) = await _all(store, 5, f"word{index}")
                assert f"[word{index}]" in _marked(hit)
                assert "".join(cut[hit.first - 2 : hit.last - 1]).find(f"word{index} ") >= 0

    async def test_what_was_dropped_is_still_in_the_log(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=[*_TALK, Retry(), Part(MessageStart("a2")), Reset(), Send("u", "again")])
            assert [hit.first for hit in await _all(store, 5, "declined")] == [11]

    async def test_newest_first_in_pages_that_hold_still(self) -> None:
        async with self.open() as store:
            for name in "abc":
                await store.create(name, actions=[Send("u", f"needle {index}") for index in range(5)])
            due = [(name, number) for name in "cba" for number in range(5, 0, -1)]
            for limit in (1, 2, 7, 15, 200):
                assert [(hit.session_id, hit.first) for hit in await _all(store, limit, "needle")] == due
            page = await store.search("needle", limit=4)
            await store.append("c", [Send("u", "needle needle")])
            await store.create("d", actions=[Send("u", "needle")])
            rest = await store.search("needle", limit=200, cursor=page.next)
            assert [(hit.session_id, hit.first) for hit in (*page.hits, *rest.hits)] == due

    async def test_an_owner_finds_only_what_is_theirs(self) -> None:
        async with self.open() as store:
            for owner in (None, "ann", "bob"):
                await store.create("s", owner=owner, actions=[Send("u", f"needle of {owner}")])
            for owner in ("ann", "bob"):
                (hit,) = await _all(store, 5, "needle", owner=owner)
                assert (hit.session_id, hit.owner) == ("s", owner)
                assert [hit.owner for hit in await _all(store, 5, "needle", owner=owner, session_id="s")] == [owner]
            assert await _all(store, 5, "needle", owner="eve") == []
            assert [hit.owner for hit in await _all(store, 5, "needle")] == ["bob", "ann", None]
            await store.create("t", owner="ann")
            error = await error_of(store.search("needle", owner="bob", session_id="t"))
            assert isinstance(error, SessionNotFound)

    async def test_one_session_and_some_kinds(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=_TALK)
            await store.create("t", actions=_TALK)
            assert {hit.session_id for hit in await _all(store, 5, "mug", session_id="s")} == {"s"}
            assert [
                hit.kind for hit in await _all(store, 1, "basket", session_id="t", kinds=["send", "tool-call"])
            ] == [
                "tool-call",
                "send",
            ]
            assert len(await _all(store, 200, "basket", kinds=["text-delta"])) == 2
            assert isinstance(await error_of(store.search("mug", session_id="u")), SessionNotFound)

    async def test_an_erased_session_is_not_found(self) -> None:
        async with self.open() as store:
            for name in "ab":
                await store.create(name, actions=_TALK)
            assert len(await _all(store, 5, "declined")) == 2
            await store.erase("b")
            assert [hit.session_id for hit in await _all(store, 5, "declined")] == ["a"]
            assert isinstance(await error_of(store.search("mug", session_id="b")), SessionErased)

    async def test_a_fork_is_found_as_well(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=_TALK)
            await store.fork("s", at=5, new_id="f")
            assert [(hit.session_id, hit.last) for hit in await _all(store, 5, "moment")] == [("f", 5), ("s", 6)]
            assert [hit.session_id for hit in await _all(store, 5, "declined")] == ["s"]

    async def test_switched_off_and_on(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=_TALK)
            assert len(await _all(store, 5, "mug")) == 3
            await store.set_search(False)
            await store.set_search(False)
            assert isinstance(await error_of(store.search("mug")), SearchIsOff)
            await store.append("s", [Send("u", "another mug")])
            await store.fork("s", new_id="f")
            await store.erase("f")
            assert isinstance(await error_of(store.search("mug")), SearchIsOff)
            await store.set_search(True)
            await store.set_search(True)
            assert len(await _all(store, 5, "mug")) == 4

    async def test_it_tells_how_far_it_is(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=[Send("u", "needle")] * 300)
            told = list[tuple[int, int]]()
            await store.search("needle", told=lambda done, total: told.append((done, total)))
            assert all(0 <= done <= total for done, total in told)
            assert all(done == total for done, total in told[-1:])

    async def test_what_is_no_search_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=_TALK)
            for bad in ("", " ", "-", '""', "*", '"', 'a "b', "🎈", "a" * 1_001, _NO_TEXT):
                assert isinstance(await error_of(store.search(bad)), InvalidArgument), bad
            for call in (
                *(store.search("a", limit=bad) for bad in (0, -1, 201, True)),
                store.search("a", owner=""),
                store.search("a", session_id=""),
                store.search("a", kinds=["nonsense"]),  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
                store.search("a", kinds="send"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            ):
                assert isinstance(await error_of(call), InvalidArgument)
            good = (await store.search("mug", limit=1)).next
            assert good is not None
            for bad in ("", "0", good + " ", good.upper(), good[0], f"{good[0]}-1", "z" * 50, f"{good[0]}{'f' * 40}"):
                error = await error_of(store.search("mug", cursor=bad))
                assert isinstance(error, InvalidCursor), bad


async def _all(store: SessionStore, limit: int, query: str, **narrowed: Any) -> list[SearchHit]:
    """The hits of all pages, each page no longer than asked for."""
    found: list[SearchHit] = []
    cursor: str | None = None
    while True:
        page = await store.search(query, limit=limit, cursor=cursor, **narrowed)
        assert len(page.hits) <= limit
        found += page.hits
        cursor = page.next
        if cursor is None:
            return found


def _marked(hit: SearchHit) -> str:
    """The excerpt with its matches in brackets."""
    text = hit.excerpt
    for start, end in reversed(hit.matches):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text
