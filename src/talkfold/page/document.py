"""The whole page: what is known of a log is gathered first, then the templates are filled and streamed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from .._version import __version__
from ..audit._watched import WatchedFold
from ..audit.findings import Finding, Severity, findings
from ..audit.lanes import lanes, lanes_by_row
from ..audit.timings import timings
from ..errors import InvalidAction
from ..log import LoggedAction
from ..protocols.system_prompt import METADATA_KEY, system_prompts
from ..resumable import retry_plan
from .conversation import Conversation
from .figures import bars, tool_figures
from .filling import environment
from .room import Limits, Room, Shown, output_text
from .steps import groups, steps
from .words import kind_of

if TYPE_CHECKING:
    from ..store.protocol import Session

__all__ = ("render",)


class _Prompt(Struct, frozen=True):
    """A system prompt as the page shows it."""

    role: str
    text: Shown


_BLOCK = 64 * 1024
_LIMITS = Limits()

_RANK: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}


def render(session: Session, rows: Sequence[LoggedAction], *, exported: int, limits: Limits = _LIMITS) -> Iterator[str]:
    """The page of a session, in blocks of text that UTF-8 can carry.

    ``rows`` is the whole log of ``session``, from its first action through ``session.number``; ``exported`` the time
    that the page says it was made (ms since 1970). Takes time linear in the log. Never raises on logged actions.
    """
    page = environment().get_template("page.html.jinja")
    return _blocks(page.generate(_gathered(session, rows, exported, limits)))


def _gathered(session: Session, rows: Sequence[LoggedAction], exported: int, limits: Limits) -> dict[str, Any]:
    """Everything that the templates show."""
    watched = WatchedFold(keep_text=True)
    about: dict[int, list[int]] = {}  # by the number of an action about a call: all of that call
    calls: dict[int, list[int]] = {}  # by the number of the action that made the call
    for row in rows:
        watched.step(row.number, row.action)
        for note in watched.changed:
            numbers = calls.setdefault(note.born, [])
            if row.number not in numbers[-1:]:
                numbers.append(row.number)
            known = about.setdefault(row.number, numbers)
            if known is not numbers:  # one action that ends several calls
                about[row.number] = sorted({*known, *numbers})[:_MOST_CALLS]
    all_lanes = lanes(rows)
    times = timings(rows)
    found = sorted(findings(rows, living=session.lease is not None), key=lambda it: (_RANK[it.severity], it.numbers))
    drawn, by_time = bars(all_lanes, times, limits.lanes)
    talk = Conversation(watched.row, {it.number: it for it in times.calls}, limits)
    room = Room(limits, limits.bodies)
    told = steps(rows, list(lanes_by_row(rows)), watched.moments, about, _gravest(found), room)
    state = watched.finished()
    prompts, metadata = _about(session, Room(limits))
    return {
        "bars": drawn,
        "by_time": by_time,
        "clock_of": {row.number: row.time for row in rows},
        "exported": exported,
        "findings": found[: limits.findings],
        "findings_all": len(found),
        "findings_count": Counter(it.severity for it in found),
        "groups": groups(told, limits.group),
        "is_grouped": len(rows) > limits.group,
        "kinds": sorted(Counter(kind_of(row.action) for row in rows).items()),
        "lanes_all": len(all_lanes),
        "limits": limits,
        "moments": watched.moments,
        "pieces": talk.pieces(),
        "plan": retry_plan(state.messages),
        "prompts": prompts,
        "removers": {row.number: kind.capitalize() for row in rows if (kind := kind_of(row.action)) in _REMOVERS},
        "metadata": metadata,
        "room": room,
        "session": session,
        "state": state,
        "times": times,
        "tools": tool_figures(times),
        "version": __version__,
    }


_MOST_CALLS = 24
_REMOVERS = ("retry", "reset")


def _gravest(found: Iterable[Finding]) -> dict[int, str]:
    """By number, the gravest finding that shows there; ``found`` has the gravest first."""
    gravest: dict[int, str] = {}
    for finding in found:
        for number in finding.numbers[:1]:
            gravest.setdefault(number, finding.severity)
    return gravest


def _about(session: Session, room: Room) -> tuple[Sequence[_Prompt], Shown | None]:
    """The system prompts in a session's metadata, and what else stands there."""
    rest = dict(session.metadata or {})
    try:
        prompts = [_Prompt(it.role, room.show(it.text)) for it in system_prompts(rest)]
        rest.pop(METADATA_KEY, None)
    except InvalidAction:  # something else stands under that name
        prompts = []
    return prompts, room.show(output_text(rest)) if rest else None


def _blocks(pieces: Iterable[str]) -> Iterator[str]:
    """The same text in larger pieces: a write for each word would take longer than everything else."""
    block: list[str] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield "".join(block)
            block, size = [], 0
    if block:
        yield "".join(block)
