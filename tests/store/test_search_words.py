"""What a word is, what a query means, and what of a log is a text: the pure part of search."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from talkfold.actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Send,
    SessionAction,
    Stop,
    TextDelta,
    ToolCall,
    ToolResult,
)
from talkfold.store.search import texts
from talkfold.store.search.excerpt import excerpt_of
from talkfold.store.search.query import Term, parse_query
from talkfold.store.search.texts import Text, Texts
from talkfold.store.search.words import words_in, words_of

CHARACTERS = st.sampled_from(
    [*"aAéßİﬁ½_-. \n", "\u017f", "\u0301", "\u00ad", "我", "が", "ก", "\u0e31", "한", "🎈", "\ud83d", "हि"]
)
TEXTS = st.lists(CHARACTERS, max_size=20).map("".join) | st.text(max_size=20)


@given(TEXTS, TEXTS)
def test_the_words_of_two_pieces_are_those_of_the_whole(left: str, right: str) -> None:
    assert (words_of(left) + words_of(right)).split() == words_of(left + right).split()


@given(TEXTS)
def test_words_are_settled(text: str) -> None:
    words = words_of(text)
    assert words_of(words) == words
    assert "  " not in words
    words.encode()  # no half of a character, so every database can hold them


@given(TEXTS)
def test_words_with_places_are_the_same_words(text: str) -> None:
    found = list(words_in(text))
    assert [each.word for each in found] == words_of(text).split()
    for before, after in pairwise(found):
        assert before.start <= after.start
    assert all(0 <= each.start < each.end <= len(text) for each in found)


@given(TEXTS)
def test_capitals_and_accents_do_not_count(text: str) -> None:
    if len(text.upper()) == len(text) and text.upper().lower() == text.lower():
        assert words_of(text.upper()) == words_of(text)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("blue mug", [(("blue",), False), (("mug",), False)]),
        ('"Blue  mug" blue', [(("blue", "mug"), False), (("blue",), False)]),
        ("mug mug MUG", [(("mug",), False)]),
        ("mug*", [(("mug",), True)]),
        ('"a blue mu"*', [(("a", "blue", "mu"), True)]),
        ("add_to_bas*", [(("add", "to", "bas"), True)]),
        ("a*b", [(("a", "b"), False)]),
        ("- a", [(("a",), False)]),
        ('x"y z"w', [(("x",), False), (("y", "z"), False), (("w",), False)]),
    ],
)
def test_queries(query: str, terms: list[tuple[tuple[str, ...], bool]]) -> None:
    assert parse_query(query).terms == tuple(Term(*term) for term in terms)


@given(st.lists(TEXTS, min_size=1, max_size=6), st.data())
def test_an_excerpt_shows_a_text_that_matches(pieces: list[str], data: st.DataObject) -> None:
    text = " ".join(pieces)
    words = words_of(text).split()
    if words:
        query = parse_query(data.draw(st.sampled_from(words)))
        shown = excerpt_of(text, query)
        assert shown.matches
        for start, end in shown.matches:
            # Without blanks: of two fractions side by side, a word has a half of each.
            assert query.terms[0].words[0] in words_of(shown.text[start:end]).replace(" ", "")
        assert shown.text.strip("…") in text


def test_an_excerpt_looks_where_all_terms_are() -> None:
    text = "mug " * 3_000 + "a blue mug " + "mug " * 3_000
    shown = excerpt_of(text, parse_query("blue mug"))
    assert "blue" in [shown.text[start:end] for start, end in shown.matches]
    assert len(shown.text) < 300


# ---- texts of a log -------------------------------------------------------------------------------------

LANES = st.sampled_from([(None, "a"), (None, "b"), ("d", "a"), ("e", "a")])
ACTIONS: st.SearchStrategy[SessionAction] = st.one_of(
    st.builds(
        lambda lane, delta: Part(TextDelta(lane[1], delta), within=lane[0]),
        LANES,
        st.text("ab ", max_size=9) | st.sampled_from(["a" * 30, " " * 12, "ab " * 20, "a b"]),
    ),
    st.builds(
        lambda lane, part: Part(part, within=lane[0]),
        LANES,
        st.sampled_from([Finish("stop"), MessageStart("a"), Reasoning("a", "hm"), ToolCall("a", "c", "n", {"k": "v"})]),
    ),
    st.sampled_from([Send("u", "hi"), Send("u", ""), Stop(), Reset(), Part(ToolResult("c", None))]),
)


def _texts(log: list[SessionAction], cuts: set[int]) -> dict[int, Text]:
    """The texts of a log read in steps, each step by a new reader that knows what the index would."""
    rows: dict[int, Text] = {}
    reader = Texts()
    for number, action in enumerate(log, start=1):
        reader.add(number, action)
        if number in cuts or number == len(log):
            rows |= {text.first: text for text in (*reader.finished, *reader.unfinished()) if text.words}
            noted = reader.streams()
            reader = Texts((each, rows[each.first].words if each.first in rows else "") for each in noted)
    return rows


@settings(max_examples=300)
@given(st.lists(ACTIONS, max_size=60), st.sets(st.integers(1, 60)), st.sampled_from([20, 40, 10_000]))
def test_in_however_many_steps_the_texts_are_the_same(log: list[SessionAction], cuts: set[int], chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_CHUNK", chunk)
        patch.setattr(texts, "_MOST_STREAMS", 3)
        patch.setattr(texts, "_LONGEST", 25)
        whole = _texts(log, set())
        assert _texts(log, cuts) == whole


@settings(max_examples=200)
@given(st.lists(st.text("ab ", min_size=1, max_size=9), min_size=1, max_size=60))
def test_cut_at_blanks_no_word_is_lost_and_none_made(deltas: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_CHUNK", 60)
        rows = _texts([Part(TextDelta("m", each)) for each in deltas], set())
    words = [word for _, row in sorted(rows.items()) for word in row.words.split()]
    assert words == "".join(deltas).split() or any(len(word) >= 60 for word in "".join(deltas).split())
    for row in rows.values():
        assert 1 <= row.first <= row.last <= len(deltas)


def test_a_value_is_its_keys_texts_and_numbers() -> None:
    value = {"a": ["x", 1, [2.5, {"b": None, "c": {"": "d"}}]], "e": False, "f": 10**5_000, "g\n": "h\\n"}
    deep: object = "end"
    for _ in range(150):
        deep = [deep]
    assert texts.said(Part(ToolResult("c", value))) == "a: x, 1, 2.5, b, c: d, e, f: , g\n: h\\n"
    assert texts.said(Part(ToolResult("c", deep))) == "end"
