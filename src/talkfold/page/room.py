"""How much of a log one page shows: a page that no browser opens shows nothing.

What is too long stands there with its beginning, folded as a whole if it is not too long for that either, else with its
size. What is left out is still in the log, and the page says so.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ..errors import TalkfoldError
from ..json_values import is_list, is_object, json_text
from ..model import Json

__all__ = ("Limits", "Room", "Shown", "json_shown", "output_text")


class Limits(Struct, frozen=True):
    """How much a page shows. Sizes are in characters.

    - ``head``: of one text or value at once; ``whole``: of one that is folded behind its beginning.
    - ``total``: of all texts in the conversation, and of the steps' own JSON, each.
    - ``bodies``: how many steps show their own JSON.
    - ``calls``: how many calls the conversation shows with all that they say; those after them are a line each.
    - ``pieces``: how many streamed pieces of text the conversation keeps apart, so that it can go back in time in them.
    - ``lanes``: how many lanes are drawn; ``findings``: how many findings are listed.
    - ``group``: how many steps stand in one table.
    """

    head: int = 4_000
    whole: int = 200_000
    total: int = 8_000_000
    bodies: int = 10_000
    calls: int = 4_000
    pieces: int = 40_000
    lanes: int = 300
    findings: int = 500
    group: int = 250


class Shown(Struct, frozen=True):
    """What a page shows of a text: ``head`` at once, ``whole`` folded (None: nothing is missing, or it is left out).

    ``size`` is that of the text, in characters; ``left_out`` says that only the head is there.
    """

    head: str
    size: int
    whole: str | None = None
    left_out: bool = False


class Room:
    """What is left of a page's room."""

    def __init__(self, limits: Limits, most: int | None = None) -> None:
        """``most``: how many texts there is room for; None: any number."""
        self._limits = limits
        self._left = limits.total
        self._texts_left = most

    @property
    def is_full(self) -> bool:
        """Whether nothing more has room."""
        return self._left <= 0 or self._texts_left == 0

    def show(self, text: str) -> Shown:
        """As much of a text as there is room for."""
        if self._texts_left:
            self._texts_left -= 1
        size = len(text)
        head = min(self._limits.head, max(self._left, 0))
        if size <= head:
            self._left -= size
            return Shown(text, size)
        if size <= self._limits.whole and size + head <= self._left:
            self._left -= size + head
            return Shown(text[:head], size, text)
        self._left -= head
        return Shown(text[:head], size, left_out=True)


def json_shown(text: str | bytes) -> str:
    """JSON, indented for reading unless it is short. Its tokens stay as they are: numbers of any size, keys twice."""
    short = text if isinstance(text, str) else text.decode("utf-8", "replace")
    if len(short) <= 72:
        return short
    try:
        return msgspec.json.format(short, indent=2)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return short


def output_text(value: Json) -> str:
    """A tool's output or input for reading: a text and the text blocks of an output as they are, the rest as JSON.

    A text that is itself an object or a list in JSON is indented.
    """
    if isinstance(value, str):
        return _text(value)
    if is_object(value) and is_list(blocks := value.get("content")) and value.keys() <= {"content", "isError"}:
        texts = [_block_text(block) for block in blocks]
        if texts and all(text is not None for text in texts):
            return "\n".join(_text(text) for text in texts if text is not None)
    try:
        return json_shown(json_text(value))
    except TalkfoldError as error:  # too deep to be written down in one piece
        return str(error)


def _block_text(block: Json) -> str | None:
    if is_object(block) and block.keys() == {"type", "text"} and block["type"] == "text":
        text = block["text"]
        return text if isinstance(text, str) else None
    return None


def _text(text: str) -> str:
    if text[:1] in ("{", "["):
        try:
            msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            return text
        return json_shown(text)
    return text
