"""What a log shows of its turns: what begins and ends them, what comes in between, and what comes too late."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...actions import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from ...calls import finish_trigger
from ...log import SETTLER, LoggedAction
from ...machine import FINISHED, OPEN
from ._calls import Calls, place_of
from ._conversation import Call, Conversation, Level, Message
from ._drivers import Drivers
from ._halves import Halves
from ._telling import Telling, calls_named

__all__ = ("Turns",)


class Turns:
    """Follows a log action by action and tells what is wrong with it."""

    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self.conversation = Conversation()
        self._drivers = Drivers(telling)
        self._calls = Calls(self.conversation, telling)
        self._halves = Halves(telling)
        self._fresh: list[Call] = []  # calls of all levels since the person's last message

    def take(self, row: LoggedAction) -> bool:
        """Look at one row. True: more text for the same message, of the same run, can show nothing new."""
        action = row.action
        if type(action) is Part:
            return self._part(row, action)
        _ACTIONS[type(action)](self, row, action)
        return False

    # ---- actions ----

    def send(self, row: LoggedAction, action: Send) -> None:
        level, number = self.conversation.session, row.number
        self._turn_over("send-over-run", row)
        self._begin(row)
        left = [call for call in self._fresh if call.is_open]
        self._fresh.clear()
        if left:
            numbers = (number, *(call.number for call in left))
            self._tell("send-over-open-call", numbers, call_id=_only(left), calls=_named(left))
        self._new_id(row, level, action.id)
        self.conversation.send(action.id, number)

    def retry(self, row: LoggedAction, action: Retry) -> None:
        number = row.number
        self._turn_over("retry-over-run", row)
        dropped = self.conversation.retry()
        if dropped is None:
            self._tell("retry-without-message", (number,))
            return
        self._begin(row)
        for call in dropped:
            if call.state in OPEN:
                self._tell("call-never-ended", (call.number, number), call_id=call.id, within=call.level.within)
        again = [call for call in dropped if call.level.depth and call.state in FINISHED]
        if again:
            numbers = (number, *(call.number for call in again))
            self._tell("retry-repeats-calls", numbers, call_id=_only(again), calls=_named(again))

    def stop(self, row: LoggedAction, action: Stop) -> None:
        session = self.conversation.session
        settles = row.actor == SETTLER
        self.conversation.cancel_inside(session, "stop", "end" if settles else "stop", row.number)
        if settles:
            self._drivers.settle(row)
        if session.standing == "running":
            session.standing = "ended" if settles else "stopped"
        elif settles and session.standing == "stopped":
            session.standing = "ended"

    def reset(self, row: LoggedAction, action: Reset) -> None:
        self._turn_over("run-without-end", row)
        for call in self.conversation.open_inside(self.conversation.session):
            self._tell("call-never-ended", (call.number, row.number), call_id=call.id, within=call.level.within)
        self._halves.close()
        self._drivers.forget()
        self._telling.new_turn()
        self._fresh.clear()
        self.conversation.reset()

    def tool_phase(self, row: LoggedAction, action: ToolPhase) -> None:
        self._drivers.is_foreign(row, self.conversation.session.standing)
        self._calls.phased(row, action)

    def _turn_over(self, code: str, row: LoggedAction) -> None:
        session = self.conversation.session
        if session.standing == "running":
            self._tell(code, (row.number, session.began), run=self._drivers.current, began=session.began)

    def _begin(self, row: LoggedAction) -> None:
        session = self.conversation.session
        self._halves.close()
        self._telling.new_turn()
        self._drivers.begin(row)
        session.standing, session.said, session.began = "running", False, row.number

    # ---- parts ----

    def _part(self, row: LoggedAction, action: Part) -> bool:
        part, within = action.part, action.within
        if type(part) is TextDelta and not part.delta:
            return False
        session = self.conversation.session
        foreign = self._drivers.is_foreign(row, session.standing)
        level = session if within is None else self._run_inside(row, within, foreign)
        if level is None:
            return type(part) is TextDelta
        if not foreign and type(part) is not ToolResult and type(part) is not ToolError:
            self._in_time(row, level, part)
        if level.standing == "none":
            level.standing, level.began = "running", row.number
        if type(part) is TextDelta:
            return self._text(row, level, part)
        _PARTS[type(part)](self, row, level, part, foreign)
        return False

    def _run_inside(self, row: LoggedAction, within: str, foreign: bool) -> Level | None:
        conversation = self.conversation
        call = conversation.delegate(within)
        if call is None:
            other = conversation.anywhere(within)
            code = "within-unknown-call" if other is None else "within-not-delegate"
            numbers = (row.number,) if other is None else (row.number, other.number)
            self._tell(code, numbers, once=within, within=within)
            return None
        stopped = call.ended_by == "stop" and conversation.session.standing == "stopped"
        if not (call.is_open or stopped or foreign):
            numbers = (row.number, call.ended_at)
            self._tell("within-finished-call", numbers, once=(within, call.number), within=within, other=call.ended_at)
        return conversation.run_of(call)

    def _in_time(self, row: LoggedAction, level: Level, part: AgentStreamPart) -> None:
        """Tell a part that comes when nothing should come any more."""
        session, number, within = self.conversation.session, row.number, level.within
        terminal = isinstance(part, Finish | RunError)
        if level.owner is not None and not level.owner.is_open and session.standing != "stopped":
            return  # the call around it has ended: that is told instead
        if level.standing == "ended":
            code = "end-again" if terminal else "part-outside-turn"
            self._tell(code, (number,), once=(within, level.began), within=within, where=place_of(level))
        elif session.standing == "stopped":
            if not terminal:
                self._tell("part-after-stop", (number,), once="stop", within=within)
        elif level is session:
            if level.standing == "none":
                self._tell("turn-without-message", (number,))
                level.said = False
        elif session.standing != "running":
            self._tell("part-outside-turn", (number,), once=(within, level.began), within=within, where="the session")

    def _text(self, row: LoggedAction, level: Level, part: TextDelta) -> bool:
        message = self._message(row, level, part.message_id)
        if message is None:
            return True
        waits = self._halves.delta(message, part.delta, row.number)
        if not level.said:
            level.said = not part.delta.isspace()
        return level.said and not waits

    def _message(self, row: LoggedAction, level: Level, message_id: str) -> Message | None:
        message = level.message(message_id)
        if message is None:
            once, within = (level.within, message_id), level.within
            theirs = level.users.get(message_id)
            code = "part-for-unknown-message" if theirs is None else "part-for-user-message"
            numbers = (row.number,) if theirs is None else (row.number, theirs)
            self._tell(code, numbers, once=once, message_id=message_id, within=within, where=place_of(level))
        return message

    def _new_id(self, row: LoggedAction, level: Level, message_id: str) -> None:
        before = level.message(message_id)
        other = level.users.get(message_id) if before is None else before.number
        if other is not None:
            numbers = (row.number, other)
            self._tell("message-id-again", numbers, message_id=message_id, within=level.within, other=other)

    def message_start(self, row: LoggedAction, level: Level, part: MessageStart, foreign: bool) -> None:
        self._new_id(row, level, part.message_id)
        self.conversation.start(level, part.message_id, row.number)

    def reasoning(self, row: LoggedAction, level: Level, part: Reasoning, foreign: bool) -> None:
        message = self._message(row, level, part.message_id)
        if message is not None:
            self._halves.part(message)

    def tool_call(self, row: LoggedAction, level: Level, part: ToolCall, foreign: bool) -> None:
        message = self._message(row, level, part.message_id)
        if message is not None:
            self._halves.part(message)
            self._calls.made(row, level, message, part)
            self._fresh.append(message.calls[-1])

    def outcome(self, row: LoggedAction, level: Level, part: ToolResult | ToolError, foreign: bool) -> None:
        self._calls.ended(row, level, part)

    def step_finish(self, row: LoggedAction, level: Level, part: StepFinish, foreign: bool) -> None:
        pass

    def end(self, row: LoggedAction, level: Level, part: Finish | RunError, foreign: bool) -> None:
        number, within = row.number, level.within
        if isinstance(part, RunError) or part.reason == "aborted":
            self.conversation.cancel_inside(level, finish_trigger(part), "end", number)
        else:
            left = [call for call in level.fresh if call.is_open]
            if left:
                numbers = (number, *(call.number for call in left))
                said = {"within": within, "where": place_of(level), "calls": _named(left)}
                self._tell("finish-over-open-call", numbers, call_id=_only(left), **said)
            if part.reason == "stop" and level.standing == "running" and not level.said and not foreign:
                self._tell("empty-reply", (number, level.began), within=within, where=place_of(level))
        level.fresh.clear()
        if not foreign:
            level.standing = "ended"
            if level is self.conversation.session:
                self._drivers.end(row)

    # ---- where the log ends ----

    def pending(self, telling: Telling, last: int, living: bool) -> None:
        """Tell what is wrong if nothing comes after the action ``last``. ``living``: a run goes on."""
        session = self.conversation.session
        for message_id, number in self._halves.left():
            telling.tell("lone-surrogate", (number,), message_id=message_id)
        if living:
            return
        if session.standing == "running":
            run = self._drivers.current
            telling.tell("run-without-end", (last, session.began), run=run, began=session.began)
        for call in self.conversation.open_inside(session):
            telling.tell("call-never-ended", (call.number,), call_id=call.id, within=call.level.within)

    def _tell(self, code: str, numbers: Sequence[int], **said: Any) -> None:
        self._telling.tell(code, numbers, **said)


def _only(calls: Sequence[Call]) -> str | None:
    """The call that it is about, if it is one."""
    return calls[0].id if len(calls) == 1 else None


def _named(calls: Sequence[Call]) -> str:
    return calls_named([call.id for call in calls])


_ACTIONS: Mapping[type, Callable[[Turns, LoggedAction, Any], None]] = {
    Send: Turns.send,
    Retry: Turns.retry,
    Stop: Turns.stop,
    Reset: Turns.reset,
    ToolPhase: Turns.tool_phase,
}

_PARTS: Mapping[type, Callable[[Turns, LoggedAction, Level, Any, bool], None]] = {
    MessageStart: Turns.message_start,
    Reasoning: Turns.reasoning,
    ToolCall: Turns.tool_call,
    ToolResult: Turns.outcome,
    ToolError: Turns.outcome,
    StepFinish: Turns.step_finish,
    Finish: Turns.end,
    RunError: Turns.end,
}
