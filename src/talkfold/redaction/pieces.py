"""A text that came in pieces: what was found in the whole of it is taken out of each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from .rules import Edit, Redaction

__all__ = ("cut_out", "redact_pieces")


def redact_pieces(redaction: Redaction, pieces: list[str]) -> list[int]:
    """Redact a text that lies in pieces, in place. Returns how many places began in each. Raises RedactionFailed."""
    counts = [0] * len(pieces)
    for rule in redaction.rules:
        edits = rule("".join(pieces), 0)
        if edits:
            cut_out(pieces, edits, counts)
    return counts


def cut_out(pieces: list[str], edits: Sequence[Edit], counts: list[int]) -> None:
    """Apply edits of the joined text, which are in order: the new text goes into the piece where the old one began,
    and the rest of the old one is taken from the others. A piece may become empty; none is lost."""
    ends = list(accumulate(map(len, pieces)))
    for start, end, text in reversed(edits):
        at = min(bisect_right(ends, start), len(pieces) - 1)
        begin = ends[at - 1] if at else 0
        counts[at] += 1
        pieces[at] = pieces[at][: start - begin] + text + pieces[at][end - begin :]
        while ends[at] < end:
            at += 1
            pieces[at] = pieces[at][end - ends[at - 1] :]
