"""``blame``: which actions made what stands in a conversation."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple, TypeAlias

from cyclopts import Parameter
from msgspec import to_builtins

from ..audit.blame import Blame, Contribution, Field, Place, PlaceStep
from ..errors import CursorAhead, InvalidArgument
from ..log import LoggedAction
from ..model import UNSET, AgentPart, Json, ReasoningPart, SessionState, TextPart, ToolPart
from .feeding import fed, told_if_long
from .opening import find, opened
from .options import AtNumber, RowForm, SessionId, Where
from .output import Column, document, line, on_terminal, paint, preview, record, say, table
from .placing import EVERYTHING, Spot, Wanted, chosen, places, pointer
from .wording import clock, moment, value_text

__all__ = ("blame",)


class _Who(NamedTuple):
    """What the envelope of an action says of it."""

    time: int
    run: str | None
    actor: str | None


class _Envelopes:
    """The envelopes of a log that was read once, at a few bytes an action."""

    def __init__(self) -> None:
        self._times = array("q", [0])
        self._since: list[int] = [0]
        self._who: list[tuple[str | None, str | None]] = [(None, None)]

    def noted(self, rows: Iterable[LoggedAction]) -> Iterator[LoggedAction]:
        """The same rows; their envelopes are known from then on."""
        for row in rows:
            while len(self._times) < row.number:  # a number that is missing
                self._times.append(0)
            self._times.append(row.time)
            who = (row.run, row.actor)
            if who != self._who[-1]:
                self._since.append(row.number)
                self._who.append(who)
            yield row

    def of(self, number: int) -> _Who:
        """That of the action with this number."""
        return _Who(self._times[number], *self._who[bisect_right(self._since, number) - 1])


class _Made(NamedTuple):
    """One line of the answer: the actions from ``first`` to ``last`` (``actions`` of them) made what stands there.

    ``text`` is what they made, in words for people.
    """

    place: Place
    first: Contribution
    last: Contribution
    actions: int
    who: _Who
    text: str


_PLACE: TypeAlias = Annotated[
    str | None,
    Parameter(name="PLACE", help="A JSON Pointer into the state of `show --json`, such as /messages/1/parts/0/text."),
]


async def blame(
    session: SessionId,
    place: _PLACE = None,
    /,
    *,
    wanted: Wanted = EVERYTHING,
    at: AtNumber = None,
    every: Annotated[bool, Parameter(help="A row for every action, also for each piece of a streamed text.")] = False,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Tell which actions made what stands in a conversation.

    Without a place: the whole conversation, or with `--message` alone one message of it, each line with the numbers
    of the actions that made it, when that was, in which run and by whom. With a place, given as a pointer or by the
    options: every action that had a part in it, the oldest first, so the last one explains what is there. What Retry
    or Reset took away is told by `--at`.
    """
    envelopes = _Envelopes()
    async with opened(where) as store:
        found = await find(store, session, where)
        end = found.number if at is None else at
        if not 0 <= end <= found.number:
            raise CursorAhead(found.id, end, found.number)
        with told_if_long(end) as advance:
            made_by = await fed(store, found, lambda rows: Blame(envelopes.noted(rows)), last=end, advance=advance)
    every = every or form.json or form.jsonl
    if place is None and wanted.is_conversation:
        row = chosen(made_by, wanted)
        listed = [made for spot in row for made in _in_spot(made_by, spot, envelopes, every=every)]
        _tell(listed, _LISTING, form)
        if not listed:
            say("There is no conversation yet.")
        return
    answer = _answers(made_by, wanted, place, envelopes, every=every)
    if form.json or form.jsonl:
        _tell([made for _, rows in answer for made in rows], _PLACES, form)
        return
    for index, (each, rows) in enumerate(answer):
        paint([line()] * bool(index))
        paint([line((_name(made_by.state, each), "bold"), (f"  {pointer(each)}", "dim"))])
        _tell(rows, _PLACES, form)
        if not rows:
            say("No action has ever set that.")


def _answers(
    made_by: Blame, wanted: Wanted, place: str | None, envelopes: _Envelopes, *, every: bool
) -> list[tuple[Place, list[_Made]]]:
    """Each place that is meant, and what made it. Raises InvalidArgument, named as the person knows it."""
    try:
        return [(each, [*_of_place(made_by, each, envelopes, every=every)]) for each in places(made_by, wanted, place)]
    except InvalidArgument as error:
        if error.name != "place":
            raise
        said = InvalidArgument("PLACE" if place is not None else "--field", error.reason)
        said.next_step = (
            "`talkfold show --json` has the state that PLACE points into; `talkfold blame ID` has all parts."
        )
        raise said from None


# ---- rows -----------------------------------------------------------------------------------------------


def _in_spot(made_by: Blame, spot: Spot, envelopes: _Envelopes, *, every: bool) -> Iterator[_Made]:
    """A part of the conversation as it is read, with what made each line of it."""
    part = spot.part
    speaker = "you: " if spot.message.role == "user" else "assistant: "
    indent = "  " * (len(spot.steps) - 1)
    lead = indent + (speaker if spot.is_first else "  ")
    field: Field | None = None if part is None else "state" if isinstance(part, ToolPart) else "text"
    thinks = "thinks: " if isinstance(part, ReasoningPart) else ""
    text = part.text if isinstance(part, TextPart | ReasoningPart) else ""
    cut = _cutter(text)

    def words(first: Contribution, last: Contribution) -> str:
        if isinstance(part, ToolPart):
            if first.by == "tool-call":
                return f"{lead}{part.name} {value_text(part.input, 56)}"
            return f"{indent}  {_outcome(part, first)}"
        return lead + (f"{thinks}{preview(cut(first, last), 400)}" if part is not None else "(nothing yet)")

    yield from _rows(made_by, Place(spot.steps, field), envelopes, words, every=every)


def _of_place(made_by: Blame, place: Place, envelopes: _Envelopes, *, every: bool) -> Iterator[_Made]:
    """What made the very thing that was asked for."""
    spot = _part_at(made_by.state, place)
    cut = _cutter(spot.text if isinstance(spot, TextPart | ReasoningPart) else "")

    def words(first: Contribution, last: Contribution) -> str:
        if first.removed:
            return "took it away"
        if first.in_text is not None:
            return preview(cut(first, last), 400)
        if isinstance(spot, ToolPart) and first.by != "tool-call" and place.field in ("state", "output", "error"):
            return _outcome(spot, first)
        if isinstance(spot, ToolPart) and first.by == "tool-call" and place.field != "state":
            return value_text(spot.input, 64)
        return first.state or ""

    yield from _rows(made_by, place, envelopes, words, every=every)


def _rows(
    made_by: Blame,
    place: Place,
    envelopes: _Envelopes,
    words: Callable[[Contribution, Contribution], str],
    *,
    every: bool,
) -> Iterator[_Made]:
    """The contributions to a place, those of text that came piece by piece from the same run and actor as one."""
    run: list[Contribution] = []
    for each in made_by.of(place):
        if run and (every or not _goes_on(run[-1], each, envelopes)):
            yield _made(place, run, envelopes, words)
            run = []
        run.append(each)
    if run:
        yield _made(place, run, envelopes, words)


def _goes_on(one: Contribution, other: Contribution, envelopes: _Envelopes) -> bool:
    if one.in_text is None or (one.by, other.by) != ("text-delta", "text-delta"):
        return False
    return envelopes.of(one.number)[1:] == envelopes.of(other.number)[1:]


def _made(
    place: Place,
    run: Sequence[Contribution],
    envelopes: _Envelopes,
    words: Callable[[Contribution, Contribution], str],
) -> _Made:
    first, last = run[0], run[-1]
    return _Made(place, first, last, len(run), envelopes.of(first.number), words(first, last))


def _cutter(text: str) -> Callable[[Contribution, Contribution], str]:
    """Cuts out of a text what stretches from one contribution through another."""
    data = text.encode("utf-16-le", "surrogatepass")

    def cut(first: Contribution, last: Contribution) -> str:
        if first.in_text is None or last.in_text is None:
            return text
        return data[2 * first.in_text[0] : 2 * last.in_text[1]].decode("utf-16-le", "surrogatepass")

    return cut


def _outcome(call: ToolPart, made: Contribution) -> str:
    """What a call came to by an action, as far as the call still says so."""
    if made.by == "tool-result" and call.output is not UNSET:
        return f"→ {value_text(call.output, 64)}"
    if made.by.startswith("tool-error") and call.error is not None:
        return f"→ {preview(call.error, 64)}"
    return f"→ {made.state}" if made.state else ""


# ---- telling --------------------------------------------------------------------------------------------


def _numbers(made: _Made) -> str:
    first, last = made.first.number, made.last.number
    return str(first) if first == last else f"{first}-{last}"


def _by(made: _Made) -> str:
    return made.first.by if made.actions == 1 else f"{made.first.by} x{made.actions}"


_PLACES: Sequence[Column[_Made]] = (
    ("number", _numbers),
    ("time (UTC)", lambda it: clock(it.who.time)),
    ("run", lambda it: it.who.run or ""),
    ("actor", lambda it: it.who.actor or ""),
    ("by", _by),
    ("what it did", lambda it: it.text),
)
_LISTING: Sequence[Column[_Made]] = (*_PLACES[:4], ("conversation", lambda it: it.text))


def _tell(rows: Sequence[_Made], columns: Sequence[Column[_Made]], form: RowForm) -> None:
    if form.json:
        document([_json(made) for made in rows])
    elif form.jsonl:
        for made in rows:
            record(_json(made))
    elif rows:
        elastic = columns[-1][0]
        shown = [each for each in columns if each[0] not in ("run", "actor") or any(map(each[1], rows))]
        days = {clock(made.who.time)[:10] for made in rows}
        if len(days) == 1 and on_terminal():  # which is narrow: the day once, above the times
            shown[1] = (days.pop(), lambda it: clock(it.who.time)[11:])
        table(shown, rows, elastic=elastic, styles={"number": "bold", shown[1][0]: "dim", "by": "dim"})


def _json(made: _Made) -> dict[str, Json]:
    who = {name: value for name, value in (("run", made.who.run), ("actor", made.who.actor)) if value is not None}
    return {"place": pointer(made.place), **to_builtins(made.first), "time": moment(made.who.time), **who}


def _part_at(state: SessionState, place: Place) -> AgentPart | None:
    """The part that a place means, while it is there."""
    messages, part = state.messages, None
    for step in place.steps:
        at, index = step.message, step.part
        if not isinstance(at, int) or at >= len(messages) or index is None or index >= len(messages[at].parts):
            return None
        part = messages[at].parts[index]
        messages = part.agent.messages if isinstance(part, ToolPart) and part.agent is not None else ()
    return part


def _name(state: SessionState, place: Place) -> str:
    """A place in words, counted from 1."""
    if not place.steps:
        return f"session, {place.field}"
    part = _part_at(state, place)
    where = f"call {part.name} {part.id}" if isinstance(part, ToolPart) else _counted(place.steps[-1])
    around = [_part_at(state, Place(place.steps[:depth])) for depth in range(1, len(place.steps))]
    inside = "".join(f"{call.name} {call.id} > " for call in around[-2:] if isinstance(call, ToolPart))
    return inside + where + (f", {place.field}" if place.field else "")


def _counted(step: PlaceStep) -> str:
    message = f"message {int(step.message) + 1}"
    return message if step.part is None else f"{message}, part {step.part + 1}"
