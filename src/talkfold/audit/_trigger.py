"""What an action is to the machines: the word of the wire, and which of its effects it has."""

from __future__ import annotations

from ..actions import Finish, Part, RunError, SessionAction, ToolError, ToolPhase
from ..calls import CANCELLED_MARK, finish_trigger
from ..machine import Trigger

__all__ = ("trigger_of",)


def trigger_of(action: SessionAction) -> Trigger:
    """One of ``machine.TRIGGERS``."""
    if type(action) is ToolPhase:
        return f"toolPhase {action.state}"
    what = action.part if type(action) is Part else action
    if type(what) is Finish or type(what) is RunError:
        return finish_trigger(what)
    if type(what) is ToolError and what.error.startswith(CANCELLED_MARK):
        return "tool-error [cancelled]"
    return str(what.__struct_config__.tag)
