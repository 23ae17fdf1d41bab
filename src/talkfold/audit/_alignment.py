"""Which entries of two rows belong together. Deterministic, and never more than a row's length times its logarithm."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

__all__ = ("Pairs", "aligned", "by_occurrence", "increasing")

Pairs: TypeAlias = "list[tuple[int, int]]"
"""Indices that belong together: in the row before, in the row after."""

_ROUNDS = 3
"""How often what lies between two entries that belong together is looked through once more."""


def by_occurrence(before: Iterable[Hashable], after: Iterable[Hashable]) -> Pairs:
    """The first entry with a key belongs to the first one with it, the second to the second; sorted by the first row.

    Pairs may cross: that is an entry that moved.
    """
    places: dict[Hashable, list[int]] = {}
    for index, key in enumerate(after):
        places.setdefault(key, []).append(index)
    for row in places.values():
        row.reverse()
    return [(index, places[key].pop()) for index, key in enumerate(before) if places.get(key)]


def increasing(pairs: Pairs) -> Pairs:
    """As many as possible of the pairs, sorted by the first row, such that none of them cross."""
    ends: list[int] = []  # of every length, where the run of that length with the smallest end stops
    last: list[int] = []
    back: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        back.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last.append(number)
        else:
            ends[length] = place
            last[length] = number
    kept: Pairs = []
    at = last[-1] if last else -1
    while at >= 0:
        kept.append(pairs[at])
        at = back[at]
    return kept[::-1]


def aligned(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs:
    """Pairs of equal entries of which none cross, sorted: what stayed when one row became the other.

    Common ends first, then what is there once in both rows, then the same between those.
    """
    pairs: Pairs = []
    gaps = [(0, len(before), 0, len(after), _ROUNDS)]
    while gaps:
        b, b_end, a, a_end, rounds = gaps.pop()
        while b < b_end and a < a_end and before[b] == after[a]:
            pairs.append((b, a))
            b, a = b + 1, a + 1
        while b < b_end and a < a_end and before[b_end - 1] == after[a_end - 1]:
            b_end, a_end = b_end - 1, a_end - 1
            pairs.append((b_end, a_end))
        if b == b_end or a == a_end or not rounds:
            continue
        anchors = _anchors(before[b:b_end], after[a:a_end])
        b_start, a_start = b, a
        for x, y in anchors:
            gaps.append((b, b_start + x, a, a_start + y, rounds - 1))
            b, a = b_start + x + 1, a_start + y + 1
            pairs.append((b - 1, a - 1))
        if anchors:
            gaps.append((b, b_end, a, a_end, rounds - 1))
    return sorted(pairs)


def _anchors(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs:
    pairs = by_occurrence(before, after)
    here, there = Counter(before), Counter(after)
    once = [(x, y) for x, y in pairs if here[before[x]] == 1 == there[before[x]]]
    return increasing(once or pairs)
