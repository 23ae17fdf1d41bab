"""What a log shows of its calls: their ids, their outcomes, their phases, and the runs behind delegate calls."""

from __future__ import annotations

import msgspec

from ...actions import Part, ToolCall, ToolError, ToolPhase, ToolResult
from ...calls import CANCELLED_MARK
from ...codec import encode_action
from ...log import LoggedAction
from ...machine import Trigger
from ._conversation import Call, Conversation, Level, Message
from ._drivers import noted
from ._telling import Telling, calls_named, named

__all__ = ("Calls", "place_of")

_ENCODER = msgspec.json.Encoder()
_DECISIONS = {"denied": "approval-denied", "expired": "approval-expired"}


def place_of(level: Level) -> str:
    """A level as it stands in a sentence."""
    return "the session" if level.owner is None else f"the run inside the call {named(level.owner.id)}"


def _hashed(part: ToolResult | ToolError) -> int:
    """The same number for outcomes that say the same."""
    try:
        return hash(_ENCODER.encode(part))
    except (TypeError, ValueError, RecursionError):  # half of a surrogate pair, say
        return hash(encode_action(Part(part)))


class Calls:
    """Looks at every action that is about a call, and makes it in the conversation."""

    def __init__(self, conversation: Conversation, telling: Telling) -> None:
        self._conversation = conversation
        self._telling = telling

    # ---- a call is made ----

    def made(self, row: LoggedAction, level: Level, message: Message, part: ToolCall) -> None:
        conversation, tell = self._conversation, self._telling.tell
        before = level.call(part.id)
        if before is not None:
            code = "call-id-in-use" if before.is_open else "call-id-again"
            numbers = (row.number, before.number)
            tell(code, numbers, call_id=part.id, within=level.within, other=before.number)
        meant = conversation.delegate(part.id)
        call = conversation.add(level, message, part.id, part.name, row.number)
        if call.is_delegate and meant is not None and meant.level is not level:
            # An open one on another level would go without its parts; a newer place means that this one goes without.
            if meant.is_open or conversation.delegate(part.id) is not call:
                numbers = (row.number, meant.number)
                tell("delegate-id-in-use", numbers, call_id=part.id, within=level.within, other=meant.number)

    # ---- a call ends ----

    def ended(self, row: LoggedAction, level: Level, part: ToolResult | ToolError) -> None:
        conversation, telling = self._conversation, self._telling
        number, within = row.number, level.within
        call = level.call(part.id)
        if call is None:
            self._unknown(row, level, part.id)
            return
        mark = isinstance(part, ToolError) and part.error.startswith(CANCELLED_MARK)
        outcome = _hashed(part)
        if call.is_open:
            if conversation.session.standing == "ended" or level.standing == "ended":
                telling.tell("outcome-after-end", (number,), call_id=call.id, within=within)
            if conversation.session.standing == "stopped" and not mark:
                numbers = (number, call.number)
                telling.tell("call-after-stop", numbers, call_id=call.id, within=within, other=call.number)
            if call.is_delegate:
                self._delegate_ended(row, call, part)
        elif call.ended_by == "outcome":
            code = "outcome-again" if call.outcome == outcome else "outcome-replaced"
            telling.tell(code, (number, call.ended_at), call_id=call.id, within=within, other=call.ended_at)
        elif not mark:  # else: it says in words what happened
            code = "result-after-stop" if call.ended_by == "stop" else "outcome-after-end"
            telling.tell(code, (number,), call_id=call.id, within=within)
        trigger: Trigger = "tool-result" if isinstance(part, ToolResult) else "tool-error"
        conversation.end(call, "tool-error [cancelled]" if mark else trigger, "outcome", number)
        call.outcome = outcome
        self._notes(row, call)

    def _unknown(self, row: LoggedAction, level: Level, call_id: str) -> None:
        other = self._conversation.anywhere(call_id)
        where = place_of(level)
        if other is None:
            self._telling.tell("outcome-without-call", (row.number,), call_id=call_id, within=level.within, where=where)
        else:
            there = place_of(other.level)
            numbers = (row.number, other.number)
            self._telling.tell(
                "outcome-on-wrong-level", numbers, call_id=call_id, within=level.within, where=where, there=there
            )

    def _delegate_ended(self, row: LoggedAction, call: Call, part: ToolResult | ToolError) -> None:
        tell, number, within, run = self._telling.tell, row.number, call.level.within, call.run
        running = self._conversation.session.standing == "running"
        if run is None:
            if isinstance(part, ToolResult) and noted(row, "reused") is not True:
                tell("delegate-without-run", (number, call.number), call_id=call.id, within=within)
            return
        if run.standing == "running" and running:
            tell("nested-run-without-end", (number, call.number), call_id=call.id, within=within)
        left = self._conversation.close(run)
        if left:
            numbers = (number, *(inner.number for inner in left))
            calls = calls_named([inner.id for inner in left])
            tell("call-outlives-delegate", numbers, call_id=call.id, within=within, calls=calls)

    def _notes(self, row: LoggedAction, call: Call) -> None:
        if not row.meta:
            return
        if noted(row, "reused") is True:
            self._telling.tell("outcome-reused", (row.number,), call_id=call.id, within=call.level.within)
        decision = noted(row, "decision")
        if isinstance(decision, str) and decision in _DECISIONS:
            self._telling.tell(_DECISIONS[decision], (row.number,), call_id=call.id, within=call.level.within)

    # ---- a call waits, or goes on ----

    def phased(self, row: LoggedAction, action: ToolPhase) -> None:
        call, count = self._conversation.phased(action.name)
        tool = named(action.name)
        if call is None:
            self._telling.tell("phase-without-call", (row.number,), once=action.name, tool=tool)
            return
        call.state = action.state
        if count > 1 and call.number not in (noted(row, "call"), noted(row, "answers")):
            numbers = (row.number, call.number)
            within = call.level.within
            self._telling.tell(
                "phase-ambiguous", numbers, once=call.number, call_id=call.id, within=within, tool=tool, count=count
            )
