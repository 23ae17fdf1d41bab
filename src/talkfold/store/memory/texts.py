"""The texts of one log in memory, read as far as it goes whenever somebody searches."""

from __future__ import annotations

from collections.abc import Sequence

from ...log import LoggedAction
from ..search.texts import Text, Texts

__all__ = ("Found",)


class Found:
    """The texts by the number of their first action; ``read`` is how many actions they come from."""

    def __init__(self) -> None:
        self._texts = Texts()
        self._by_first: dict[int, Text] = {}
        self.read: int = 0

    def up_to(self, log: Sequence[LoggedAction]) -> list[Text]:
        """All texts of the log, newest first."""
        for row in log[self.read :]:
            self._texts.add(row.number, row.action)
        self.read = len(log)
        for text in (*self._texts.finished, *self._texts.unfinished()):
            if text.words:
                self._by_first[text.first] = text
        self._texts.finished.clear()
        return sorted(self._by_first.values(), reverse=True)
