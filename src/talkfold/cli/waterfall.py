"""``lanes``: runs, the sub-agents in them and the calls in both, as intervals; on a terminal as a waterfall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from msgspec import to_builtins

from ..audit.lanes import Lane, LaneEnd
from ..audit.lanes import lanes as lanes_of
from ..errors import InvalidArgument
from ..model import Json
from ..store.protocol import Session
from .durations import duration
from .feeding import fed, told_if_long
from .opening import find, opened
from .options import RowForm, SessionId, Where
from .output import Column, clean, document, on_terminal, record, rich_console, say, table
from .wording import clock, count

__all__ = ("END_STYLES", "bar", "lanes")

END_STYLES: dict[LaneEnd, str] = {
    "open": "yellow",
    "stop": "green",
    "max-steps": "yellow",
    "aborted": "magenta",
    "error": "red",
    "stopped": "magenta",
    "settled": "magenta",
    "reset": "magenta",
    "done": "green",
    "cancelled": "magenta",
    "dropped": "magenta",
}
"""The colour of how something ended; the word itself always stands there too."""


class _Row(NamedTuple):
    """A lane and its place among all of the log, from 0."""

    place: int
    lane: Lane


async def lanes(
    session: SessionId,
    /,
    *,
    run: Annotated[
        str | None, Parameter(help="Only this run, with what went on in it: its id, or the beginning of it.")
    ] = None,
    depth: Annotated[
        int | None, Parameter(help="Only so deep: 0 is runs alone, 1 what they called as well, and so on.")
    ] = None,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Show what went on when: runs, the sub-agents in them, and the calls in both.

    Each lane has the numbers of its first and last action, how long it took, and how it ended. On a terminal a bar
    shows when that was: to scale in time, or in numbers where the log's times are all the same.
    """
    if depth is not None and depth < 0:
        raise InvalidArgument("--depth", "0 is the least: runs alone")
    async with opened(where) as store:
        found = await find(store, session, where)
        with told_if_long(found.number) as advance:
            every = await fed(store, found, lanes_of, advance=advance)
    rows = [row for row in _of_run(every, run) if depth is None or row.lane.depth <= depth]
    if form.json:
        document([_json(row) for row in rows])
    elif form.jsonl:
        for row in rows:
            record(_json(row))
    elif not rows:
        say("Nothing went on yet.")
    else:
        if on_terminal():
            _draw([row.lane for row in rows])
        else:
            table(_COLUMNS, rows, elastic="lane")
        say(*_summary(rows, found))


def _of_run(every: Sequence[Lane], run: str | None) -> Iterator[_Row]:
    """All lanes, or those of one run: of that id, else whose id begins so. Raises InvalidArgument for none."""
    ids = [lane.id for lane in every if lane.kind == "run" and lane.id is not None]
    chosen = {run} if run in ids else {each for each in ids if run is not None and each.startswith(run)}
    if run is not None and not chosen:
        told = f"it has {', '.join(ids[-5:])}{' and others' if len(ids) > 5 else ''}" if ids else "it has none"
        raise InvalidArgument("--run", f"the session has no run {run!r}; {told}")
    wanted: list[bool] = []
    for place, lane in enumerate(every):
        own = lane.kind == "run" and lane.id in chosen
        wanted.append(run is None or (own if lane.parent is None else wanted[lane.parent]))
        if wanted[-1]:
            yield _Row(place, lane)


def _json(row: _Row) -> dict[str, Json]:
    return {"lane": row.place, **to_builtins(row.lane), "ms": row.lane.end - row.lane.start}


# ---- words ----------------------------------------------------------------------------------------------


def _label(lane: Lane) -> str:
    """Which lane that is: what, and its id; indented under what is around it."""
    what = {"run": "run", "turn": "turn", "agent": f"{lane.name} (agent)", "call": lane.name or ""}[lane.kind]
    return "  " * lane.depth + what + (f" {lane.id}" if lane.id is not None else "")


def _numbers(lane: Lane) -> str:
    return str(lane.first) if lane.first == lane.last else f"{lane.first}-{lane.last}"


_COLUMNS: Sequence[Column[_Row]] = (
    ("number", lambda it: _numbers(it.lane)),
    ("lane", lambda it: _label(it.lane)),
    ("begin (UTC)", lambda it: clock(it.lane.start)),
    ("took", lambda it: duration(it.lane.end - it.lane.start)),
    ("ended", lambda it: it.lane.ended),
)


def _summary(rows: Sequence[_Row], session: Session) -> Iterator[str]:
    kinds: Counter[str] = Counter(row.lane.kind for row in rows)
    nouns = {"run": "run", "turn": "turn without a run", "agent": "sub-agent", "call": "call"}
    plurals = {"turn": "turns without a run"}
    told = ", ".join(count(kinds[kind], noun, plurals.get(kind)) for kind, noun in nouns.items() if kinds[kind])
    yield f"{told}. Look closer: `talkfold steps {session.id} --from FIRST --to LAST`."
    if session.lease is not None:
        yield f"Run {session.lease.run} is still at it; what is open there may still end."


# ---- drawing --------------------------------------------------------------------------------------------

_GAP = "  "
_LEAST = 8
"""The least width of the bars, and of the names."""

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(begin: float, end: float, width: int) -> str:
    """A stretch from ``begin`` to ``end``, both from 0 to 1, in a row of ``width`` cells; never nothing."""
    first = min(int(begin * width), width - 1)
    eighths = max(round((end * width - first) * 8), 1)
    full, rest = divmod(min(eighths, (width - first) * 8), 8)
    return " " * first + "█" * full + (_EIGHTHS[rest] if rest else "")


def _draw(rows: Sequence[Lane]) -> None:
    """The waterfall, as wide as the terminal."""
    from rich.cells import cell_len
    from rich.text import Text

    console = rich_console()
    cells = [(_numbers(lane), clean(_label(lane)), duration(lane.end - lane.start), lane.ended) for lane in rows]
    titles = ("number", "lane", "took", "ended")
    numbers, names, took, ended = (max(map(cell_len, column)) for column in zip(titles, *cells, strict=True))
    room = console.width - numbers - took - ended - 4 * len(_GAP)
    names = max(min(names, room // 2), _LEAST)
    width = max(room - names, _LEAST)
    stretches = [(lane.start, lane.end) for lane in rows]
    is_timed = min(stretches)[0] < max(end for _, end in stretches)
    if not is_timed:  # an import without times
        stretches = [(lane.first, lane.last) for lane in rows]
    start = min(stretches)[0]
    whole = max(end for _, end in stretches) - start or 1
    head = _GAP.join((titles[0].ljust(numbers), titles[1].ljust(names), titles[2].rjust(took), titles[3].ljust(ended)))
    unit = f"{duration(whole)} in all" if is_timed else "by number"
    console.print(Text(f"{head}{_GAP}{unit}"[: console.width], "bold"), no_wrap=True, overflow="crop")
    for lane, (number, name, time, how), (begin, end) in zip(rows, cells, stretches, strict=True):
        style = END_STYLES[lane.ended]
        text = Text(number.ljust(numbers) + _GAP)
        text.append(_set(name, names), "bold" if lane.parent is None else "")
        text.append(f"{_GAP}{time.rjust(took)}{_GAP}")
        text.append(how.ljust(ended) + _GAP, style)
        text.append(bar((begin - start) / whole, (end - start) / whole, width), style)
        console.print(text, no_wrap=True, overflow="crop")


def _set(name: str, width: int) -> str:
    """The name in so many cells of a terminal, where some characters take two."""
    from rich.cells import cell_len, set_cell_size

    return set_cell_size(name, width) if cell_len(name) <= width else set_cell_size(name, width - 1) + "…"
