"""What changed between two states: ``diff(before, after)``.

Of one session or of two. Messages belong together by id and role, calls by id, and where an id is there more than
once, the first with the first, the second with the second; text and reasoning, which have no ids, by what stands
between the same calls. States that share objects, as those of one log do, are compared by identity first: the time
is that of what changed, and of one look at every message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from ..codec.values import same_json
from ..model import AgentMessage, AgentPart, ReasoningPart, SessionState, TextPart, ToolPart
from ._alignment import Pairs, aligned, by_occurrence, increasing
from .edits import json_edits, text_edits
from .operations import (
    CallPlace,
    ChangeCall,
    Changed,
    ChangeMessage,
    ChangeReasoning,
    ChangeText,
    Diff,
    ErrorChanged,
    InsertMessage,
    InsertPart,
    LevelDiff,
    MessageOperation,
    MoveMessage,
    MovePart,
    PartOperation,
    RemoveMessage,
    RemovePart,
    RunChanged,
)

__all__ = ("diff",)

_Messages: TypeAlias = "tuple[AgentMessage, ...]"
_Parts: TypeAlias = "tuple[AgentPart, ...]"


class _Level(NamedTuple):
    """Two rows of messages that belong together, and the call that both are behind."""

    call: CallPlace | None
    before: _Messages
    after: _Messages


def diff(before: SessionState, after: SessionState) -> Diff:
    """The operations that make ``after`` of ``before``, exactly (see ``apply``); an empty diff when they are equal.

    Equal means: the same on the wire, number spelling and key order included. Deterministic.
    """
    status = None if before.status == after.status else Changed(before.status, after.status)
    error = None if before.error == after.error else ErrorChanged(before.error, after.error)
    todo = [_Level(None, before.messages, after.messages)]
    operations: list[tuple[MessageOperation, ...]] = []
    for number, level in enumerate(todo):  # which grows on the way
        operations.append(_messages(level.before, level.after, number, todo))
    return Diff(status, error, _changed_levels(todo, operations))


def _changed_levels(
    levels: Sequence[_Level], operations: Sequence[tuple[MessageOperation, ...]]
) -> tuple[LevelDiff, ...]:
    """The levels in which something changed, and those around them, with new numbers."""
    wanted = [bool(each) for each in operations]
    for number in range(len(levels) - 1, 0, -1):
        call = levels[number].call
        if wanted[number] and call is not None:
            wanted[call.level] = True
    numbers: dict[int, int] = {}
    kept: list[LevelDiff] = []
    for number, (call, _, _) in enumerate(levels):
        if wanted[number]:
            numbers[number] = len(kept)
            if call is not None:
                call = CallPlace(numbers[call.level], call.message, call.part, call.id, call.name)
            kept.append(LevelDiff(call, operations[number]))
    return tuple(kept)


# ---- rows, of messages or of parts ----------------------------------------------------------------------

_T = TypeVar("_T")


class _Row(NamedTuple):
    """How two rows belong together: places before that are gone, and every place after with the one before, if any.

    Ends at which the very same objects stand are left out.
    """

    gone: list[int]
    places: list[tuple[int | None, int]]
    moved: frozenset[int]


def _row(
    before: Sequence[_T],
    after: Sequence[_T],
    kin: Callable[[_T, _T], bool],
    alike: Callable[[_T, _T], bool],
    match: _Match[_T],
) -> _Row:
    """Entries that are alike at both ends belong together; ``match`` tells about those between the ends.

    So do such that may belong together (``kin``) and have the very same object behind them: a change far back in a
    long row costs no more than one at its end.
    """
    shorter = min(len(before), len(after))
    start = end = 0
    while start < shorter:
        one, other = before[start], after[start]
        if one is not other and not alike(one, other):
            follow = start + 1
            if follow == shorter or before[follow] is not after[follow] or not kin(one, other):
                break
        start += 1
    while end < shorter - start and (before[-1 - end] is after[-1 - end] or alike(before[-1 - end], after[-1 - end])):
        end += 1
    b_end, a_end = len(before) - end, len(after) - end
    pairs, stays = match(before[start:b_end], after[start:a_end]) if start < max(b_end, a_end) else ([], [])
    partner = {start + a: start + b for b, a in pairs}
    places: list[tuple[int | None, int]] = [(i, i) for i in range(start) if before[i] is not after[i]]
    places += [(partner.get(a), a) for a in range(start, a_end)]
    shift = len(before) - len(after)
    places += [(a + shift, a) for a in range(a_end, len(after)) if before[a + shift] is not after[a]]
    gone = sorted(set(range(start, b_end)).difference(partner.values()))
    return _Row(gone, places, frozenset(start + a for _, a in set(pairs).difference(stays)))


_Match: TypeAlias = "Callable[[Sequence[_T], Sequence[_T]], tuple[Pairs, Pairs]]"
"""Two rows in; the pairs that belong together, and those of them that did not move."""

# ---- messages ---------------------------------------------------------------------------------------------


def _messages(before: _Messages, after: _Messages, number: int, todo: list[_Level]) -> tuple[MessageOperation, ...]:
    if before is after:
        return ()
    gone, places, moved = _row(before, after, _kin_messages, _alike_messages, _match_messages)
    found: list[MessageOperation] = [RemoveMessage(at, before[at]) for at in gone]
    for at, to in places:
        message = after[to]
        if at is None:
            found.append(InsertMessage(to, message))
            continue
        if to in moved:
            found.append(MoveMessage(at, to, message.id, message.role))
        if before[at] is not message:
            parts = _parts(before[at].parts, message.parts, (number, at), todo)
            if parts:
                found.append(ChangeMessage(at, message.id, message.role, parts))
    return tuple(found)


def _match_messages(before: Sequence[AgentMessage], after: Sequence[AgentMessage]) -> tuple[Pairs, Pairs]:
    pairs = by_occurrence(((each.id, each.role) for each in before), ((each.id, each.role) for each in after))
    return pairs, increasing(pairs)


def _kin_messages(one: AgentMessage, other: AgentMessage) -> bool:
    return one.id == other.id and one.role == other.role


def _alike_messages(one: AgentMessage, other: AgentMessage) -> bool:
    """Whether two messages are the same at first sight: what their nested runs say is not looked at."""
    return (
        _kin_messages(one, other)
        and len(one.parts) == len(other.parts)
        and all(a is b or _alike_parts(a, b) for a, b in zip(one.parts, other.parts, strict=True))
    )


# ---- parts ------------------------------------------------------------------------------------------------


def _parts(before: _Parts, after: _Parts, message: tuple[int, int], todo: list[_Level]) -> tuple[PartOperation, ...]:
    """The changes of a message, told by its level's number and its place there; nested runs are put off."""
    if before is after:
        return ()
    gone, places, moved = _row(before, after, _kin_parts, _alike_parts, _match_parts)
    found: list[PartOperation] = [RemovePart(at, before[at]) for at in gone]
    for at, to in places:
        part = after[to]
        if at is None:
            found.append(InsertPart(to, part))
            continue
        old = before[at]
        if type(part) is ToolPart and type(old) is ToolPart:
            if to in moved:
                found.append(MovePart(at, to, part.id))
            found += _changed_call(at, old, part)
            if old.agent and part.agent and old.agent.id == part.agent.id:
                place = CallPlace(message[0], message[1], at, old.id, old.name)
                todo.append(_Level(place, old.agent.messages, part.agent.messages))
        elif type(part) is TextPart and type(old) is TextPart:
            edits = text_edits(old.text, part.text)
            found += [ChangeText(at, edits)] if edits else []
        elif type(part) is ReasoningPart and type(old) is ReasoningPart:
            changed = ChangeReasoning(
                at, text_edits(old.text, part.text), json_edits(old.provider_metadata, part.provider_metadata)
            )
            found += [changed] if changed.edits or changed.provider_metadata else []
    return tuple(found)


def _match_parts(before: Sequence[AgentPart], after: Sequence[AgentPart]) -> tuple[Pairs, Pairs]:
    """Calls by their ids; between those that stayed, what says the same, then what is of the same kind."""
    old, new = _calls(before), _calls(after)
    calls = [(old[b][0], new[a][0]) for b, a in by_occurrence((id_ for _, id_ in old), (id_ for _, id_ in new))]
    stays = increasing(calls)
    pairs: Pairs = []
    for (b, a), (b_end, a_end) in _between(stays, len(before), len(after)):
        pairs += _match_words(before, after, range(b, b_end), range(a, a_end))
    return calls + pairs, stays + pairs


def _match_words(before: Sequence[AgentPart], after: Sequence[AgentPart], old: range, new: range) -> Pairs:
    """The text and reasoning parts at those places."""
    b = [place for place in old if type(before[place]) is not ToolPart]
    a = [place for place in new if type(after[place]) is not ToolPart]
    same = aligned([_said(before[place]) for place in b], [_said(after[place]) for place in a])
    pairs = same.copy()
    for (x, y), (x_end, y_end) in _between(same, len(b), len(a)):
        kinds = by_occurrence((type(before[at]) for at in b[x:x_end]), (type(after[at]) for at in a[y:y_end]))
        pairs += [(x + i, y + j) for i, j in increasing(kinds)]
    return [(b[i], a[j]) for i, j in pairs]


def _between(pairs: Pairs, before: int, after: int) -> Iterable[tuple[tuple[int, int], tuple[int, int]]]:
    """The stretches around and between pairs that do not cross: where each starts and ends in both rows."""
    starts = [(0, 0), *((b + 1, a + 1) for b, a in pairs)]
    return zip(starts, [*pairs, (before, after)], strict=True)


def _calls(parts: Sequence[AgentPart]) -> list[tuple[int, str]]:
    return [(place, part.id) for place, part in enumerate(parts) if type(part) is ToolPart]


def _said(part: AgentPart) -> tuple[type, str]:
    return type(part), "" if isinstance(part, ToolPart) else part.text


def _kin_parts(one: AgentPart, other: AgentPart) -> bool:
    return type(one) is type(other) and (not isinstance(one, ToolPart) or one.id == getattr(other, "id", None))


def _alike_parts(one: AgentPart, other: AgentPart) -> bool:
    """Whether two parts are the same at first sight: what a nested run says is not looked at."""
    if type(one) is ToolPart and type(other) is ToolPart:
        return (
            one.id == other.id
            and (one.agent and one.agent.id) == (other.agent and other.agent.id)
            and not _changed_call(0, one, other)
        )
    if type(one) is ReasoningPart and type(other) is ReasoningPart:
        return one.text == other.text and same_json(one.provider_metadata, other.provider_metadata)
    return type(one) is TextPart and type(other) is TextPart and one.text == other.text


def _changed_call(at: int, old: ToolPart, new: ToolPart) -> tuple[ChangeCall, ...]:
    """What changed in a call, but for what its nested run says; nothing when nothing did."""
    if old is new:
        return ()
    run = None if (old.agent and old.agent.id) == (new.agent and new.agent.id) else RunChanged(old.agent, new.agent)
    made_in = json_edits(old.input, new.input)
    made_out = json_edits(old.output, new.output)
    metadata = json_edits(old.provider_metadata, new.provider_metadata)
    said = old.name, old.state, old.error, old.prompt
    if run is None and said == (new.name, new.state, new.error, new.prompt) and not (made_in or made_out or metadata):
        return ()
    changed = ChangeCall(
        at,
        old.id,
        old.name,
        _changed(old.name, new.name),
        _changed(old.state, new.state),
        made_in,
        made_out,
        _changed(old.error, new.error),
        _changed(old.prompt, new.prompt),
        run,
        metadata,
    )
    return (changed,)


def _changed(before: str | None, after: str | None) -> Changed | None:
    return None if before == after else Changed(before, after)
