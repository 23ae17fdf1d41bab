"""Text from a log on its way into a page: harmless, and nothing in it unseen.

Characters that a browser would drop, obey or not show (controls, direction overrides, zero widths, tags, lone halves
of a surrogate pair) are written as escapes. A line break and a tab stay what they are, and so do the joiners that
letters and emoji need.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

__all__ = ("first_words", "marked", "visible")

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f\ud800-\udfff]"
)
_WHOLE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def visible(value: object) -> object:
    """A value as a template may print it: a plain text gets its escapes, everything else is left alone.

    Two halves of a pair that stand side by side become the character that they spell.
    """
    if not isinstance(value, str) or isinstance(value, Markup) or not _UNSEEN.search(value):
        return value
    return _UNSEEN.sub(_escape, _paired(value))


def marked(text: str) -> Markup:
    """Text for the body of a page, its escapes marked, so that they cannot be taken for letters that were there."""
    if not _UNSEEN.search(text):
        return escape(text)
    text = _paired(text)
    pieces: list[str] = []
    end = 0
    for found in _UNSEEN.finditer(text):
        pieces += (escape(text[end : found.start()]), '<span class="x">', _escape(found), "</span>")
        end = found.end()
    pieces.append(escape(text[end:]))
    return Markup("".join(pieces))


def first_words(text: str, size: int = 160) -> str:
    """At most ``size`` characters of a text, on one line; ``…`` shows that there was more."""
    short = " ".join(text[: size * 4].split())
    cut = len(short) > size or len(text) > size * 4
    return short[: size - 1] + "…" if cut else short


def _escape(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def _paired(text: str) -> str:
    return _WHOLE_PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
