"""The piece of a text that shows why it was found, and where in it the words stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .query import Query, Term
from .words import Word, words_in, words_of

__all__ = ("Excerpt", "excerpt_of")

_WIDTH = 160
"""How many characters are shown, about."""

_BLOCK = 4096
_OVERLAP = 512
_MORE = "…"


class Excerpt(NamedTuple):
    """``text`` begins or ends with ``…`` where there is more; ``matches`` are ranges in it: start, and end after it."""

    text: str
    matches: tuple[tuple[int, int], ...]


def excerpt_of(text: str, query: Query, *, width: int = _WIDTH) -> Excerpt:
    """The best piece of a text: the first one with the most of the terms in it."""
    low, high = _block(text, query)
    found = list(_found(list(words_in(text[low:high])), query.terms))
    start, _ = _window(found, width)
    start, end = low + start, low + start + width
    # Some words before the first match, and no word cut in two.
    start = _whole(text, max(0, start - width // 4), max(0, start - width // 2), -1)
    end = _whole(text, min(len(text), end - width // 4), min(len(text), end), 1)
    before, after = _MORE if start else "", _MORE if end < len(text) else ""
    shown = [(max(low + a, start), min(low + b, end)) for a, b, _ in found if start <= low + a < end]
    shift = len(before) - start
    return Excerpt(
        f"{before}{text[start:end]}{after}", tuple((a + shift, b + shift) for a, b in _merged(sorted(set(shown))))
    )


def _block(text: str, query: Query) -> tuple[int, int]:
    """Where to look closely: the first piece of the text that has the most of the terms."""
    best, most = (0, min(len(text), _BLOCK)), 0
    if len(text) <= _BLOCK:
        return best
    for low in range(0, len(text), _BLOCK - _OVERLAP):
        high = min(len(text), low + _BLOCK)
        words = f" {words_of(text[low:high])} "
        here = sum(term.needle in words for term in query.terms)
        if here > most:
            best, most = (low, high), here
        if most == len(query.terms):
            break
    return best


def _found(words: Sequence[Word], terms: Sequence[Term]) -> Iterator[tuple[int, int, Term]]:
    """Where each term stands, in the order of the places."""
    for place, word in enumerate(words):
        for term in terms:
            last = len(term.words) - 1
            if place + last >= len(words):
                continue
            *whole, end = term.words
            if all(words[place + i].word == each for i, each in enumerate(whole)):
                closing = words[place + last]
                if closing.word == end or (term.prefix and closing.word.startswith(end)):
                    yield word.start, closing.end, term


def _window(found: Sequence[tuple[int, int, Term]], width: int) -> tuple[int, int]:
    """The place from which most different terms are seen, and how many."""
    best, most = 0, 0
    for index, (start, _, _) in enumerate(found):
        seen: set[Term] = set()
        for other, _, term in found[index:]:
            if other > start + width // 2:
                break
            seen.add(term)
        if len(seen) > most:
            best, most = start, len(seen)
    return best, most


def _whole(text: str, place: int, limit: int, step: int) -> int:
    """``place``, moved by ``step`` until it is beside a blank, but not beyond ``limit``."""
    while place != limit and 0 < place < len(text) and not (text[place - 1].isspace() or text[place].isspace()):
        place += step
    return place


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in ranges:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
