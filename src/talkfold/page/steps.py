"""The steps of a log, as rows of a table: pieces of one streamed text are one row that opens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ..actions import Part, SessionAction, TextDelta
from ..audit._effects import Effects
from ..audit._watched import Moment
from ..json_values import json_text
from ..log import LoggedAction
from ..model import SessionStatus
from .room import Room, Shown, json_shown
from .visible import first_words
from .words import kind_of, said

__all__ = ("Step", "groups", "steps")


class Step(Struct, frozen=True):
    """One action, or several deltas of one text.

    ``lane`` is the index of the lane it belongs to, ``within`` the delegate call around it. ``has_effect``: whether the
    session is another after it. ``calls`` are the numbers of all actions about the calls that this one is about.
    ``pieces`` are the deltas, each with its number; a single action has its JSON in ``body``, and its ``meta``,
    as long as the page has room for them.
    """

    first: int
    last: int
    time: int
    ms: int
    kind: str
    text: str
    lane: int
    status: SessionStatus
    has_effect: bool
    within: str | None = None
    run: str | None = None
    actor: str | None = None
    calls: Sequence[int] = ()
    severity: str | None = None
    pieces: Sequence[tuple[int, str]] = ()
    body: Shown | None = None
    meta: Shown | None = None


def steps(
    rows: Iterable[LoggedAction],
    lanes: Sequence[int],
    moments: Sequence[Moment],
    calls: Mapping[int, Sequence[int]],
    severities: Mapping[int, str],
    room: Room,
) -> Iterator[Step]:
    """The rows as steps, in order, read once.

    ``lanes`` has each row's lane, ``moments`` when the status changed, ``calls`` and ``severities`` what is known of an
    action by its number: the numbers of its calls' actions, and the gravest finding that names it first.
    """
    effects = Effects()
    place = moment = 0
    status: SessionStatus = "idle"
    before: int | None = None
    for run in _runs(rows):
        first, last = run[0], run[-1]
        changed = False
        for row in run:
            changed |= effects.change_by(row.number, (row.action,))
        while moment < len(moments) and moments[moment][0] <= last.number:
            status = moments[moment][1]
            moment += 1
        action = first.action
        pieces = [(row.number, _delta(row.action)) for row in run] if len(run) > 1 else ()
        words = "".join(piece for _, piece in pieces[:400])
        kind = kind_of(action)
        yield Step(
            first.number,
            last.number,
            first.time,
            max(0, first.time - (first.time if before is None else before)),
            kind,
            first_words(words) if pieces else said(first),
            lanes[place],
            status,
            changed,
            within=action.within if isinstance(action, Part) else None,
            run=first.run,
            actor=first.actor,
            calls=() if pieces else calls.get(first.number, ()),
            severity=next((severities[row.number] for row in run if row.number in severities), None),
            pieces=pieces,
            body=None if pieces or room.is_full else room.show(json_shown(first.body)),
            meta=None if pieces or not first.meta or room.is_full else room.show(json_shown(json_text(first.meta))),
        )
        before = last.time
        place += len(run)


def groups(all_steps: Iterable[Step], size: int) -> Iterator[Sequence[Step]]:
    """Steps in order, ``size`` at a time."""
    group: list[Step] = []
    for step in all_steps:
        group.append(step)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


_LONGEST_RUN = 2_000


def _runs(rows: Iterable[LoggedAction]) -> Iterator[list[LoggedAction]]:
    """Rows by themselves, and deltas of one text together: those with nothing but their number and time to tell them
    apart."""
    run: list[LoggedAction] = []
    for row in rows:
        if run and (len(run) == _LONGEST_RUN or not _goes_on(run[-1], row)):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _goes_on(one: LoggedAction, other: LoggedAction) -> bool:
    before, after = one.action, other.action
    return (
        isinstance(before, Part)
        and isinstance(after, Part)
        and isinstance(before.part, TextDelta)
        and isinstance(after.part, TextDelta)
        and before.part.message_id == after.part.message_id
        and before.within == after.within
        and (one.run, one.actor, one.meta) == (other.run, other.actor, other.meta)
    )


def _delta(action: SessionAction) -> str:
    return action.part.delta if isinstance(action, Part) and isinstance(action.part, TextDelta) else ""
