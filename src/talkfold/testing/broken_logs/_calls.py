"""Faults of calls and sub-agents: outcomes missing, twice, or of nobody's call, and ids that mean two calls."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from msgspec.structs import replace

from ...actions import Finish, MessageStart, Part, RunError, Stop, TextDelta, ToolCall, ToolError, ToolPhase, ToolResult
from ...calls import calls_newest_first, find_newest, is_delegate
from ...model import DELEGATE_PREFIX, Json, SessionState, ToolPart
from ._places import (
    Broken,
    LogFault,
    Rows,
    amid,
    before,
    broken,
    changed,
    cut,
    end_of,
    keeper,
    one_of,
    open_calls,
    own,
    picked,
    put_in,
    said_by,
    turns,
)

__all__ = ("FAULTS",)

FAULTS: dict[str, LogFault] = {}
fault = keeper(FAULTS)


def _outcome(rows: Rows, at: int) -> ToolResult | ToolError | None:
    """The outcome of one of the session's own calls, that the row is."""
    part = own(rows[at])
    return part if isinstance(part, ToolResult | ToolError) else None


def _an_outcome(rows: Rows, rng: Random) -> tuple[int, ToolResult | ToolError] | None:
    """An outcome of a call that is open until then."""
    at = picked(rows, rng, lambda at, _: _outcome(rows, at) is not None)
    part = None if at is None else _outcome(rows, at)
    if at is None or part is None or part.id not in {call.id for call in open_calls(before(rows, at))}:
        return None
    return at, part


def _has_open(state: SessionState) -> bool:
    return bool(open_calls(state))


# ---- outcomes -------------------------------------------------------------------------------------------------


@fault("outcome-for-nobody", "outcome-without-call")
def outcome_for_nobody(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng)
    if found is None:
        return None
    errors = ToolError("nobody", "Error: no"), ToolError("nobody", "Error [cancelled]")
    part = one_of(rng, ToolResult("nobody", {}), *errors)
    return broken(put_in(rows, found[0], Part(part)), ("outcome-without-call", found[0]))


@fault("outcome-on-the-wrong-level", "outcome-on-wrong-level")
def outcome_on_the_wrong_level(rows: Rows, rng: Random) -> Broken | None:
    nested = [
        (at, row.action)
        for at, row in enumerate(rows)
        if type(row.action) is Part and row.action.within and isinstance(row.action.part, ToolResult | ToolError)
    ]
    if not nested:
        return None
    at, action = rng.choice(nested)
    return broken(put_in(rows, at, changed(rows[at], Part(action.part)), drop=1), ("outcome-on-wrong-level", at))


@fault("outcome-missing", "finish-over-open-call", "call-never-ended")
def outcome_missing(rows: Rows, rng: Random) -> Broken | None:
    last = turns(rows)[-1:]
    for turn in last:
        end = end_of(rows[turn.end])
        if not isinstance(end, Finish) or end.reason == "aborted" or turn.next != turn.end + 1:
            return None
        outcomes = [at for at in range(turn.begin, turn.end) if _outcome(rows, at) is not None]
        rng.shuffle(outcomes)
        for at in outcomes[:5]:
            part = _outcome(rows, at)
            made = [n for n in range(at) if isinstance(call := own(rows[n]), ToolCall) and part and call.id == part.id]
            if made and part and part.id in {call.id for call in open_calls(before(rows, at))}:
                kept = [*rows[:at], *rows[at + 1 :]]
                return broken(kept, ("finish-over-open-call", turn.end - 1), ("call-never-ended", made[-1]))
    return None


@fault("nested-outcome-missing", "call-outlives-delegate")
def nested_outcome_missing(rows: Rows, rng: Random) -> Broken | None:
    found: list[tuple[int, int]] = []
    for at, row in enumerate(rows):
        action = row.action
        if type(action) is not Part or not action.within or not isinstance(action.part, ToolResult | ToolError):
            continue
        for later in range(at + 1, len(rows)):
            after = rows[later].action
            if not isinstance(after, Part):
                break
            cancels = isinstance(after.part, RunError) or after.part == Finish("aborted")
            if cancels and after.within == action.within:
                break
            if isinstance(after.part, ToolResult | ToolError) and after.part.id == action.within:
                found.append((at, later))
                break
    if not found:
        return None
    at, later = rng.choice(found)
    return broken([*rows[:at], *rows[at + 1 :]], ("call-outlives-delegate", later - 1))


@fault("outcome-twice", "outcome-again")
def outcome_twice(rows: Rows, rng: Random) -> Broken | None:
    found = _an_outcome(rows, rng)
    return (
        None if found is None else broken(put_in(rows, found[0] + 1, rows[found[0]]), ("outcome-again", found[0] + 1))
    )


@fault("two-outcomes", "outcome-replaced")
def two_outcomes(rows: Rows, rng: Random) -> Broken | None:
    found = _an_outcome(rows, rng)
    if found is None:
        return None
    at, part = found
    other = one_of(rng, ToolResult(part.id, {"another": 1.5}), ToolError(part.id, "Error: another"))
    return broken(put_in(rows, at + 1, Part(other)), ("outcome-replaced", at + 1))


@fault("outcome-after-the-end", "outcome-after-end")
def outcome_after_the_end(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, _has_open)
    if found is None:
        return None
    at, call = found[0], rng.choice(open_calls(found[1]))
    end = one_of(rng, Finish("stop"), Finish("aborted"), Finish("max-steps"))
    late = cut(rows, at, Part(end), Part(ToolResult(call.id, {})))
    return broken(late, ("outcome-after-end", at + 1))


@fault("result-after-a-stop", "result-after-stop")
def result_after_a_stop(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, _has_open)
    if found is None:
        return None
    at, call = found[0], open_calls(found[1])[0]
    part = one_of(rng, ToolResult(call.id, {}), ToolError(call.id, "Error [failed] it did"))
    return broken(cut(rows, at, Stop(), Part(part), Part(Finish("aborted"))), ("result-after-stop", at + 1))


def _noted(name: str, code: str, meta: Mapping[str, Json]) -> None:
    @fault(name, code)
    def note(rows: Rows, rng: Random) -> Broken | None:
        found = _an_outcome(rows, rng)
        if found is None:
            return None
        return broken(put_in(rows, found[0], replace(rows[found[0]], meta={**meta}), drop=1), (code, found[0]))


_noted("outcome-of-an-earlier-run", "outcome-reused", {"reused": True})
_noted("a-persons-no", "approval-denied", {"answers": 1, "decision": "denied"})
_noted("nobody-answers", "approval-expired", {"answers": 1, "decision": "expired"})

# ---- ids and phases -------------------------------------------------------------------------------------------


@fault("open-id-used-again", "call-id-in-use")
def open_id_used_again(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, _has_open)
    if found is None:
        return None
    at, call = found[0], open_calls(found[1])[0]
    again = ToolCall(said_by(found[1])[-1].id, call.id, "search", {})
    return broken(put_in(rows, at, Part(again), Part(ToolResult(call.id, 1))), ("call-id-in-use", at))


@fault("ended-id-used-again", "call-id-again")
def ended_id_used_again(rows: Rows, rng: Random) -> Broken | None:
    def ended(state: SessionState) -> list[ToolPart]:
        still = {call.id for call in open_calls(state)}
        return [call for _, _, call in calls_newest_first(state.messages) if call.id not in still]

    found = amid(rows, rng, lambda state: bool(ended(state)))
    if found is None:
        return None
    at, call = found[0], rng.choice(ended(found[1]))
    again = ToolCall(said_by(found[1])[-1].id, call.id, "search", {})
    return broken(put_in(rows, at, Part(again), Part(ToolResult(call.id, 1))), ("call-id-again", at))


@fault("delegate-id-on-two-levels", "delegate-id-in-use")
def delegate_id_on_two_levels(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, lambda state: any(call.agent for call in open_calls(state)))
    if found is None:
        return None
    at = found[0]
    call = next(call for call in open_calls(found[1]) if call.agent)
    assert call.agent is not None
    inner = ToolCall(call.agent.messages[-1].id, call.id, f"{DELEGATE_PREFIX}clerk", {})
    return broken(put_in(rows, at, Part(inner, call.id)), ("delegate-id-in-use", at))


@fault("phase-for-nobody", "phase-without-call")
def phase_for_nobody(rows: Rows, rng: Random) -> Broken | None:
    at = rng.randrange(len(rows) + 1)
    phase = ToolPhase("nothing", rng.choice(["running", "awaiting-confirmation"]))
    return broken(put_in(rows, at, phase), ("phase-without-call", at))


@fault("phase-for-two", "phase-ambiguous")
def phase_for_two(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, _has_open)
    if found is None:
        return None
    at, call = found[0], rng.choice(open_calls(found[1]))
    beside = ToolCall(said_by(found[1])[-1].id, "beside", call.name, {})
    phases = (Part(beside), ToolPhase(call.name, "awaiting-confirmation", "Really?"), Part(ToolResult("beside", 1)))
    return broken(put_in(rows, at, *phases), ("phase-ambiguous", at + 1))


# ---- sub-agents -----------------------------------------------------------------------------------------------


@fault("inside-no-call", "within-unknown-call")
def inside_no_call(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng)
    if found is None:
        return None
    part = one_of(rng, MessageStart("x"), TextDelta("x", "y"), ToolResult("x", 1), Finish("stop"))
    return broken(put_in(rows, found[0], Part(part, "nobody")), ("within-unknown-call", found[0]))


@fault("inside-a-plain-call", "within-not-delegate")
def inside_a_plain_call(rows: Rows, rng: Random) -> Broken | None:
    def plain(state: SessionState) -> list[str]:
        calls = [call for _, _, call in calls_newest_first(state.messages)]
        return [call.id for call in calls if _delegate(state, call.id) is None]

    found = amid(rows, rng, lambda state: bool(plain(state)))
    if found is None:
        return None
    inside = Part(MessageStart("x"), rng.choice(plain(found[1])))
    return broken(put_in(rows, found[0], inside), ("within-not-delegate", found[0]))


@fault("inside-an-ended-call", "within-finished-call")
def inside_an_ended_call(rows: Rows, rng: Random) -> Broken | None:
    def ended(state: SessionState) -> list[str]:
        calls = [call for _, _, call in calls_newest_first(state.messages) if is_delegate(call)]
        meant = ((call.id, _delegate(state, call.id)) for call in calls)
        return [call_id for call_id, call in meant if call and call.state in ("done", "error")]

    found = amid(rows, rng, lambda state: bool(ended(state)))
    if found is None:
        return None
    inside = Part(MessageStart("x"), rng.choice(ended(found[1])))
    return broken(put_in(rows, found[0], inside), ("within-finished-call", found[0]))


def _delegate(state: SessionState, call_id: str) -> ToolPart | None:
    path = find_newest(state.messages, lambda call: call.id == call_id and is_delegate(call))
    return None if path is None else path[-1][2]


def _delegations(rows: Rows) -> list[tuple[int, int, str]]:
    """Sub-agents that answered: the indexes of their call and of its result, and the id."""
    made: dict[str, int] = {}
    found: list[tuple[int, int, str]] = []
    for at, row in enumerate(rows):
        part = own(row)
        if isinstance(part, ToolCall) and part.name.startswith(DELEGATE_PREFIX):
            made[part.id] = at
        elif isinstance(part, ToolResult) and part.id in made:
            found.append((made.pop(part.id), at, part.id))
        elif not isinstance(row.action, Part):
            made.clear()
    return found


@fault("sub-agent-missing", "delegate-without-run")
def sub_agent_missing(rows: Rows, rng: Random) -> Broken | None:
    found = _delegations(rows)
    if not found:
        return None
    first, last, call_id = rng.choice(found)
    inside = {call_id}
    kept = [*rows[: first + 1]]
    for row in rows[first + 1 : last]:
        action = row.action
        if type(action) is Part and action.within in inside:
            if isinstance(action.part, ToolCall):
                inside.add(action.part.id)
        elif type(action) is not ToolPhase:
            kept.append(row)
    return broken([*kept, *rows[last:]], ("delegate-without-run", len(kept)))


@fault("nested-end-missing", "nested-run-without-end")
def nested_end_missing(rows: Rows, rng: Random) -> Broken | None:
    found = [
        (at, last)
        for first, last, call_id in _delegations(rows)
        for at in range(first, last)
        if (action := rows[at].action) == Part(Finish("stop"), call_id) and type(action) is Part
    ]
    if not found:
        return None
    at, last = rng.choice(found)
    return broken([*rows[:at], *rows[at + 1 :]], ("nested-run-without-end", last - 1))
