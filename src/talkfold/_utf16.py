"""Text as a row of UTF-16 units, which is what the contract's strings are (JavaScript's)."""

from __future__ import annotations

__all__ = ("joined",)


def joined(text: str) -> str:
    """The same row of UTF-16 units, with every pair of surrogate halves that stand side by side as one character.

    A half that stands alone stays. ``joined(a + b) == joined(joined(a) + b)``, so it does not matter whether text
    is joined after every piece or once at the end.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
