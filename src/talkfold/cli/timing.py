"""``stats``: what sessions took and used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from ..audit.timings import Usage, timings
from ..errors import InvalidArgument, SessionErased, SessionNotFound
from ..store.protocol import Session, SessionStore
from .durations import duration
from .feeding import fed, told_if_long
from .opening import all_sessions, find, opened
from .options import RowForm, SessionId, Where
from .output import Column, Line, document, line, paint, record, say, table
from .progress import Advance
from .totals import ModelTotal, SlowStep, ToolTotal, Totals
from .wording import count

__all__ = ("stats",)


async def stats(
    session: SessionId | None = None,
    /,
    *,
    all_: Annotated[bool, Parameter(name="--all", help="Sum up every session.")] = False,
    slowest: Annotated[int, Parameter(help="Show so many of the slowest steps.", show_default=True)] = 5,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Sum up what a session took and used: runs, steps, calls by tool, tokens and cost.

    Times are those of the log, counted only forward. A step is what the model does from one answer to the next, its
    calls included. Tokens and cost are there where the log has them: as `usage` in the `meta` of its actions. With
    `--jsonl` each session has a line of its own.
    """
    if (session is None) is not all_:
        raise InvalidArgument("ID", "name one session, or say --all")
    if slowest < 0:
        raise InvalidArgument("--slowest", "0 is the least")
    at_once = form.jsonl and not form.json
    total = Totals(slowest)
    async with opened(where) as store:
        sessions = [await find(store, session, where)] if session is not None else []
        if session is None:
            sessions = [each async for each in all_sessions(store, where)]
        # A bar has stderr for itself: where rows are printed as they come, they show how far it is.
        with told_if_long(0 if at_once else sum(each.number for each in sessions)) as advance:
            done = 0
            for each in sessions:
                own = Totals(slowest) if at_once else total
                read = await _added(own, store, each, done, advance, gone_is_fine=all_)
                if at_once and read:
                    record({"id": each.id, **own.json()})
                done += each.number
    if form.json:
        document({**({} if all_ else {"id": sessions[0].id}), **total.json()})
    elif not at_once:
        _show(total, sessions, is_one=not all_)


async def _added(
    total: Totals, store: SessionStore, session: Session, done: int, advance: Advance, *, gone_is_fine: bool
) -> bool:
    """Read a session and add it; whether it was still there."""
    try:
        found = await fed(store, session, timings, advance=lambda number: advance(done + number))
    except (SessionErased, SessionNotFound):  # meanwhile, by somebody else
        if not gone_is_fine:
            raise
        return False
    total.add(session.id, session.number, found)
    return True


# ---- for people -----------------------------------------------------------------------------------------

_TOOLS: Sequence[Column[ToolTotal]] = (
    ("tool", lambda it: it.name),
    ("calls", lambda it: f"{it.calls:,}"),
    ("failed", lambda it: f"{it.failed:,}" if it.failed else ""),
    ("cancelled", lambda it: f"{it.cancelled:,}" if it.cancelled else ""),
    ("open", lambda it: f"{it.open:,}" if it.open else ""),
    ("median", lambda it: duration(it.median_ms)),
    ("longest", lambda it: duration(max(it.ms))),
    ("waited", lambda it: duration(it.waiting_ms) if it.waiting_ms else ""),
)
_ALWAYS = ("tool", "calls", "median", "longest")

_MODELS: Sequence[Column[ModelTotal]] = (
    ("model", lambda it: it.name or "(not named)"),
    ("answers", lambda it: f"{it.rows:,}"),
    ("tokens in", lambda it: _amount(it.usage.input_tokens)),
    ("out", lambda it: _amount(it.usage.output_tokens)),
    ("in all", lambda it: _amount(it.usage.total_tokens)),
    ("cost", lambda it: _amount(it.usage.cost)),
)

_STEPS: Sequence[Column[SlowStep]] = (
    ("session", lambda it: it.session),
    ("number", lambda it: str(it.step.first) if it.step.first == it.step.last else f"{it.step.first}-{it.step.last}"),
    ("took", lambda it: duration(it.ms)),
    ("first letter", lambda it: "" if it.step.first_text_ms is None else duration(it.step.first_text_ms)),
    ("model", lambda it: it.step.model or ""),
    ("tokens", lambda it: "" if it.step.usage is None else _amount(it.step.usage.total_tokens)),
)


def _amount(number: float | None) -> str:
    return "" if number is None else f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"


def _show(total: Totals, sessions: Sequence[Session], *, is_one: bool) -> None:
    if is_one:
        title = f"  {sessions[0].title}" if sessions[0].title else ""
        paint([line((sessions[0].id, "bold"), f"{title}  {count(total.actions, 'action')}")])
    else:
        paint([line((count(total.sessions, "session"), "bold"), f"  {count(total.actions, 'action')}")])
    paint(_summary(total))
    tools, slowest = total.tools, total.slowest
    if tools:
        paint([line()])
        shown = [each for each in _TOOLS if each[0] in _ALWAYS or any(map(each[1], tools))]
        table(shown, tools, elastic="tool", styles={"failed": "red", "cancelled": "magenta", "open": "yellow"})
    if total.models:
        paint([line()])
        table(_MODELS, total.models, elastic="model")
    if slowest and slowest[0].ms:
        paint([line(), line(("The slowest steps", "bold"))])
        shown_steps = [each for each in _STEPS if any(map(each[1], slowest)) and not (is_one and each[0] == "session")]
        table(shown_steps, slowest, elastic="number" if is_one else "session")
    if total.clock_back:
        say(f"{count(total.clock_back, 'time')} the clock went back; no time was counted there.")
    if total.unread_usage:
        say(f"The usage of {count(total.unread_usage, 'action')} could not be read, or only in part.")


def _summary(total: Totals) -> Iterator[Line]:
    for name, runs in (("runs", total.runs), ("sub-agents", total.agents)):
        if runs.number:
            ended = ", ".join(f"{number:,} {end}" for end, number in runs.ended.most_common())
            waited = f", {duration(runs.waiting_ms)} of it waiting for a person" if runs.waiting_ms else ""
            yield line(f"{runs.number:,} ({ended}), {duration(runs.ms)}{waited}", lead=(f"{name:<12}", "bold"))
    if total.steps:
        yield line(f"{total.steps:,}", lead=(f"{'steps':<12}", "bold"))
    if total.usage is not None:
        yield line(_used(total.usage), lead=(f"{'used':<12}", "bold"))


def _used(usage: Usage) -> str:
    tokens = {
        "tokens in": usage.input_tokens,
        "out": usage.output_tokens,
        "in all": usage.total_tokens,
        "for reasoning": usage.reasoning_tokens,
        "from a cache": usage.cached_input_tokens,
    }
    told = [f"{_amount(number)} {what}" for what, number in tokens.items() if number is not None]
    return ", ".join(told + ([f"cost {_amount(usage.cost)}"] if usage.cost is not None else []))
