"""The end of an open text, held back as long as a secret may still begin there.

A model's text comes in small deltas, and what a redaction looks for lies across them. So a run does not log the
newest deltas of a text before the next characters are there, or the text has ended. The rows of other texts, and all
that does not end this one, go past them: the log then has them in another order than they were said in, and folds to
the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from msgspec.structs import replace

from ..actions import Finish, MessageStart, Part, Reasoning, RunError, SessionAction, StepFinish, TextDelta, ToolCall
from ..log import Entry, Loggable
from ..model import Json
from ..redaction import Edit, Redaction, cut_out
from ..redaction.rows import Cleared

__all__ = ("HeldTexts",)

_LONGEST = 65_536
"""A match that still grows is waited for so long, in characters; then what there is of it is taken out."""


class HeldTexts:
    """The open texts of a run, by message and sub-agent."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._open: dict[tuple[str | None, str], _Held] = {}

    def pass_on(self, action: SessionAction, meta: Mapping[str, Json] | None) -> list[Loggable]:
        """What may be logged now that this action is there, in order: all of the texts that it ends, then itself; of
        a text delta, what lies far enough behind it. Raises RedactionFailed."""
        if type(action) is Part and type(action.part) is TextDelta and meta is None:
            part = action.part
            if type(part.message_id) is str and type(part.delta) is str:  # else no log takes it
                text = self._open.get((action.within, part.message_id))
                if text is None:
                    text = self._open[action.within, part.message_id] = _Held(self._redaction)
                return text.more(action, part.delta)
        return [*self._ended_by(action), action if meta is None else Entry(action, meta=dict(meta))]

    def end(self) -> list[Loggable]:
        """All that is held, redacted. Raises RedactionFailed; then it is gone: what was not redacted is not logged."""
        texts, self._open = list(self._open.values()), {}
        return [row for text in texts for row in text.end()]

    def _ended_by(self, action: SessionAction) -> list[Loggable]:
        if not self._open or type(action) is not Part:
            return []
        part = action.part
        if type(part) is Reasoning or type(part) is ToolCall:
            text = self._open.pop((action.within, part.message_id), None)
            return [] if text is None else text.end()
        if type(part) not in _END_ALL:
            return []
        ended = [key for key in self._open if key[0] == action.within]
        return [row for key in ended for row in self._open.pop(key).end()]


_END_ALL = frozenset({MessageStart, StepFinish, Finish, RunError})
"""The parts that end every text of their agent: the next one is another text, or there is none."""


class _Held:
    """The newest deltas of one text, and what was logged before them, as far as a pattern may look back."""

    def __init__(self, redaction: Redaction) -> None:
        self._rules = redaction.rules
        self._span = redaction.span
        self._before = ""
        self._actions: list[Part] = []
        self._pieces: list[str] = []
        self._counts: list[int] = []
        self._length = 0
        self._enough = 0  # there is nothing to be found out before the text is so long

    def more(self, action: Part, delta: str) -> list[Loggable]:
        self._actions.append(action)
        self._pieces.append(delta)
        self._counts.append(0)
        self._length += len(delta)
        if self._length <= self._span or self._length < self._enough:
            return []
        self._enough = 0
        ready = self._ready()
        for rule in self._rules:
            if not ready:
                break
            ready = self._take_out(rule("".join((self._before, *self._pieces)), len(self._before)), ready)
        return self._first(ready)

    def end(self) -> list[Loggable]:
        for rule in self._rules:
            self._cut(rule("".join((self._before, *self._pieces)), len(self._before)))
        return self._first(len(self._pieces))

    def _ready(self) -> int:
        """How many deltas lie so far back that whatever begins in them and is no longer than the span is seen whole,
        with the character after it."""
        return bisect_right(list(accumulate(map(len, self._pieces))), self._length - self._span - 1)

    def _take_out(self, found: list[Edit], ready: int) -> int:
        """Take out what begins in the deltas that are ready. How many are, when one that still grows is waited for."""
        ends = list(accumulate(map(len, self._pieces)))
        length, shift = ends[-1], len(self._before)
        taken: list[Edit] = []
        for edit in found:
            if edit.start - shift >= ends[ready - 1]:
                break
            if edit.end - shift >= length and length <= _LONGEST:
                ready = bisect_right(ends, edit.start - shift)
                self._enough = length * 5 // 4
                break
            taken.append(edit)
        self._cut(taken)
        return ready

    def _cut(self, edits: list[Edit]) -> None:
        if edits:
            shift = len(self._before)
            cut_out(
                self._pieces, [Edit(edit.start - shift, edit.end - shift, edit.text) for edit in edits], self._counts
            )
            self._length = sum(map(len, self._pieces))

    def _first(self, count: int) -> list[Loggable]:
        """Let the first deltas go, as they are now."""
        rows: list[Loggable] = []
        for action, piece, found in zip(self._actions[:count], self._pieces, self._counts, strict=False):
            part = action.part
            assert type(part) is TextDelta
            said = action if part.delta == piece else replace(action, part=replace(part, delta=piece))
            rows.append(Cleared(said, meta={"redacted": found} if found else None))
        self._before = "".join((self._before, *self._pieces[:count]))[-self._span :]
        del self._actions[:count], self._pieces[:count], self._counts[:count]
        self._length = sum(map(len, self._pieces))
        return rows
