"""What a word is, the same for every store: a database's own idea of words would differ from the next one's.

A word is a run of letters, digits and marks, without its case and its accents; everything else separates, ``_``, ``-``
and ``.`` as well, so ``add_to_basket`` is three words. In scripts that put no blanks between words each character is
one. A text becomes its words with one blank between them, character by character: so the words of two texts, put
together, are the words of the two put together, and a word that is cut over two pieces of a stream is whole again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from unicodedata import category, normalize

__all__ = ("Word", "words_in", "words_of")

_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x312F),  # Chinese and Japanese
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),  # more Burmese
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),
)
_ACCENTS = range(0x0300, 0x0370)
_SOFT_HYPHEN = 0xAD
_OF_WORDS = frozenset("LMN")


def _folded(code: int) -> str:
    """One character as it is searched: its letters without case and accent, or a blank where it separates."""
    if code == _SOFT_HYPHEN:
        return ""
    composed = normalize("NFKC", chr(code))
    if len(composed) == 1 and any(low <= ord(composed) <= high for low, high in _UNSPACED):
        return f" {composed} " if category(composed)[0] in _OF_WORDS else " "
    found = normalize("NFKD", normalize("NFKD", chr(code)).casefold())
    kept = (each for each in found if ord(each) not in _ACCENTS)
    return "".join(each if category(each)[0] in _OF_WORDS else " " for each in kept)


class _Folding(dict[int, str]):
    """What each character becomes, worked out when it is met for the first time."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded(code)
        return folded


_FOLDING = _Folding()


def words_of(text: str) -> str:
    """The words of a text, one blank between them. A blank at either end says that no word goes on there."""
    folded = text.translate(_FOLDING)
    words = " ".join(folded.split())
    if not words:
        return " " if folded else ""
    return f"{' ' * folded.startswith(' ')}{words}{' ' * folded.endswith(' ')}"


class Word(NamedTuple):
    """A word of a text, and where it stands: from ``start`` to before ``end``."""

    word: str
    start: int
    end: int


def words_in(text: str) -> Iterator[Word]:
    """The words of a text with their places. Slow: for the piece of a text that is shown."""
    word, start, last = "", 0, 0
    for place, folded in enumerate(map(_FOLDING.__getitem__, map(ord, text))):
        for each in folded:
            if each != " ":
                start = start if word else place
                last = place
                word += each
            elif word:
                # Some characters bring blanks along: one that is a word by itself, and fractions.
                yield Word(word, start, last + 1)
                word = ""
    if word:
        yield Word(word, start, len(text))
