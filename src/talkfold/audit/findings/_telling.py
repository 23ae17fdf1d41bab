"""Findings on their way out: made from the table, each once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from .codes import FINDINGS, Finding

__all__ = ("Telling", "calls_named", "named")

_LONG = 80
_NAMED = 3


def named(text: str | None) -> str:
    """An id as it stands in a sentence."""
    spelled = repr(text)
    return spelled if len(spelled) <= _LONG else f"{spelled[:_LONG]}…"


def calls_named(ids: Sequence[str]) -> str:
    """Some calls as they stand in a sentence."""
    shown = ", ".join(map(named, ids[:_NAMED]))
    more = len(ids) - _NAMED
    return f"the call{'s' if len(ids) > 1 else ''} {shown}{f' and {more} more' if more > 0 else ''}"


class Telling:
    """Collects findings until somebody takes them."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.run: str | None = None  # that of the row which is looked at
        self._told: set[Hashable] = set()

    def new_turn(self) -> None:
        """What was told is worth telling again."""
        self._told.clear()

    def tell(
        self,
        code: str,
        numbers: Sequence[int],
        *,
        once: Hashable = None,
        message_id: str | None = None,
        call_id: str | None = None,
        within: str | None = None,
        run: str | None = None,
        **said: object,
    ) -> None:
        """Make a finding, of the row's run unless another is given. One with the same ``once`` is made once a turn."""
        if once is not None:
            if (code, once) in self._told:
                return
            self._told.add((code, once))
        kind, run = FINDINGS[code], self.run if run is None else run
        text = kind.sentence.format(
            number=numbers[0],
            message=named(message_id),
            call=named(call_id),
            within=named(within),
            who="without an id" if run is None else named(run),
            **said,
        )
        found = Finding(code, kind.severity, tuple(numbers), text, kind.next_step, message_id, call_id, within, run)
        self.found.append(found)

    def take(self) -> list[Finding]:
        """What was made since the last time."""
        found, self.found = self.found, []
        return found
