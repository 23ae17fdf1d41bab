"""One action, one step: ``session_reducer(state, action)``.

The rules are those of the session contract. Total: it never raises on a typed action; what makes no sense changes
nothing. Whenever nothing changed, the very object that came in comes back, and what did not change is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ._utf16 import joined
from .actions import (
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
from .calls import (
    ByKind,
    calls_newest_first,
    cancelled,
    ended,
    find_newest,
    finish_trigger,
    is_delegate,
    is_open,
    phased,
    placed,
    with_run,
)
from .machine import SESSION_NEXT, TOOL_CALL_NEXT, Trigger
from .model import (
    EMPTY_SESSION,
    AgentMessage,
    AgentPart,
    ReasoningPart,
    SessionError,
    SessionState,
    SessionStatus,
    TextPart,
    ToolPart,
)
from .resumable import last_kept, resumable

__all__ = ("session_reducer",)

_Messages: TypeAlias = "tuple[AgentMessage, ...]"


def session_reducer(state: SessionState, action: SessionAction) -> SessionState:
    """The state after one action; the same object when nothing changed. Raises InvalidAction for what is no action."""
    return _ACTIONS[type(action)](state, action)


def _next(state: SessionState, messages: _Messages, status: SessionStatus, error: SessionError | None) -> SessionState:
    if messages is state.messages and status == state.status and error == state.error:
        return state
    return SessionState(messages, status, error)


# ---- actions ------------------------------------------------------------------------------------------


def _send(state: SessionState, action: Send) -> SessionState:
    message = AgentMessage(action.id, "user", (TextPart(joined(action.text)),))
    return SessionState((*state.messages, message), SESSION_NEXT[state.status, "send"])


def _part(state: SessionState, action: Part) -> SessionState:
    if action.within is not None:
        return _next(state, _within(state.messages, action.within, action.part), state.status, state.error)
    part = action.part
    messages = _PARTS[type(part)](state.messages, part)
    if type(part) is Finish:
        return _next(state, messages, SESSION_NEXT[state.status, finish_trigger(part)], state.error)
    if type(part) is RunError:
        error = SessionError(part.error, part.code)
        return _next(state, messages, SESSION_NEXT[state.status, "error"], error)
    return _next(state, messages, state.status, state.error)


def _within(messages: _Messages, call_id: str, part: Any) -> _Messages:
    path = find_newest(messages, lambda call: call.id == call_id and is_delegate(call))
    if path is None:
        return messages
    owner = path[-1][2]
    nested = owner.agent.messages if owner.agent else ()
    changed = _PARTS[type(part)](nested, part)
    return messages if changed is nested else placed(messages, path, with_run(owner, changed))


def _tool_phase(state: SessionState, action: ToolPhase) -> SessionState:
    path = find_newest(state.messages, lambda call: call.name == action.name and is_open(call))
    if path is None:
        return state
    call = path[-1][2]
    changed = phased(call, action)
    return state if changed is call else SessionState(placed(state.messages, path, changed), state.status, state.error)


def _stop(state: SessionState, action: Stop) -> SessionState:
    messages = _cancel_open(state.messages, "stop")
    return _next(state, messages, SESSION_NEXT[state.status, "stop"], state.error)


def _retry(state: SessionState, action: Retry) -> SessionState:
    if last_kept(state.messages) is None:
        return state
    return _next(state, resumable(state.messages), SESSION_NEXT[state.status, "retry"], None)


def _reset(state: SessionState, action: Reset) -> SessionState:
    empty = not state.messages and state.error is None and state.status == EMPTY_SESSION.status
    return state if empty else EMPTY_SESSION


# ---- stream parts, on the messages of one level -----------------------------------------------------------


def _message_start(messages: _Messages, part: MessageStart) -> _Messages:
    return (*messages, AgentMessage(part.message_id, "assistant", ()))


def _text_delta(messages: _Messages, part: TextDelta) -> _Messages:
    m = _find_message(messages, part.message_id)
    if m is None:
        return messages
    parts = messages[m].parts
    last = parts[-1] if parts else None
    if type(last) is not TextPart:
        return _with_parts(messages, m, (*parts, TextPart(joined(part.delta))))
    if not part.delta:
        return messages
    return _with_parts(messages, m, (*parts[:-1], TextPart(joined(last.text + part.delta))))


def _reasoning(messages: _Messages, part: Reasoning) -> _Messages:
    return _added(messages, part.message_id, ReasoningPart(part.text, part.provider_metadata))


def _tool_call(messages: _Messages, part: ToolCall) -> _Messages:
    call = ToolPart(part.id, part.name, part.input, "running", provider_metadata=part.provider_metadata)
    return _added(messages, part.message_id, call)


def _end_call(messages: _Messages, part: ToolResult | ToolError) -> _Messages:
    found: tuple[int, int, ToolPart] | None = None
    for step in calls_newest_first(messages):
        if step[2].id == part.id:
            if is_open(step[2]):
                found = step
                break
            found = found or step
    if found is None:
        return messages
    changed = ended(found[2], part)
    return messages if changed is found[2] else placed(messages, [found], changed)


def _step_finish(messages: _Messages, part: StepFinish) -> _Messages:
    return messages


def _run_ends(messages: _Messages, part: Finish | RunError) -> _Messages:
    return _cancel_open(messages, finish_trigger(part))


def _cancel_open(messages: _Messages, trigger: Trigger) -> _Messages:
    """Every open call, at every depth, after a trigger that may end it."""
    if TOOL_CALL_NEXT["running", trigger] == "running":
        return messages
    # Levels are listed from the outside in and rebuilt from the inside out.
    levels = [messages]
    inside: dict[tuple[int, int, int], int] = {}
    for number, level in enumerate(levels):
        for m, p, call in calls_newest_first(level):
            if call.agent is not None:
                inside[number, m, p] = len(levels)
                levels.append(call.agent.messages)
    for number in range(len(levels) - 1, -1, -1):
        changes: dict[int, dict[int, ToolPart]] = {}
        for m, p, call in calls_newest_first(levels[number]):
            nested = inside.get((number, m, p))
            changed = call
            if nested is not None and call.agent is not None and levels[nested] is not call.agent.messages:
                changed = with_run(call, levels[nested])
            if is_open(call):
                changed = cancelled(changed, trigger)
            if changed is not call:
                changes.setdefault(m, {})[p] = changed
        if changes:
            levels[number] = _exchanged(levels[number], changes)
    return levels[0]


def _exchanged(messages: _Messages, changes: dict[int, dict[int, ToolPart]]) -> _Messages:
    """The messages with other calls at those places: by index of message, by index of part."""
    changed = list(messages)
    for m, calls in changes.items():
        message = messages[m]
        parts = tuple(calls.get(p, part) for p, part in enumerate(message.parts))
        changed[m] = AgentMessage(message.id, message.role, parts)
    return tuple(changed)


def _find_message(messages: _Messages, message_id: str) -> int | None:
    for m in range(len(messages) - 1, -1, -1):
        if messages[m].id == message_id and messages[m].role == "assistant":
            return m
    return None


def _added(messages: _Messages, message_id: str, part: AgentPart) -> _Messages:
    m = _find_message(messages, message_id)
    return messages if m is None else _with_parts(messages, m, (*messages[m].parts, part))


def _with_parts(messages: _Messages, m: int, parts: tuple[AgentPart, ...]) -> _Messages:
    message = messages[m]
    return (*messages[:m], AgentMessage(message.id, message.role, parts), *messages[m + 1 :])


_ACTIONS: Mapping[type, Callable[[SessionState, Any], SessionState]] = ByKind(
    {
        Send: _send,
        Part: _part,
        ToolPhase: _tool_phase,
        Stop: _stop,
        Retry: _retry,
        Reset: _reset,
    }
)

_PARTS: Mapping[type, Callable[[_Messages, Any], _Messages]] = ByKind(
    {
        MessageStart: _message_start,
        TextDelta: _text_delta,
        Reasoning: _reasoning,
        ToolCall: _tool_call,
        ToolResult: _end_call,
        ToolError: _end_call,
        StepFinish: _step_finish,
        Finish: _run_ends,
        RunError: _run_ends,
    }
)
