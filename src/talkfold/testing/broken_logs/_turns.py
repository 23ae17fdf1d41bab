"""Faults of turns and messages: begun over each other, without an end, with parts too late or for nobody."""

from __future__ import annotations

from random import Random

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
    ToolResult,
)
from ...resumable import retry_plan
from ._places import (
    Broken,
    LogFault,
    Rows,
    amid,
    before,
    broken,
    cut,
    end_of,
    keeper,
    one_of,
    open_calls,
    own,
    put_in,
    said_by,
    turns,
)

__all__ = ("FAULTS",)

FAULTS: dict[str, LogFault] = {}
fault = keeper(FAULTS)

_NEW = Send("a-new-message", "And another thing")


@fault("agent-speaks-first", "turn-without-message")
def agent_speaks_first(rows: Rows, rng: Random) -> Broken | None:
    if len(rows) < 2 or type(rows[0].action) is not Send or own(rows[1]) is None:
        return None
    return broken(rows[1:], ("turn-without-message", 0))


@fault("sent-over-a-run", "send-over-run")
def sent_over_a_run(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng)
    return None if found is None else broken(put_in(rows, found[0], _NEW), ("send-over-run", found[0]))


@fault("retried-over-a-run", "retry-over-run")
def retried_over_a_run(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng)
    return None if found is None else broken(put_in(rows, found[0], Retry()), ("retry-over-run", found[0]))


@fault("reset-over-a-run", "run-without-end")
def reset_over_a_run(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng)
    return None if found is None else broken(put_in(rows, found[0], Reset()), ("run-without-end", found[0]))


@fault("sent-over-an-open-call", "finish-over-open-call", "send-over-open-call")
def sent_over_an_open_call(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, lambda state: bool(open_calls(state)))
    if found is None:
        return None
    at = found[0]
    return broken(
        put_in(rows, at, Part(Finish("stop")), _NEW), ("finish-over-open-call", at), ("send-over-open-call", at + 1)
    )


@fault("retried-too-early", "retry-without-message")
def retried_too_early(rows: Rows, rng: Random) -> Broken | None:
    return broken(put_in(rows, 0, Retry()), ("retry-without-message", 0))


@fault("retried-over-a-sub-agent", "retry-repeats-calls")
def retried_over_a_sub_agent(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, lambda state: bool(open_calls(state) and retry_plan(state.messages).at_risk))
    if found is None:
        return None
    return broken(cut(rows, found[0], Stop(), Retry()), ("retry-repeats-calls", found[0] + 1))


@fault("end-missing-at-the-end", "run-without-end")
def end_missing(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng)
    return None if found is None else broken(rows[: found[0]], ("run-without-end", found[0] - 1))


@fault("end-missing-before-another-turn", "send-over-run", "retry-over-run")
def end_missing_between(rows: Rows, rng: Random) -> Broken | None:
    found = [turn for turn in turns(rows) if turn.next < len(rows)]
    if not found:
        return None
    turn = rng.choice(found)
    code = "send-over-run" if type(rows[turn.next].action) is Send else "retry-over-run"
    return broken([*rows[: turn.end], *rows[turn.next :]], (code, turn.end))


@fault("said-nothing", "empty-reply")
def said_nothing(rows: Rows, rng: Random) -> Broken | None:
    found = [turn for turn in turns(rows) if end_of(rows[turn.end]) == Finish("stop")]
    if not found:
        return None
    turn = rng.choice(found)
    kept = [row for row in rows[turn.begin : turn.end] if not isinstance(own(row), TextDelta)]
    return broken([*rows[: turn.begin], *kept, *rows[turn.end :]], ("empty-reply", turn.begin + len(kept)))


@fault("sub-agent-said-nothing", "empty-reply")
def sub_agent_said_nothing(rows: Rows, rng: Random) -> Broken | None:
    ends = [
        (at, row.action.within)
        for at, row in enumerate(rows)
        if type(row.action) is Part and row.action.within is not None and row.action.part == Finish("stop")
    ]
    if not ends:
        return None
    at, within = rng.choice(ends)
    kept = [
        row
        for row in rows[:at]
        if not (type(row.action) is Part and row.action.within == within and isinstance(row.action.part, TextDelta))
    ]
    return broken([*kept, *rows[at:]], ("empty-reply", len(kept)))


@fault("part-after-the-end", "part-outside-turn")
def part_after_the_end(rows: Rows, rng: Random) -> Broken | None:
    found = [turn for turn in turns(rows) if end_of(rows[turn.end]) is not None]
    if not found:
        return None
    at = rng.choice(found).end + 1
    late: list[AgentStreamPart] = [MessageStart("late"), StepFinish(9)]
    late += [TextDelta(message.id, "late") for message in said_by(before(rows, at))[-1:]]
    return broken(put_in(rows, at, Part(rng.choice(late))), ("part-outside-turn", at))


@fault("ended-twice", "end-again")
def ended_twice(rows: Rows, rng: Random) -> Broken | None:
    found = [turn for turn in turns(rows) if end_of(rows[turn.end]) is not None]
    if not found:
        return None
    at = rng.choice(found).end + 1
    end = one_of(rng, Finish("stop"), Finish("aborted"), Finish("max-steps"), RunError("lost", "network"))
    return broken(put_in(rows, at, Part(end)), ("end-again", at))


@fault("text-after-a-stop", "part-after-stop")
def text_after_a_stop(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, lambda state: bool(said_by(state)))
    if found is None:
        return None
    at, state = found
    late = Part(TextDelta(said_by(state)[-1].id, "late"))
    return broken(cut(rows, at, Stop(), late, Part(Finish("aborted"))), ("part-after-stop", at + 1))


@fault("call-after-a-stop", "part-after-stop", "call-after-stop")
def call_after_a_stop(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, lambda state: bool(said_by(state)))
    if found is None:
        return None
    at, state = found
    made = Part(ToolCall(said_by(state)[-1].id, "a-late-call", "search", {}))
    log = cut(rows, at, Stop(), made, Part(ToolResult("a-late-call", {})), Part(Finish("aborted")))
    return broken(log, ("part-after-stop", at + 1), ("call-after-stop", at + 2))


# ---- messages -------------------------------------------------------------------------------------------------


@fault("message-id-used-twice", "message-id-again")
def message_id_used_twice(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng, lambda state: bool(state.messages))
    if found is None:
        return None
    at, state = found
    again = rng.choice(state.messages).id
    return broken(put_in(rows, at, Part(MessageStart(again))), ("message-id-again", at))


@fault("message-start-missing", "part-for-unknown-message")
def message_start_missing(rows: Rows, rng: Random) -> Broken | None:
    starts: list[tuple[int, int]] = []
    for at, row in enumerate(rows):
        if type(row.action) is Part and isinstance(row.action.part, MessageStart):
            within, wanted = row.action.within, row.action.part.message_id
            for later in range(at + 1, len(rows)):
                action = rows[later].action
                if type(action) is not Part or action.within != within:
                    continue
                part = action.part
                if isinstance(part, TextDelta | Reasoning | ToolCall) and part.message_id == wanted:
                    if not isinstance(part, TextDelta) or part.delta:
                        starts.append((at, later))
                        break
    if not starts:
        return None
    at, later = rng.choice(starts)
    return broken([*rows[:at], *rows[at + 1 :]], ("part-for-unknown-message", later - 1))


@fault("part-for-nobody", "part-for-unknown-message")
def part_for_nobody(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng)
    if found is None:
        return None
    part = one_of(rng, TextDelta("nobody", "x"), Reasoning("nobody", ""), ToolCall("nobody", "c-nobody", "search", {}))
    return broken(put_in(rows, found[0], Part(part)), ("part-for-unknown-message", found[0]))


@fault("part-for-the-person", "part-for-user-message")
def part_for_the_person(rows: Rows, rng: Random) -> Broken | None:
    found = amid(rows, rng)
    if found is None:
        return None
    at, state = found
    theirs = [message.id for message in state.messages if message.role == "user"]
    if not theirs:
        return None
    wanted = rng.choice(theirs)
    part = one_of(rng, TextDelta(wanted, "x"), Reasoning(wanted, "x"), ToolCall(wanted, "c-theirs", "search", {}))
    return broken(put_in(rows, at, Part(part)), ("part-for-user-message", at))
