"""What a person asks for: words, ``"phrases"`` and ``beginnings*``, all of which must stand in the same text.

Nothing else has a meaning, whatever a store uses inside: no operators, no column names.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...errors import InvalidArgument
from .words import words_of

__all__ = ("Query", "Term", "parse_query")

_MOST_CHARACTERS = 1_000
_PIECES = re.compile(r'"(?P<phrase>[^"]*)"(?P<open>\*)?|(?P<word>[^\s"]+)')


class Term(NamedTuple):
    """Words that follow each other; with ``prefix`` the last one may go on."""

    words: tuple[str, ...]
    prefix: bool

    @property
    def needle(self) -> str:
        """What the words of a text contain, with a blank before the first and after the last, if this is in it."""
        return f" {' '.join(self.words)}{'' if self.prefix else ' '}"


class Query(NamedTuple):
    """Terms that must all be in a text; no term twice."""

    terms: tuple[Term, ...]

    def matches(self, words: str) -> bool:
        """Whether a text with these words has all of it."""
        padded = f" {words} "
        return all(term.needle in padded for term in self.terms)


def parse_query(query: str) -> Query:
    """Raises InvalidArgument when there is no word in it, a quotation mark without its second, or far too much."""
    if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidArgument("query", f"a text is needed, not {type(query).__name__}")
    if len(query) > _MOST_CHARACTERS:
        raise InvalidArgument("query", f"{len(query):,} characters are too long; the limit is {_MOST_CHARACTERS:,}")
    if query.count('"') % 2:
        raise InvalidArgument("query", 'a phrase begins with " and does not end with one')
    terms: dict[Term, None] = {}
    for piece in _PIECES.finditer(query):
        text = piece["phrase"] if piece["word"] is None else piece["word"]
        words = tuple(words_of(text).split())
        if words:
            open_end = piece["open"] is not None if piece["word"] is None else text.endswith("*")
            terms[Term(words, open_end)] = None
    if not terms:
        raise InvalidArgument("query", "there is no word in it; a word has a letter or a digit")
    return Query(tuple(terms))
