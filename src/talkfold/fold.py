"""Many actions, one pass: ``fold(actions, state)``.

Equal to ``session_reducer`` one action at a time, for every log and every start state, but in time linear in the log:
the reducer makes a new state a step, which copies the row of messages; the fold works on one draft and freezes it at
the end. What a part does to a call is the very same code (``calls``); where a call stands is what the draft knows
better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._draft import DraftMessage, Level, calls_inside
from ._order import Call, OpenCalls, Rows
from ._utf16 import joined
from .actions import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from .calls import ByKind, cancelled, ended, finish_trigger, is_delegate, is_open, phased, with_run
from .machine import FINISHED, SESSION_NEXT, TOOL_CALL_NEXT, Trigger
from .model import (
    EMPTY_SESSION,
    UNSET,
    AgentMessage,
    AgentPart,
    ReasoningPart,
    SessionError,
    SessionState,
    SessionStatus,
    TextPart,
    ToolPart,
)

__all__ = ("Draft", "fold")


def fold(actions: Iterable[SessionAction], state: SessionState = EMPTY_SESSION) -> SessionState:
    """The state after the actions, in order, starting from ``state``; the same object when nothing changed.

    Never raises on typed actions, InvalidAction for anything else. Messages and parts that no action touched are
    shared with the start state.
    """
    draft = Draft(state)
    draft.feed(actions)
    return draft.frozen()


class Draft:
    """The session's state as a fold changes it: fed with actions, and frozen when the state is wanted.

    It may be fed on afterwards. Who reads a log in pages feeds one draft: a fold of each page would look through
    the whole state once a page for what its actions mean.
    """

    def __init__(self, state: SessionState = EMPTY_SESSION) -> None:
        self._begin(state)
        self._state = state

    def feed(self, actions: Iterable[SessionAction]) -> None:
        """Apply actions, in order."""
        # Most of a log is text: as long as deltas go on for one message, they are only collected. They are joined when
        # the next text is opened, not all at the end, where every one of them has long left the processor's cache.
        message_id = within = None
        text: list[str] = []
        deltas: list[str] = []
        add = deltas.append
        for action in actions:
            if type(action) is Part:
                part = action.part
                if type(part) is TextDelta:
                    if part.message_id == message_id and (action.within is within or action.within == within):
                        add(part.delta)
                        continue
                    opened = self.open_text(action.within, part.message_id)
                    if opened is None:
                        message_id = None
                        continue
                    text.append("".join(deltas))
                    deltas.clear()
                    add(part.delta)
                    text, message_id, within = opened, part.message_id, action.within
                    continue
                message_id = None
                level = self.session if action.within is None else self.run(action.within)
                if level is not None:
                    _PARTS[type(part)](self, level, part)
                continue
            message_id = None
            _ACTIONS[type(action)](self, action)
        text.append("".join(deltas))

    def take(self, action: SessionAction) -> None:
        """Apply an action that is no part."""
        _ACTIONS[type(action)](self, action)

    def take_part(self, level: Level, part: AgentStreamPart) -> None:
        """Apply a part that is no text delta to the level that it is for."""
        _PARTS[type(part)](self, level, part)

    def _begin(self, state: SessionState) -> None:
        self._levels: list[Level] = []
        self.session: Level = Level(state.messages, self._levels)
        self._status: SessionStatus = state.status
        self._error = state.error
        self._has_user: bool | None = None  # whether there is a user message, once that was asked
        self._searches = 3
        self._runs: dict[str, Level] = {}  # what ``within`` has found
        self._delegates: Rows | None = None
        self._open: OpenCalls | None = None

    def frozen(self) -> SessionState:
        """The state as it is now; the state before, and messages and parts of it, where nothing changed."""
        for level in reversed(self._levels):
            owner = level.owner
            if owner is None or owner.gone:
                continue
            call, messages = owner.seen(), level.frozen()
            if messages is not (call.agent.messages if call.agent else ()):
                owner.put(with_run(call, messages))
        state, messages = self._state, self.session.frozen()
        if messages is not state.messages or self._status != state.status or self._error != state.error:
            self._state = SessionState(messages, self._status, self._error)
        return self._state

    # ---- actions ----

    def send(self, action: Send) -> None:
        """A person's message is the newest; the agent is awaited."""
        self.session.append(AgentMessage(action.id, "user", (TextPart(joined(action.text)),)))
        self._has_user = True
        self._status, self._error = SESSION_NEXT[self._status, "send"], None

    def tool_phase(self, action: ToolPhase) -> None:
        """The newest open call of that name, at any depth, moves on."""
        if self._open is None and self._may_search():
            call = next(calls_inside(self.session, lambda call: call.name == action.name and is_open(call)), None)
        else:
            call = self._open_calls().newest(action.name)
        if call is not None:
            call.put(phased(call.seen(), action))

    def stop(self, action: Stop) -> None:
        """Every open call, at any depth, is cancelled."""
        self._cancel_open(self.session, "stop")
        self._status = SESSION_NEXT[self._status, "stop"]

    def retry(self, action: Retry) -> None:
        """Cut back to the last finished call after the last user message; nothing without a user message."""
        level = self.session
        if self._has_user is None:
            self._has_user = any(message.role == "user" for message in reversed(level.messages))
        if not self._has_user:
            return
        level.cut(*self._last_kept())
        self._runs.clear()
        self._status, self._error = SESSION_NEXT[self._status, "retry"], None

    def _last_kept(self) -> tuple[int, int]:
        """Like ``resumable.last_kept``, looking only at what a retry removes: that makes many retries cheap."""
        messages = self.session.messages
        place = len(messages)
        while True:
            place -= 1
            message = messages[place]
            if message.role == "user":
                return place, len(message.parts)
            for index in range(len(message.parts) - 1, -1, -1):
                part = message.parts[index]
                if type(part) is ToolPart and part.state in FINISHED:
                    return place, index + 1

    def reset(self, action: Reset) -> None:
        """Begin anew, from nothing."""
        self._begin(EMPTY_SESSION)

    # ---- stream parts, on one level ----

    def message_start(self, level: Level, part: MessageStart) -> None:
        """An empty message of the agent."""
        level.append(DraftMessage(part.message_id, "assistant"))

    def open_text(self, within: str | None, message_id: str) -> list[str] | None:
        """The text at the end of a message, in chunks, or None when there is no such message."""
        level = self.session if within is None else self.run(within)
        place = level.find_message(message_id) if level else -1
        return level.thawed(place).open_text() if level and place >= 0 else None

    def reasoning(self, level: Level, part: Reasoning) -> None:
        """A thought, in its place in its message."""
        self._added(level, part.message_id, ReasoningPart(part.text, part.provider_metadata))

    def tool_call(self, level: Level, part: ToolCall) -> None:
        """A call that runs, at the end of its message."""
        call = ToolPart(part.id, part.name, part.input, "running", UNSET, None, None, None, part.provider_metadata)
        place = self._added(level, part.message_id, call)
        if place is None:
            return
        level.added(*place, call)
        if self._runs or self._delegates is not None:
            self._delegated(level, place, call)
        if self._open is not None:
            self._open.add(level.node(*place))

    def _added(self, level: Level, message_id: str, part: AgentPart) -> tuple[int, int] | None:
        place = level.find_message(message_id)
        if place < 0:
            return None
        parts = level.thawed(place).parts
        parts.append(part)
        return place, len(parts) - 1

    def end_call(self, level: Level, part: ToolResult | ToolError) -> None:
        """An outcome, for the newest open call with its id, else the newest."""
        place = level.find_call(part.id)
        if place is not None:
            m, p = place
            call = level.messages[m].parts[p]
            assert type(call) is ToolPart
            changed = ended(call, part)
            if changed is not call:
                level.thawed(m).parts[p] = changed

    def step_finish(self, level: Level, part: StepFinish) -> None:
        """Nothing shows of a step."""

    def end_run(self, level: Level, part: Finish | RunError) -> None:
        """What is open in this run is cancelled; the session's own run also gives the session its status."""
        trigger = finish_trigger(part)
        self._cancel_open(level, trigger)
        if level is self.session:
            self._status = SESSION_NEXT[self._status, trigger]
            if type(part) is RunError:
                self._error = SessionError(part.error, part.code)

    # ---- calls at any depth ----

    def run(self, within: str) -> Level | None:
        """The nested run behind the newest delegate call with that id."""
        level = self._runs.get(within)
        if level is None:
            owner = self._owner(within)
            if owner is not None:
                level = self._runs[within] = owner.level.run_of(owner)
        return level

    def _owner(self, within: str) -> Call | None:
        if self._delegates is None:
            if self._may_search():
                return next(calls_inside(self.session, lambda call: call.id == within and is_delegate(call)), None)
            self._delegates = Rows(Call.is_there)
            for call in [*calls_inside(self.session, is_delegate)][::-1]:
                self._delegates.add(call.seen().id, call)
        return self._delegates.newest(within)

    def _delegated(self, level: Level, place: tuple[int, int], call: ToolPart) -> None:
        """A call was added: when it is a delegate call, it may be the one that ``within`` means from now on."""
        if is_delegate(call):
            self._runs.pop(call.id, None)
            if self._delegates is not None:
                self._delegates.add(call.id, level.node(*place))

    def _open_calls(self) -> OpenCalls:
        if self._open is None:
            self._open = OpenCalls()
            for call in [*calls_inside(self.session, is_open)][::-1]:
                self._open.add(call)
        return self._open

    def _may_search(self) -> bool:
        """A few lookups search the whole session, newest first; who asks more often is better off with an index."""
        self._searches -= 1
        return self._searches >= 0

    def _cancel_open(self, level: Level, trigger: Trigger) -> None:
        if TOOL_CALL_NEXT["running", trigger] != "running":
            calls = self._open_calls()
            for call in calls.take_all() if level is self.session else calls.take_inside(level):
                call.put(cancelled(call.seen(), trigger))


_ACTIONS: Mapping[type, Callable[[Draft, Any], None]] = ByKind(
    {
        Send: Draft.send,
        ToolPhase: Draft.tool_phase,
        Stop: Draft.stop,
        Retry: Draft.retry,
        Reset: Draft.reset,
    }
)

_PARTS: Mapping[type, Callable[[Draft, Level, Any], None]] = ByKind(
    {
        MessageStart: Draft.message_start,
        Reasoning: Draft.reasoning,
        ToolCall: Draft.tool_call,
        ToolResult: Draft.end_call,
        ToolError: Draft.end_call,
        StepFinish: Draft.step_finish,
        Finish: Draft.end_run,
        RunError: Draft.end_run,
    }
)
