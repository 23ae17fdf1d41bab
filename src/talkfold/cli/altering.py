"""From ``--skip``, ``--replace`` and ``--insert`` to changes of a log, for ``whatif``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated

from cyclopts import Parameter

from ..actions import SessionAction
from ..audit.lanes import LaneReader
from ..audit.whatif import Change, Insert, Replace, Skip, skip_where
from ..codec import decode_action
from ..codec.batches import decode_batch, decode_batch_lines
from ..errors import InvalidArgument, InvalidJson, TalkfoldError
from ..log import LoggedAction
from .source import read_document, source
from .wording import ACTION_KINDS, action_kind

__all__ = ("Altered", "changes_of")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Altered:
    """What is thought to be different in a log. All of it may be repeated."""

    skip: Annotated[
        tuple[str, ...], Parameter(help="Without this action, or without these: a number, or two as in 5-9.")
    ] = ()
    skip_type: Annotated[
        tuple[str, ...], Parameter(help="Without all actions of this type, such as `tool-result` or `stop`.")
    ] = ()
    skip_call: Annotated[
        tuple[str, ...],
        Parameter(help="Without this call, its outcome and all that went on inside: its id, or its action's number."),
    ] = ()
    skip_run: Annotated[tuple[str, ...], Parameter(help="Without this run: its id, or the beginning of it.")] = ()
    replace: Annotated[
        tuple[str, ...],
        Parameter(help="With another action in place of this one: its number, `=`, and JSON or a file that has it."),
    ] = ()
    insert: Annotated[
        tuple[str, ...],
        Parameter(
            help="With more actions right after this one: its number (0 is the start), `=`, and JSON (one action or an "
            "array) or a file of JSON lines."
        ),
    ] = ()


def changes_of(altered: Altered, rows: Iterable[LoggedAction], last: int) -> tuple[Change, ...]:
    """The changes that are meant, in a log that ends with number ``last``; ``rows`` are read where they must be.

    Raises InvalidArgument, named for the option, for what cannot be understood, what the log does not have, and an
    action that is changed twice.
    """
    for kind in altered.skip_type:
        _known(kind)
    ranges = [_range(each, last) for each in altered.skip]
    replaced = [Replace(number, action) for number, (action, *_) in _pairs("--replace", altered.replace, 1, last)]
    inserted = [Insert(number, actions) for number, actions in _pairs("--insert", altered.insert, 0, last)]
    if altered.skip_type or altered.skip_call or altered.skip_run:
        wanted = _Unwanted(altered)
        ranges += [(each.first, each.last or each.first) for each in skip_where(rows, wanted)]
        wanted.refuse_unseen()
    skips = list(_joined(ranges))
    _refuse_twice(skips, replaced)
    return (*skips, *replaced, *inserted)


def _joined(ranges: Iterable[tuple[int, int]]) -> Iterator[Skip]:
    """The same numbers as few skips, which do not overlap."""
    first = last = 0
    for begin, end in sorted(ranges):
        if begin <= last + 1 and first:
            last = max(last, end)
            continue
        if first:
            yield Skip(first, None if first == last else last)
        first, last = begin, end
    if first:
        yield Skip(first, None if first == last else last)


def _refuse_twice(skips: Sequence[Skip], replaced: Sequence[Replace]) -> None:
    seen: set[int] = set()
    for each in replaced:
        if each.number in seen:
            raise InvalidArgument("--replace", f"action {each.number} is replaced twice")
        if any(skip.first <= each.number <= (skip.last or skip.first) for skip in skips):
            raise InvalidArgument("--replace", f"action {each.number} is skipped as well")
        seen.add(each.number)


# ---- skips ----------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[0-9]{1,15}")
_RANGE = re.compile(r"([1-9][0-9]{0,14})(?:-([1-9][0-9]{0,14}))?")


def _range(given: str, last: int) -> tuple[int, int]:
    found = _RANGE.fullmatch(given)
    if found is None:
        raise InvalidArgument("--skip", f"{given!r} is no action's number, and no two as in 5-9")
    begin, end = int(found[1]), int(found[2] or found[1])
    if end < begin:
        raise InvalidArgument("--skip", f"{given}: the first number must be the smaller one")
    if end > last:
        raise InvalidArgument("--skip", f"the log ends at {last}; it has no action {end}")
    return begin, end


def _known(kind: str) -> None:
    if kind not in ACTION_KINDS:
        near = get_close_matches(kind, ACTION_KINDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(ACTION_KINDS)}"
        raise InvalidArgument("--skip-type", f"{kind!r} is no type of action; {hint}")


class _Unwanted:
    """Which rows are skipped by what they are. Called for each row from the first."""

    def __init__(self, altered: Altered) -> None:
        self._altered = altered
        self._lanes = LaneReader() if altered.skip_call else None
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, row: LoggedAction) -> bool:
        here = {("--skip-type", each) for each in self._altered.skip_type if action_kind(row.action) == each}
        if row.run is not None:
            here |= {("--skip-run", each) for each in self._altered.skip_run if row.run.startswith(each)}
        if self._lanes is not None:
            for lane in self._lanes.feed(row):
                names = (lane.id, str(lane.first)) if lane.kind in ("call", "agent") else ()
                here |= {("--skip-call", each) for each in self._altered.skip_call if each in names}
        self._seen |= here
        return bool(here)

    def refuse_unseen(self) -> None:
        """Raise InvalidArgument for a run, a call or a type that the log does not have."""
        options = {
            "--skip-type": ("action of the type", self._altered.skip_type),
            "--skip-call": ("call", self._altered.skip_call),
            "--skip-run": ("run", self._altered.skip_run),
        }
        for option, (what, asked) in options.items():
            for each in asked:
                if (option, each) not in self._seen:
                    error = InvalidArgument(option, f"the log has no {what} {each!r}")
                    error.next_step = "`talkfold steps` shows the log, `talkfold lanes` its runs and calls."
                    raise error


# ---- actions --------------------------------------------------------------------------------------------


def _pairs(option: str, given: Sequence[str], least: int, last: int) -> Iterator[tuple[int, tuple[SessionAction, ...]]]:
    """A number and the actions that are given for it, of each ``N=JSON`` or ``N=FILE``."""
    for each in given:
        number, equals, what = each.partition("=")
        if not equals or not _NUMBER.fullmatch(number):
            raise InvalidArgument(option, f"{each!r} is not a number, `=`, and an action")
        if not least <= int(number) <= last:
            raise InvalidArgument(option, f"the log has the actions {least} to {last}, not {number}")
        yield int(number), _actions(option, what)


def _actions(option: str, given: str) -> tuple[SessionAction, ...]:
    """The actions in JSON, or in the file with this name, with or without their envelopes."""
    inline = given.lstrip()[:1] in ("{", "[")
    try:
        if inline:
            data = given.encode("utf-8", "surrogateescape")
        else:
            with source(given) as stream:
                data = read_document(stream, "list of actions")
        try:
            entries = decode_batch(data)
        except InvalidJson:
            if inline:
                raise
            entries = decode_batch_lines(data)
    except TalkfoldError as error:
        reason = error.reason if isinstance(error, InvalidArgument) else f"{'' if inline else f'{given}: '}{error}"
        said = InvalidArgument(option, reason)
        said.next_step = 'An action is JSON as in `talkfold steps --jsonl`, such as {"type": "stop"}.'
        raise said from error
    if not entries:
        raise InvalidArgument(option, f"{given} has no action")
    if option == "--replace" and len(entries) > 1:
        raise InvalidArgument(option, f"{given} has {len(entries)} actions; one takes the place of one")
    return tuple(decode_action(it.action) if isinstance(it.action, bytes) else it.action for it in entries)
