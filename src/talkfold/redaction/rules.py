"""What is redacted: patterns, functions and field names, and where they find something in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from ..errors import InvalidArgument, RedactionFailed

__all__ = ("REDACTED", "Edit", "Pattern", "Redaction", "applied")

REDACTED = "[redacted]"
"""What stands in the log where something was taken out."""

_SPAN = 128
_FEWEST_BETWEEN = 12
"""Two changes of a function with fewer equal characters between them are one."""
_LONGEST_COMPARED = 4_096
"""Of a longer text, all between the first and the last change of a function is one."""


class Pattern(Struct, frozen=True):
    """A regular expression, and what stands in the log instead of what it finds.

    ``replacement`` is a text, taken as it is, or a function of the match; one that gives the match's own text back
    leaves it there. ``name`` is how errors call it.
    """

    expression: str
    replacement: str | Callable[[re.Match[str]], str] = REDACTED
    name: str | None = None


class Edit(NamedTuple):
    """A stretch of a text, and what takes its place."""

    start: int
    end: int
    text: str


def applied(text: str, edits: Sequence[Edit]) -> str:
    """The text after edits, which are in order and do not overlap."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join((*pieces, text[at:]))


_Rule: TypeAlias = Callable[[str, int], "list[Edit]"]


class Redaction:
    """What is taken out of everything that a store writes. Applied in the order patterns, functions.

    - ``patterns``: a ``Pattern``, a compiled one, or a regular expression; the last two become ``[redacted]``.
    - ``functions``: each gets a text and returns it without its secrets.
    - ``fields``: names whose values go entirely, in any case of letters and at any depth of inputs, outputs, unknown
      fields, ``meta`` and metadata. A null stays.
    - ``span``: the longest secret, in characters and with what a pattern looks at around it, that is found where a
      run's stream cuts it; so much of an open text is held back.

    The functions must be pure: whoever repeats an append with its key must get the same text. Raises InvalidArgument.
    """

    def __init__(
        self,
        *,
        patterns: Sequence[str | re.Pattern[str] | Pattern] = (),
        functions: Sequence[Callable[[str], str]] = (),
        fields: Collection[str] = (),
        span: int = _SPAN,
    ) -> None:
        _refuse_text("patterns", patterns)
        _refuse_text("fields", fields)
        if type(span) is not int or not 1 <= span <= 65_536:
            raise InvalidArgument("span", f"1 to 65,536 characters, not {span!r}")
        found: list[re.Pattern[str]] = []
        rules: list[_Rule] = []
        for pattern in patterns:
            rule = _pattern(pattern)
            compiled = _compiled(rule)
            found.append(compiled)
            rules.append(_finding(compiled, rule))
        for function in functions:
            if not callable(function):
                raise InvalidArgument("functions", f"a function of a text is needed, not {type(function).__name__}")
            rules.append(_changing(function))
        for field in fields:
            if not isinstance(field, str) or not field:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidArgument("fields", f"names of fields are needed, not {field!r}")
        self.span: int = span
        self.fields: frozenset[str] = frozenset(field.casefold() for field in fields)
        self.rules: tuple[_Rule, ...] = tuple(rules)
        self._found = tuple(each.search for each in found)
        self._has_functions = bool(functions)

    def may_change(self, text: str) -> bool:
        """False where nothing in a text is to be redacted. Most texts are passed over by this."""
        return self._has_functions or any(search(text) is not None for search in self._found)

    def text(self, text: str) -> tuple[str, int]:
        """A text without its secrets, and how many there were. Raises RedactionFailed."""
        count = 0
        for rule in self.rules:
            edits = rule(text, 0)
            if edits:
                text = applied(text, edits)
                count += len(edits)
        return text, count


def _refuse_text(name: str, value: object) -> None:
    if isinstance(value, str | bytes):
        raise InvalidArgument(name, "a list is needed, even for one")


def _pattern(given: str | re.Pattern[str] | Pattern) -> Pattern:
    if isinstance(given, Pattern):
        return given
    if isinstance(given, str):
        return Pattern(given)
    wrong: object = getattr(given, "pattern", given)  # callers may be untyped
    if not isinstance(wrong, str):
        raise InvalidArgument("patterns", f"a regular expression of text is needed, not {wrong!r}")
    return Pattern(_flagged(given))


_FLAGS = {re.I: "i", re.M: "m", re.S: "s", re.X: "x", re.A: "a"}


def _flagged(pattern: re.Pattern[str]) -> str:
    letters = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    return f"(?{letters}){pattern.pattern}" if letters else pattern.pattern


def _compiled(pattern: Pattern) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern.expression)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise InvalidArgument("patterns", f"{pattern.expression!r} is no regular expression: {error}") from None
    if compiled.search("") is not None:
        raise InvalidArgument("patterns", f"{pattern.expression!r} finds the empty text, and so it finds everything")
    return compiled


def _finding(compiled: re.Pattern[str], pattern: Pattern) -> _Rule:
    replacement, name = pattern.replacement, pattern.name or f"pattern {pattern.expression}"

    def edits(text: str, start: int) -> list[Edit]:
        made: list[Edit] = []
        for found in compiled.finditer(text, start):
            new = replacement if isinstance(replacement, str) else _called(name, replacement, found)
            if found[0] and new != found[0]:
                made.append(Edit(found.start(), found.end(), new))
        return made

    return edits


def _changing(function: Callable[[str], str]) -> _Rule:
    name = f"function {getattr(function, '__qualname__', type(function).__name__)}"

    def edits(text: str, start: int) -> list[Edit]:
        before = text[start:]
        after = _called(name, function, before)
        return [] if after == before else [Edit(a + start, b + start, new) for a, b, new in _changes(before, after)]

    return edits


def _called(name: str, function: Callable[..., object], given: object) -> str:
    try:
        made = function(given)
    except Exception as error:
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f" in line {at.tb_lineno} of {at.tb_frame.f_code.co_name}" if at else ""
        # Its text may hold the secret, and would be logged with the cause.
        raise RedactionFailed(name, f"it raised {type(error).__name__}{where}") from None
    if not isinstance(made, str):
        raise RedactionFailed(name, f"it gave a {type(made).__name__}, and a text is needed")
    return made


def _changes(before: str, after: str) -> list[Edit]:
    """Where two texts differ, coarsely: what a function took out is not torn apart for a letter that it shares with
    what took its place."""
    if len(before) + len(after) > _LONGEST_COMPARED:
        return [_outer(before, after)]
    made: list[tuple[int, int, int, int]] = []
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if made and a - made[-1][1] < _FEWEST_BETWEEN:
            made[-1] = (made[-1][0], b, made[-1][2], d)
        else:
            made.append((a, b, c, d))
    return [Edit(a, b, after[c:d]) for a, b, c, d in made]


def _outer(before: str, after: str) -> Edit:
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    room = shorter - start
    end = next((i for i in range(room) if before[-1 - i] != after[-1 - i]), room)
    return Edit(start, len(before) - end, after[start : len(after) - end])
