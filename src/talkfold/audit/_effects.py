"""Which actions did something: a fold that tells of each whether the session is another after it."""

from __future__ import annotations

from collections.abc import Iterable

from ..actions import MessageStart, Part, Send, SessionAction, TextDelta
from ..model import AgentPart, ToolPart
from ._watched import MessageNote, PartNote, RowNote, Stack, WatchedFold

__all__ = ("Effects",)


class Effects(WatchedFold):
    """The fold from the empty session, watched for nothing but changes; texts stay empty."""

    def __init__(self) -> None:
        self._touched = False
        super().__init__(keep_text=False)

    def change_by(self, number: int, actions: Iterable[SessionAction]) -> bool:
        """Apply actions that stand at one number; whether any of them changed the session."""
        changed = False
        for action in actions:
            changed |= self.changes(number or 1, action)
        return changed

    def changes(self, number: int, action: SessionAction) -> bool:
        """Apply the action that stands at that number; whether it changed the session."""
        self._touched = False
        if type(action) is Part and type(action.part) is TextDelta:
            self.step(number, action)
            return self.text is not None and (self._touched or action.part.delta != "")
        moments = len(self.moments)
        self.step(number, action)
        if isinstance(action, Part) and isinstance(action.part, MessageStart):
            return self.level is not None
        return self._touched or len(self.moments) > moments or isinstance(action, Send)

    # ---- what the rows tell ----

    def part_added(self, message: MessageNote, part: AgentPart | list[str]) -> None:
        self._touched = True
        super().part_added(message, part)

    def call_changed(self, note: PartNote, call: ToolPart) -> None:
        self._touched = True
        super().call_changed(note, call)

    def messages_removed(self, row: RowNote, size: int) -> None:
        self._touched = self._touched or row.messages.size > size
        super().messages_removed(row, size)

    def parts_removed(self, parts: Stack[PartNote], size: int) -> None:
        self._touched = True
        super().parts_removed(parts, size)
