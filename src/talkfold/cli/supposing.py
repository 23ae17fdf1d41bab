"""``whatif``: a log with some actions skipped, replaced or added, folded again. Nothing is changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

from msgspec import Raw

from ..audit.diff import diff
from ..audit.operations import Diff, encode_diff
from ..audit.whatif import Change, Insert, Replace, Skip, WhatIf, what_if
from ..codec import encode_state
from ..errors import CursorAhead, InvalidArgument
from ..model import EMPTY_SESSION, SessionState
from ..resumable import RetryPlan, retry_plan
from ..store.protocol import Session, SessionStore
from .altering import Altered, changes_of
from .changes import change_lines
from .feeding import fed, told_if_long
from .opening import find, opened
from .options import AtNumber, Form, SessionId, Where
from .output import Line, document, line, paint, say
from .plan import plan_json
from .wording import action_kind, action_text, count, row_text

__all__ = ("whatif",)

_AS_IT_WAS = Altered()

_TOLD = 10
"""How many actions without effect are named."""


async def whatif(
    session: SessionId,
    /,
    *,
    altered: Altered = _AS_IT_WAS,
    at: AtNumber = None,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Suppose that a log were another one: fold it without some actions, or with others, and compare.

    Tells the first action after which the conversation differs and why, how it differs there and at the end, which
    actions lose their effect by it (the result of a call that was never made), and what Retry would send instead.
    What the agent would have said, nobody knows: all other actions stay as they are. Nothing is changed.
    """
    if altered == _AS_IT_WAS:
        raise InvalidArgument("--skip", "nothing is supposed; say what to --skip…, --replace or --insert")
    async with opened(where) as store:
        found = await find(store, session, where)
        end = found.number if at is None else at
        if not 0 <= end <= found.number:
            raise CursorAhead(found.id, end, found.number)
        with told_if_long(end) as advance:
            changes = await fed(store, found, lambda rows: changes_of(altered, rows, end), last=end, advance=advance)
        with told_if_long(end, "folding") as advance:
            result = await fed(store, found, lambda rows: what_if(rows, changes), last=end, advance=advance)
        if form.json:
            document(_json(found, end, changes, result))
            return
        if result.first is None:
            say(f"Nothing would be different: {_supposed(changes)} makes no difference to {found.id} at {end}.")
            return
        there = EMPTY_SESSION
        if result.first:
            there = (await store.state(found.id, at=result.first, owner=found.owner)).state
        told = [each async for each in _told(store, found, changes, result)]
    paint(_lines(told, there, result, end))
    say("Nothing was changed.")


# ---- for programs ---------------------------------------------------------------------------------------


class _Retries(NamedTuple):
    """What Retry sends as it is, what it would send, and how that differs."""

    before: RetryPlan
    after: RetryPlan
    diff: Diff


def _retries(result: WhatIf) -> _Retries:
    before, after = retry_plan(result.before.messages), retry_plan(result.after.messages)
    return _Retries(before, after, diff(_sent(before), _sent(after)))


def _sent(plan: RetryPlan) -> SessionState:
    """The messages of a plan as a state, to be compared."""
    return SessionState(plan.messages, "idle")


def _json(session: Session, end: int, changes: Sequence[Change], result: WhatIf) -> dict[str, object]:
    retries = _retries(result)
    first: dict[str, object] = {}
    if result.first is not None and result.first_diff is not None:
        first = {"first": result.first, "firstDiff": Raw(encode_diff(result.first_diff))}
    return {
        "id": session.id,
        "number": end,
        "changes": changes,
        **first,
        "diff": Raw(encode_diff(result.diff)),
        "lost": result.lost,
        "gained": result.gained,
        "state": Raw(encode_state(result.after)),
        "retry": {
            "diff": Raw(encode_diff(retries.diff)),
            "before": plan_json(retries.before),
            "after": plan_json(retries.after),
        },
    }


# ---- for people -----------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """An action that matters, in words: its number, what has become of it, what it is."""

    number: int
    fate: str
    text: str


async def _told(
    store: SessionStore, session: Session, changes: Sequence[Change], result: WhatIf
) -> AsyncIterator[_Told]:
    """The action where it first differs, then those that lose or gain an effect by it."""
    named = [(result.first or 0, "")]
    named += [(number, "has no effect any more") for number in result.lost[:_TOLD]]
    named += [(number, "has an effect only now") for number in result.gained[:_TOLD]]
    for number, fate in named:
        text = "the start"
        if number:
            (row,) = await store.read(session.id, after=number - 1, limit=1, owner=session.owner)
            text = f"{action_kind(row.action)} {row_text(row)}".rstrip()
        yield _Told(number, fate or _why(changes, number), text)


def _why(changes: Sequence[Change], number: int) -> str:
    """What was supposed of the action with this number."""
    reasons: list[str] = []
    for change in changes:
        match change:
            case Skip(first, last) if first <= number <= (last or first):
                reasons.append("is skipped")
            case Replace(at, action) if at == number:
                reasons.append(f"is now: {action_kind(action)} {action_text(action)}".rstrip())
            case Insert(after, actions) if after == number:
                texts = (f"{action_kind(action)} {action_text(action)}".rstrip() for action in actions[:3])
                reasons.append(f"is followed by: {', '.join(texts)}{', …' if len(actions) > 3 else ''}")
            case _:
                pass
    return " and ".join(reasons) or "does something else after what was supposed before it"


def _supposed(changes: Sequence[Change]) -> str:
    """The changes in a few words."""
    skipped = sum((it.last or it.first) - it.first + 1 for it in changes if isinstance(it, Skip))
    inserted = sum(len(it.actions) for it in changes if isinstance(it, Insert))
    replaced = sum(isinstance(it, Replace) for it in changes)
    counts = (("skipping", skipped), ("replacing", replaced), ("inserting", inserted))
    return ", ".join(f"{word} {count(number, 'action')}" for word, number in counts if number)


def _lines(told: Sequence[_Told], there: SessionState, result: WhatIf, end: int) -> Iterator[Line]:
    first, *others = told
    yield line(("It first differs at ", ""), (str(first.number), "bold"), f": {first.text}, which {first.fate}")
    if result.first_diff is not None:
        yield from change_lines(there, result.first_diff, indent=2)
    for each in others:
        yield line(f"{each.text}  ", (each.fate, "yellow"), lead=(f"{each.number}  ", "bold"))
    left = sum(max(len(each) - _TOLD, 0) for each in (result.lost, result.gained))
    if left:
        yield line((f"and {left:,} more", "dim"))
    if result.diff == result.first_diff:
        yield line((f"At the end, after {end}, it is this very difference.", "bold"))
    elif result.diff:
        yield line((f"At the end, after {end}:", "bold"))
        yield from change_lines(result.before, result.diff, indent=2)
    else:
        yield line((f"At the end, after {end}, it is all the same again.", "bold"))
    retries = _retries(result)
    if retries.diff and retries.diff.levels == result.diff.levels:
        yield line(("What Retry sends would differ in the same way.", "bold"))
    elif retries.diff:
        yield line(("What Retry sends would differ:", "bold"))
        yield from change_lines(_sent(retries.before), retries.diff, indent=2)
    else:
        yield line(("Retry would send the same.", "bold"))
    risks = (len(retries.before.at_risk), len(retries.after.at_risk))
    if risks[0] != risks[1]:
        yield line(f"Finished calls that it may repeat: {risks[0]}, and then {risks[1]}.")
