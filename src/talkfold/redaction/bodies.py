"""The JSON of an action without its secrets. Only the values that hold one are written anew.

What pairs things stays as it is: type tags, the ids of messages and calls, ``within``, the names of tools, states,
reasons and codes; so does all of ``providerMetadata``, where a changed byte breaks a signature. One thing in it is no
provider's: the arguments text that an import of OpenAI messages keeps beside a call's input, and that is the input
once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, get_args

import msgspec

from ..actions import AgentStreamPart, Part, SessionAction
from ..codec.text import utf8
from .rules import REDACTED, Edit, Redaction, applied
from .values import quoted, redact_text

__all__ = ("redact_body",)

_TEXTS = frozenset({"text", "delta", "error", "prompt", "input", "output"})
"""The fields that say something. What else an action has by its type is left alone, what it has besides is not."""


def _kept(union: object) -> dict[str, frozenset[str]]:
    return {
        str(member.__struct_config__.tag): frozenset(
            {"type", *(field.encode_name for field in msgspec.structs.fields(member))} - _TEXTS
        )
        for member in get_args(union)
    }


_ACTIONS = _kept(SessionAction)
_PARTS = _kept(AgentStreamPart)
_PART = str(Part.__struct_config__.tag)
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)
_GAP = re.compile(r"[ \t\r\n]*[{,:]?[ \t\r\n]*")


class _Member(NamedTuple):
    name: str
    value: object
    start: int
    end: int


def redact_body(redaction: Redaction, body: bytes, delta: str | None = None) -> tuple[bytes, int]:
    """A valid action's JSON without its secrets, and how many places there were; the same bytes where there was none.

    ``delta`` is what a text delta becomes: its own text lies in several actions, and is redacted with the others.
    Raises RedactionFailed.
    """
    text = body.decode()
    work = _Work(redaction, text, delta)
    top = list(_members(text, 0))
    work.free(top, _ACTIONS[_tag(top)])
    if _tag(top) == _PART:
        for member in top:
            if member.name == "part" and isinstance(member.value, dict):
                inner = list(_members(text, member.start))
                work.free(inner, _PARTS.get(_tag(inner), frozenset()))
                work.copies(inner)
    if not work.edits:
        return body, 0
    return utf8(applied(text, sorted(work.edits))), work.count


def _members(text: str, start: int) -> Iterator[_Member]:
    """The members of the object that begins at ``start``, with the places of their values in the text."""
    at = _after_gap(text, start)
    while text[at] != "}":
        name, at = _SCANNER.raw_decode(text, at)
        begin = _after_gap(text, at)
        value, end = _SCANNER.raw_decode(text, begin)
        yield _Member(name, value, begin, end)
        at = _after_gap(text, end)


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _tag(members: list[_Member]) -> str:
    return next((member.value for member in members if member.name == "type" and isinstance(member.value, str)), "")


class _Work:
    """One body on its way: what is to be changed in its text, and how many places were found."""

    def __init__(self, redaction: Redaction, text: str, delta: str | None) -> None:
        self._redaction = redaction
        self._text = text
        self._delta = delta
        self.edits: list[Edit] = []
        self.count = 0

    def free(self, members: list[_Member], kept: frozenset[str]) -> None:
        """Redact the members that are not to be kept as they are."""
        for name, value, start, end in members:
            if name in kept:
                continue
            if name == "delta" and self._delta is not None:
                if value != self._delta:
                    self.edits.append(Edit(start, end, quoted(self._delta)))
            elif name not in _TEXTS and name.casefold() in self._redaction.fields and value is not None:
                if value != REDACTED:
                    self.edits.append(Edit(start, end, quoted(REDACTED)))
                    self.count += 1
            else:
                new, count = redact_text(self._redaction, self._text[start:end])
                if count:
                    self.edits.append(Edit(start, end, new))
                    self.count += count

    def copies(self, members: list[_Member]) -> None:
        """Redact the input's arguments text: not counted, it is there twice for us only."""
        if _tag(members) != "tool-call":
            return
        for outer in members:
            if outer.name == "providerMetadata" and isinstance(outer.value, dict):
                for own in _members(self._text, outer.start):
                    if own.name == "openai" and isinstance(own.value, dict):
                        for copy in _members(self._text, own.start):
                            if copy.name == "arguments" and isinstance(copy.value, str):
                                self._copy(copy.value, copy.start, copy.end)

    def _copy(self, raw: str, start: int, end: int) -> None:
        try:
            new, _ = redact_text(self._redaction, raw)
        except (ValueError, RecursionError):
            new, _ = self._redaction.text(raw)
        if new != raw:
            self.edits.append(Edit(start, end, quoted(new)))
