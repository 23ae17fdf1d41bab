"""``step``: one action of a log, with everything that is known about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec import Raw, to_builtins

from ..actions import Part
from ..audit.diff import diff
from ..audit.findings import Auditor, Finding
from ..audit.marks import Mark, Marker
from ..audit.operations import encode_diff
from ..codec import encode_logged
from ..errors import CursorAhead, InvalidArgument
from ..log import LoggedAction
from ..model import Json, SessionState
from ..reducer import session_reducer
from ..store.protocol import Session, SessionStore
from .changes import change_lines
from .choosing import Choice, Which
from .feeding import told_if_long
from .opening import find, opened, read_log
from .options import Form, SessionId, Where
from .output import Line, document, json_bytes, line, paint
from .stepping import Step, StepReader, step_numbers, step_text
from .wording import STATE_STYLES, action_kind, count, moment

__all__ = ("step",)

_PAGE = 1000


class _Around:
    """What the whole log says about one of its actions; it is fed the log from the first action on.

    ``before`` and ``after`` are the nearest steps of the same type, ``among`` is the one that the action is a piece of.
    """

    def __init__(self, row: LoggedAction) -> None:
        self._number = row.number
        self._marker = Marker()
        self._auditor = Auditor()
        self._reader = StepReader(Choice(Which(type=(action_kind(row.action),))))
        self._calls: dict[int, list[Mark]] = {}
        self._about: dict[int, None] = {}
        self.findings: list[Finding] = []
        self.before: Step | None = None
        self.among: Step | None = None
        self.after: Step | None = None

    def feed(self, rows: Sequence[LoggedAction]) -> None:
        """Take the next rows."""
        self._found(self._auditor.feed(rows))
        for row in rows:
            self._marker.feed(row)
            for step_ in self._reader.feed(row):
                self._place(step_)
        for mark in self._marker.marks:
            if mark.call is not None:
                self._calls.setdefault(mark.call, []).append(mark)
                if mark.number == self._number:
                    self._about[mark.call] = None
        self._marker.marks.clear()

    def end(self, *, living: bool) -> None:
        """That was the whole log; ``living``: a run goes on in it."""
        self._found(self._auditor.pending(living=living))
        for step_ in self._reader.rest():
            self._place(step_)

    @property
    def calls(self) -> list[list[Mark]]:
        """For each call that the action did something to, everything that became of it."""
        return [self._calls[call] for call in self._about]

    def _found(self, findings: Iterable[Finding]) -> None:
        self.findings += (each for each in findings if self._number in each.numbers)

    def _place(self, step_: Step) -> None:
        if step_.last.number < self._number:
            self.before = step_
        elif step_.first.number <= self._number:
            self.among = step_
        elif self.after is None:
            self.after = step_


async def step(
    session: SessionId,
    number: Annotated[int | None, Parameter(name="NUMBER", help="The action's number. [default: the newest]")] = None,
    /,
    *,
    alone: Annotated[
        bool, Parameter(help="Only the action and what it changed: the rest of the log is not read.")
    ] = False,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Show one action of a log in full.

    That is who did it and when, its JSON as it was logged, the session's status before and after it, what it
    changed, everything that became of the calls that it is about, what `talkfold findings` says about it, and where
    the nearest steps of the same type are.
    """
    if number is not None and number < 1:
        raise InvalidArgument("NUMBER", "actions are counted from 1")
    async with opened(where) as store:
        found = await find(store, session, where)
        at = max(found.number, 1) if number is None else number
        if at > found.number:
            raise CursorAhead(found.id, at, found.number)
        row = (await store.read(found.id, after=at - 1, limit=1, owner=found.owner))[0]
        before = (await store.state(found.id, at=at - 1, owner=found.owner)).state
        around = None if alone else await _look_around(store, found, row)
    after = session_reducer(before, row.action)
    if form.json:
        document(_json(found, row, before, after, around))
        return
    paint(_lines(found, row, before, after))
    if around is not None:
        paint(_lines_around(row, around))


async def _look_around(store: SessionStore, session: Session, row: LoggedAction) -> _Around:
    """Read the whole log, once."""
    around = _Around(row)
    rows: list[LoggedAction] = []
    with told_if_long(session.number) as advance:
        async for each in read_log(store, session):
            rows.append(each)
            if len(rows) == _PAGE:
                around.feed(rows)
                advance(each.number)
                rows.clear()
    around.feed(rows)
    around.end(living=session.lease is not None)
    return around


# ---- for programs ---------------------------------------------------------------------------------------


def _json(
    session: Session, row: LoggedAction, before: SessionState, after: SessionState, around: _Around | None
) -> dict[str, object]:
    told: dict[str, object] = {
        "sessionId": session.id,
        "step": Raw(encode_logged(row)),
        "statusBefore": before.status,
        "statusAfter": after.status,
        "changed": after is not before,
        "diff": Raw(encode_diff(diff(before, after))),
    }
    if around is not None:
        told |= {
            "calls": [to_builtins(call) for call in around.calls],
            "findings": [to_builtins(each) for each in around.findings],
            "previous": _ends(around.before),
            "next": _ends(around.after),
        }
    return told


def _ends(step_: Step | None) -> dict[str, Json] | None:
    return None if step_ is None else {"first": step_.first.number, "last": step_.last.number}


# ---- for people -----------------------------------------------------------------------------------------


def _lines(session: Session, row: LoggedAction, before: SessionState, after: SessionState) -> Iterator[Line]:
    kind = action_kind(row.action)
    yield line((session.id, "bold"), f"  action {row.number:,} of {session.number:,}  ", (kind, "bold cyan"))
    yield _field("time", moment(row.time))
    within = row.action.within if isinstance(row.action, Part) else None
    digest = None if row.hash is None else row.hash.hex()
    meta = None if row.meta is None else json_bytes(row.meta).decode()
    fields = {"inside": within, "run": row.run, "actor": row.actor, "meta": meta, "digest": digest}
    for name, value in fields.items():
        if value is not None:
            yield _field(name, value)
    if before.status == after.status:
        yield _field("status", after.status, STATE_STYLES[after.status])
    else:
        yield line(
            (before.status, STATE_STYLES[before.status]),
            " → ",
            (after.status, STATE_STYLES[after.status]),
            lead=_lead("status"),
        )
    yield _title("Action")
    for text in msgspec.json.format(row.body, indent=2).decode().splitlines():
        yield line(text, indent=2)
    yield _title("Changes")
    if after is before:
        yield line(("nothing", "dim"), indent=2)
    else:
        changed = [*change_lines(before, diff(before, after), indent=2)]
        yield from changed or [line(("nothing that can be seen", "dim"), indent=2)]


def _lines_around(row: LoggedAction, around: _Around) -> Iterator[Line]:
    for call in around.calls:
        first = call[0]
        inside = f" inside {first.within}" if first.within is not None else ""
        yield _title(f"Call {first.id} ({first.name}){inside}")
        for mark in call:
            here = "  (this one)" if mark.number == row.number else ""
            state = mark.state or ""
            yield line(
                f"{mark.kind:<8} ",
                (state, STATE_STYLES.get(state, "")),
                here,
                indent=2,
                lead=(f"{mark.number:>8}  ", ""),
            )
    if around.findings:
        yield _title("Findings")
        for each in around.findings:
            yield line(each.text, (f"  [{each.code}]", "dim"), indent=2, lead=(f"{each.severity:<7}  ", "bold"))
            yield line((each.next_step, "dim"), indent=11)
    yield _title(f"Other {action_kind(row.action)}")
    if around.among is not None and len(around.among.rows) > 1:
        pieces = count(len(around.among.rows), "piece")
        yield line(
            step_numbers(around.among), f", {pieces} of one text, this among them", indent=2, lead=_lead("around")
        )
    for name, near in (("before", around.before), ("after", around.after)):
        text = "none" if near is None else f"{step_numbers(near)}  {step_text(near)}"
        yield line(text, indent=2, lead=_lead(name))


def _field(name: str, value: str, style: str = "") -> Line:
    return line((value, style), lead=_lead(name))


def _lead(name: str) -> tuple[str, str]:
    return f"{name:<8} ", "dim"


def _title(text: str) -> Line:
    return line((text, "bold"))
