"""A diff, applied: ``apply(before, diff(before, after)) == after``, exactly.

What no operation concerns is shared with the state that came in. A diff that was made for another state is refused
wherever the two can be told apart, never applied halfway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar, cast

from ..errors import InvalidArgument
from ..model import AgentMessage, AgentPart, AgentRun, ReasoningPart, SessionState, SessionStatus, TextPart, ToolPart
from ..model import ToolCallState as CallState
from .edits import with_json_edits, with_text_edits
from .operations import (
    ChangeCall,
    Changed,
    ChangeMessage,
    ChangeReasoning,
    ChangeText,
    Diff,
    InsertMessage,
    InsertPart,
    LevelDiff,
    MessageOperation,
    MoveMessage,
    MovePart,
    PartOperation,
    RemoveMessage,
    RemovePart,
)

__all__ = ("apply",)

_Messages: TypeAlias = "tuple[AgentMessage, ...]"
_Runs: TypeAlias = "dict[int, dict[int, _Messages]]"
"""New messages of nested runs: by index of message, by index of part."""

_T = TypeVar("_T")


def apply(before: SessionState, diff: Diff) -> SessionState:
    """The state after the diff; the state itself when the diff is empty.

    Raises InvalidArgument when the diff was made for another state: what it removes or changes is not there.
    """
    if not diff:
        return before
    rows = _rows_before(before, diff.levels)
    runs: list[_Runs] = [{} for _ in rows]
    for number in range(len(rows) - 1, -1, -1):
        rows[number] = _level(rows[number], diff.levels[number].messages, runs[number])
        call = diff.levels[number].call
        if call is not None:
            runs[call.level].setdefault(call.message, {})[call.part] = rows[number]
    error = before.error
    if diff.error is not None:
        _must(error == diff.error.before, "the session's error is another")
        error = diff.error.after
    status = cast("SessionStatus", _word(before.status, diff.status))
    return SessionState(rows[0] if rows else before.messages, status, error)


def _rows_before(before: SessionState, levels: Sequence[LevelDiff]) -> list[_Messages]:
    rows: list[_Messages] = []
    for number, level in enumerate(levels):
        call = level.call
        _must((number == 0) == (call is None), "its first level, and only that, is the session's own")
        if call is None:
            rows.append(before.messages)
            continue
        _must(0 <= call.level < number, "a level stands before the one around it")
        part = _entry(_entry(rows[call.level], call.message).parts, call.part)
        if type(part) is not ToolPart or part.id != call.id or part.agent is None:
            raise _unfit(f"there is no run behind {call.id!r}")
        rows.append(part.agent.messages)
    return rows


# ---- rows -------------------------------------------------------------------------------------------------


def _level(row: _Messages, operations: Iterable[MessageOperation], runs: _Runs) -> _Messages:
    changes: dict[int, tuple[PartOperation, ...]] = dict.fromkeys(runs, ())
    gone: set[int] = set()
    moved: dict[int, int] = {}
    new: dict[int, AgentMessage] = {}
    for operation in operations:
        if isinstance(operation, InsertMessage):
            new[operation.to] = operation.message
            continue
        message = _entry(row, operation.at)
        known = operation.message if isinstance(operation, RemoveMessage) else operation
        _must((message.id, message.role) == (known.id, known.role), f"message {operation.at} is not {known.id!r}")
        if isinstance(operation, ChangeMessage):
            changes[operation.at] = operation.parts
        elif isinstance(operation, MoveMessage):
            moved[operation.to] = operation.at
        else:
            gone.add(operation.at)
    entries = list(row)
    for at, parts in changes.items():
        message = row[at]
        entries[at] = AgentMessage(message.id, message.role, _parts(message.parts, parts, runs.get(at, {})))
    return _arranged(entries, gone, moved, new)


def _parts(
    row: tuple[AgentPart, ...], operations: Iterable[PartOperation], runs: Mapping[int, _Messages]
) -> tuple[AgentPart, ...]:
    entries = list(row)
    gone: set[int] = set()
    moved: dict[int, int] = {}
    new: dict[int, AgentPart] = {}
    for operation in operations:
        if isinstance(operation, InsertPart):
            new[operation.to] = operation.part
            continue
        at = operation.at
        part = _entry(row, at)
        if isinstance(operation, RemovePart):
            _must(type(part) is type(operation.part), f"part {at} is of another kind")
            gone.add(at)
        elif isinstance(operation, MovePart):
            _must(type(part) is ToolPart and part.id == operation.id, f"part {at} is not call {operation.id!r}")
            moved[operation.to] = at
        elif isinstance(operation, ChangeCall):
            entries[at] = _call(part, operation)
        elif isinstance(operation, ChangeText):
            entries[at] = _text(part, operation)
        else:
            entries[at] = _reasoning(part, operation)
    for at, messages in runs.items():
        call = entries[at]
        if type(call) is not ToolPart or call.agent is None:
            raise _unfit(f"part {at} has no run any more")
        entries[at] = _with_run(call, AgentRun(call.agent.id, messages))
    return _arranged(entries, gone, moved, new)


def _arranged(entries: Sequence[_T], gone: set[int], moved: Mapping[int, int], new: Mapping[int, _T]) -> tuple[_T, ...]:
    """The row after: what is new or moved stands where it is said, and what stays fills the rest in its order."""
    if not gone and not moved and not new:
        return tuple(entries)
    away = gone.union(moved.values())
    count = len(entries) - len(gone) + len(new)
    named = len(moved) + len(new)
    _must(
        len(away) == len(gone) + len(moved)
        and len(moved.keys() | new.keys()) == named
        and all(0 <= to < count for to in (*moved, *new)),
        "an entry has two places, or a place has two entries",
    )
    stays = (entry for at, entry in enumerate(entries) if at not in away)
    row: list[_T] = []
    for to in range(count):
        if to in new:
            row.append(new[to])
        else:
            row.append(entries[moved[to]] if to in moved else next(stays))
    return tuple(row)


# ---- parts ------------------------------------------------------------------------------------------------


def _text(part: AgentPart, change: ChangeText) -> TextPart:
    if type(part) is not TextPart:
        raise _unfit(f"part {change.at} is no text")
    return TextPart(with_text_edits(part.text, change.edits))


def _reasoning(part: AgentPart, change: ChangeReasoning) -> ReasoningPart:
    if type(part) is not ReasoningPart:
        raise _unfit(f"part {change.at} is no reasoning")
    return ReasoningPart(
        with_text_edits(part.text, change.edits), with_json_edits(part.provider_metadata, change.provider_metadata)
    )


def _call(part: AgentPart, change: ChangeCall) -> ToolPart:
    if type(part) is not ToolPart or part.id != change.id:
        raise _unfit(f"part {change.at} is not call {change.id!r}")
    agent = part.agent
    if change.agent is not None:
        before = change.agent.before
        _must((agent and agent.id) == (before and before.id), f"the run behind {change.id!r} is another agent's")
        agent = change.agent.after
    return ToolPart(
        part.id,
        _word(part.name, change.renamed) or "",
        with_json_edits(part.input, change.input),
        cast("CallState", _word(part.state, change.state)),
        with_json_edits(part.output, change.output),
        _word(part.error, change.error),
        _word(part.prompt, change.prompt),
        agent,
        with_json_edits(part.provider_metadata, change.provider_metadata),
    )


def _with_run(call: ToolPart, run: AgentRun) -> ToolPart:
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


def _word(text: str | None, change: Changed | None) -> str | None:
    if change is None:
        return text
    _must(text == change.before, f"{change.before!r} is {text!r}")
    return change.after


# ---- refusals ---------------------------------------------------------------------------------------------


def _entry(row: Sequence[_T], at: int) -> _T:
    _must(0 <= at < len(row), f"there is nothing at {at}")
    return row[at]


def _must(fits: bool, reason: str) -> None:
    if not fits:
        raise _unfit(reason)


def _unfit(reason: str) -> InvalidArgument:
    return InvalidArgument("diff", f"it was made for another state: {reason}")
