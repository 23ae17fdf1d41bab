"""A tool call's steps, and where calls stand: what the reducer and the fold both need, so that they cannot differ.

Nested runs make a conversation a tree of any depth, so nothing here recurses. *Newest first* means: the last message,
the last part first, and inside a delegate call its nested calls before the call itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from msgspec import UNSET

from .actions import Finish, RunError, ToolError, ToolPhase, ToolResult
from .codec.values import same_json
from .errors import InvalidAction
from .machine import OPEN, TOOL_CALL_NEXT, Trigger
from .model import DELEGATE_PREFIX, AgentMessage, AgentRun, Json, ToolPart

__all__ = (
    "CANCELLED_MARK",
    "ByKind",
    "Path",
    "calls_newest_first",
    "cancelled",
    "ended",
    "find_newest",
    "finish_trigger",
    "is_delegate",
    "is_open",
    "phased",
    "placed",
    "with_run",
)

CANCELLED_MARK = "Error [cancelled]"
"""A tool error whose text starts with this is a cancellation."""

_T = TypeVar("_T")


class ByKind(dict[type, _T]):
    """A table by the type of an action or of a part. What has no row, a plain dict above all, is no action."""

    def __missing__(self, kind: type) -> _T:
        raise InvalidAction("action", f"expected an action, got {kind.__name__}: decode_action makes one of JSON", "$")


Path: TypeAlias = "list[tuple[int, int, ToolPart]]"
"""Where a call stands: index of message, index of part, and the call there; from the session's level inwards."""


def ended(call: ToolPart, part: ToolResult | ToolError) -> ToolPart:
    """The call after a terminal part; the same object when it is there already. The later of two wins."""
    output: Json
    if type(part) is ToolResult:
        trigger, output, error = "tool-result", part.output, None
    else:
        assert type(part) is ToolError
        mark = part.error.startswith(CANCELLED_MARK)
        trigger, output, error = ("tool-error [cancelled]" if mark else "tool-error"), UNSET, part.error
    state = TOOL_CALL_NEXT[call.state, trigger]
    if state == call.state and error == call.error and call.prompt is None and same_json(output, call.output):
        return call
    return ToolPart(call.id, call.name, call.input, state, output, error, None, call.agent, call.provider_metadata)


def phased(call: ToolPart, phase: ToolPhase) -> ToolPart:
    """An open call in the phase's state, with the phase's prompt or none; the same object when it is so already."""
    state = TOOL_CALL_NEXT[call.state, f"toolPhase {phase.state}"]
    if state == call.state and phase.prompt == call.prompt:
        return call
    return ToolPart(
        call.id,
        call.name,
        call.input,
        state,
        call.output,
        call.error,
        phase.prompt,
        call.agent,
        call.provider_metadata,
    )


def cancelled(call: ToolPart, trigger: Trigger) -> ToolPart:
    """An open call after something that ends all of them. An ended call keeps no prompt."""
    state = TOOL_CALL_NEXT[call.state, trigger]
    return ToolPart(call.id, call.name, call.input, state, UNSET, None, None, call.agent, call.provider_metadata)


def finish_trigger(part: Finish | RunError) -> Trigger:
    """What the end of a run is to the machines."""
    return f"finish {part.reason}" if type(part) is Finish else "error"


def with_run(call: ToolPart, messages: tuple[AgentMessage, ...]) -> ToolPart:
    """A delegate call with these messages as its nested run; the run's id is the rest of the call's name."""
    run = AgentRun(call.agent.id if call.agent else call.name[len(DELEGATE_PREFIX) :], messages)
    return ToolPart(
        call.id,
        call.name,
        call.input,
        call.state,
        call.output,
        call.error,
        call.prompt,
        run,
        call.provider_metadata,
    )


def is_open(call: ToolPart) -> bool:
    """Whether the call has not ended."""
    return call.state in OPEN


def is_delegate(call: ToolPart) -> bool:
    """Whether a sub-agent's run is behind the call."""
    return call.name.startswith(DELEGATE_PREFIX)


def calls_newest_first(messages: Sequence[AgentMessage]) -> Iterator[tuple[int, int, ToolPart]]:
    """The calls of one level, newest first, each with its place."""
    for m in range(len(messages) - 1, -1, -1):
        parts = messages[m].parts
        for p in range(len(parts) - 1, -1, -1):
            part = parts[p]
            if type(part) is ToolPart:
                yield m, p, part


def find_newest(messages: Sequence[AgentMessage], wanted: Callable[[ToolPart], bool]) -> Path | None:
    """The path to the newest wanted call, at any depth."""
    levels = [calls_newest_first(messages)]
    path: Path = []
    while levels:
        step = next(levels[-1], None)
        if step is not None:
            path.append(step)
            agent = step[2].agent
            levels.append(calls_newest_first(agent.messages if agent else ()))
            continue
        levels.pop()
        if path:
            if wanted(path[-1][2]):
                return path
            path.pop()
    return None


def placed(messages: tuple[AgentMessage, ...], path: Path, call: ToolPart) -> tuple[AgentMessage, ...]:
    """The messages with another call at that place. All that is not on the way there is shared."""
    for depth in range(len(path) - 1, -1, -1):
        m, p, _ = path[depth]
        owner = path[depth - 1][2] if depth else None
        level = owner.agent.messages if owner and owner.agent else messages
        message = level[m]
        parts = (*message.parts[:p], call, *message.parts[p + 1 :])
        level = (*level[:m], AgentMessage(message.id, message.role, parts), *level[m + 1 :])
        if owner is None:
            return level
        call = with_run(owner, level)
    return messages
