"""Faults of the rows themselves, and of who writes them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from msgspec.structs import replace

from ...actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Send,
    StepFinish,
    Stop,
    TextDelta,
    ToolError,
    ToolResult,
)
from ...audit.findings import AGENT_FAULTS
from ...model import Json
from ._places import (
    Broken,
    LogFault,
    Rows,
    amid,
    broken,
    changed,
    cut,
    end_of,
    keeper,
    numbered,
    one_of,
    own,
    picked,
    put_in,
    row_of,
    turns,
    with_runs,
)

__all__ = ("FAULTS",)

FAULTS: dict[str, LogFault] = {}
fault = keeper(FAULTS)

_HALF = "\ud83d"


@fault("row-missing", "number-gap")
def row_missing(rows: Rows, rng: Random) -> Broken | None:
    if len(rows) < 2:
        return None
    at = rng.randrange(len(rows) - 1)
    kept = numbered(rows)
    return Broken([*kept[:at], *kept[at + 1 :]], frozenset({("number-gap", at + 2)}))


@fault("row-twice", "number-again")
def row_twice(rows: Rows, rng: Random) -> Broken | None:
    at = rng.randrange(len(rows))
    kept = numbered(rows)
    return Broken([*kept[: at + 1], *kept[at:]], frozenset({("number-again", at + 1)}))


@fault("clock-goes-back", "time-back")
def clock_goes_back(rows: Rows, rng: Random) -> Broken | None:
    if len(rows) < 2:
        return None
    at = rng.randrange(1, len(rows))
    newest = max(row.time for row in rows[:at])
    return broken([*rows[:at], *(replace(row, time=newest - 60_001) for row in rows[at:])], ("time-back", at))


@fault("half-a-character", "lone-surrogate")
def half_a_character(rows: Rows, rng: Random) -> Broken | None:
    at = picked(rows, rng, lambda _, row: type(row.action) is Send or isinstance(own(row), TextDelta | ToolResult))
    if at is None:
        return None
    action = rows[at].action
    if isinstance(action, Send):
        half = changed(rows[at], Send(action.id, f"{action.text}{_HALF}"))
    else:
        match own(rows[at]):
            case TextDelta(message_id):
                half = changed(rows[at], Part(TextDelta(message_id, f"a{_HALF}b")))
            case ToolResult(call_id):
                half = changed(rows[at], Part(ToolResult(call_id, [{"text": [_HALF]}])))
            case _:
                return None
    return broken(put_in(rows, at, half, drop=1), ("lone-surrogate", at))


@fault("half-a-character-at-the-end-of-a-delta", "lone-surrogate")
def half_at_the_end(rows: Rows, rng: Random) -> Broken | None:
    at = picked(rows, rng, lambda _, row: isinstance(own(row), TextDelta))
    part = None if at is None else own(rows[at])
    if at is None or not isinstance(part, TextDelta):
        return None
    deltas = (TextDelta(part.message_id, _HALF), TextDelta(part.message_id, "x"))
    return broken(put_in(rows, at, *map(Part, deltas)), ("lone-surrogate", at))


@fault("flood-in-one-part", "huge-part")
def flood_in_one_part(rows: Rows, rng: Random) -> Broken | None:
    at = picked(rows, rng, lambda _, row: isinstance(own(row), TextDelta))
    part = None if at is None else own(rows[at])
    if at is None or not isinstance(part, TextDelta):
        return None
    huge = one_of(rng, Reasoning(part.message_id, "x" * 262_144), TextDelta(part.message_id, "x" * 262_144))
    return broken(put_in(rows, at, Part(huge)), ("huge-part", at))


# ---- who writes -----------------------------------------------------------------------------------------------


def _settling(run: str | None) -> dict[str, Json]:
    return {"run": run, "actor": "talkfold", "meta": {"cause": "its process is gone"}}


@fault("process-dies", "run-settled")
def process_dies(rows: Rows, rng: Random) -> Broken | None:
    rows = with_runs(rows)
    found = amid(rows, rng)
    if found is None:
        return None
    at = found[0]
    stop = row_of(Stop(), rows[at - 1], **_settling(rows[at - 1].run))
    return broken(cut(rows, at, stop), ("run-settled", at))


@fault("settled-twice", "settled-again")
def settled_twice(rows: Rows, rng: Random) -> Broken | None:
    rows = with_runs(rows)
    found = amid(rows, rng)
    if found is None or rows[found[0] - 1].run is None:
        return None
    at = found[0]
    stop = row_of(Stop(), rows[at - 1], **_settling(rows[at - 1].run))
    return broken(cut(rows, at, stop, stop), ("settled-again", at + 1))


@fault("dead-process-writes-on", "fenced-run-wrote")
def dead_process_writes_on(rows: Rows, rng: Random) -> Broken | None:
    rows = with_runs(rows)
    found = amid(rows, rng)
    if found is None or rows[found[0] - 1].run is None:
        return None
    at, run = found[0], rows[found[0] - 1].run
    late = row_of(Part(one_of(rng, StepFinish(7), Finish("aborted"), ToolError("c", "x"))), rows[at - 1])
    stop = row_of(Stop(), rows[at - 1], **_settling(run))
    another = row_of(Send("a-message-of-another", "Hello?"), rows[at - 1], run="another")
    written = [stop, *rng.choice([[], [another]]), late]
    return broken(cut(rows, at, *written), ("fenced-run-wrote", at + len(written) - 1))


@fault("ended-run-writes-on", "run-after-end")
def ended_run_writes_on(rows: Rows, rng: Random) -> Broken | None:
    rows = with_runs(rows)
    known = turns(rows)
    over = [turn for turn in known if end_of(rows[turn.end]) is not None and rows[turn.begin].run is not None]
    later = [(turn, other) for turn in over for other in known if other.begin > turn.end]
    if not later:
        return None
    turn, other = rng.choice(later)
    at = rng.randrange(other.begin + 1, other.end + 1)
    late = row_of(Part(StepFinish(7)), rows[at - 1], run=rows[turn.begin].run)
    return broken(put_in(rows, at, late), ("run-after-end", at))


@fault("two-runs-at-once", "runs-interleaved")
def two_runs_at_once(rows: Rows, rng: Random) -> Broken | None:
    rows = with_runs(rows)
    found = amid(rows, rng)
    if found is None or rows[found[0] - 1].run is None:
        return None
    at = found[0]
    other = row_of(Part(MessageStart("of-another-run")), rows[at - 1], run="another")
    return broken(put_in(rows, at, other), ("runs-interleaved", at))


def _noted(name: str, code: str, meta: Mapping[str, Json]) -> None:
    @fault(name, code)
    def note(rows: Rows, rng: Random) -> Broken | None:
        ends = [turn.end for turn in turns(rows) if end_of(rows[turn.end]) is not None]
        if not ends:
            return None
        at = rng.choice(ends)
        return broken(put_in(rows, at, replace(rows[at], meta={**meta}), drop=1), (code, at))


for _cause, _code in {"cancelled": "run-cancelled", "raised": "run-raised", "store": "run-store-failed"}.items():
    _noted(f"cause-{_cause}", _code, {"cause": _cause})
for _code in AGENT_FAULTS:
    _name = "a-new-one" if _code == "agent-fault" else _code
    _noted(
        f"adapter-{_name}", _code, {"faults": [{"code": _name, "count": 2, "text": "the agent did what it must not"}]}
    )
_noted("parts-left-out", "parts-dropped", {"dropped": 3})
