"""What would have been: the changed log, folded; where it first differs; and what lost its meaning by it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate
from time import perf_counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from talkfold import (
    EMPTY_SESSION,
    Finish,
    InvalidArgument,
    LoggedAction,
    MessageStart,
    Part,
    Reset,
    Send,
    SessionAction,
    SessionState,
    StepFinish,
    Stop,
    TextDelta,
    TextPart,
    ToolCall,
    ToolPart,
    ToolResult,
    encode_action,
    fold,
    session_reducer,
)
from talkfold.audit._effects import Effects
from talkfold.audit.patch import apply
from talkfold.audit.whatif import Change, Insert, Replace, Skip, WhatIf, skip_where, what_if, with_changes
from talkfold.codec.text import encoded
from talkfold.testing.strategies import actions, logs

pytestmark = pytest.mark.timeout(900)


def logged(log: Sequence[SessionAction]) -> list[LoggedAction]:
    """The actions as rows of a log."""
    return [LoggedAction(number, number, action, encode_action(action), None) for number, action in enumerate(log, 1)]


def written(state: SessionState) -> bytes:
    return encoded(state, "state", sys.maxsize)


def changed_by_hand(log: Sequence[SessionAction], changes: Sequence[Change]) -> list[list[SessionAction]]:
    """At every number, 0 first, the actions that stand there after the changes, in the plainest way."""
    rows: list[list[SessionAction]] = [[], *([action] for action in log)]
    for change in changes:
        if isinstance(change, Skip):
            for number in range(change.first, (change.last or change.first) + 1):
                rows[number] = []
        elif isinstance(change, Replace):
            rows[change.number] = [change.action]
    for change in changes:
        if isinstance(change, Insert):
            rows[change.after] = [*rows[change.after], *change.actions]
    return rows


@st.composite
def logs_with_changes(draw: st.DrawFn) -> tuple[list[SessionAction], list[Change]]:
    log = draw(logs().filter(bool))
    changes: list[Change] = []
    number = 1
    while number <= len(log):
        kind = draw(st.sampled_from(("stay", "stay", "stay", "skip", "range", "replace")))
        last = number
        if kind == "skip":
            changes.append(Skip(number))
        elif kind == "range":
            last = draw(st.integers(number, min(number + 3, len(log))))
            changes.append(Skip(number, last))
        elif kind == "replace":
            changes.append(Replace(number, draw(actions())))
        number = last + 1
    places = st.lists(st.integers(0, len(log)), max_size=3)
    changes += [Insert(place, tuple(draw(st.lists(actions(), max_size=2)))) for place in draw(places)]
    return log, draw(st.permutations(changes))


# ---- laws -----------------------------------------------------------------------------------------------------


@given(logs())
def test_what_does_something_is_what_the_reducer_says(log: list[SessionAction]) -> None:
    """For every action of every log: whether the reducer gives another object."""
    effects = Effects()
    state = EMPTY_SESSION
    for number, action in enumerate(log, 1):
        after = session_reducer(state, action)
        assert effects.change_by(number, [action]) == (after is not state), action
        state = after


@given(logs_with_changes())
def test_the_states_are_those_of_the_two_logs(case: tuple[list[SessionAction], list[Change]]) -> None:
    log, changes = case
    by_hand = changed_by_hand(log, changes)
    found = what_if(logged(log), changes)
    assert written(found.before) == written(fold(log))
    assert written(found.after) == written(fold(action for row in by_hand for action in row))
    assert written(apply(found.before, found.diff)) == written(found.after)
    assert [action for _, action in with_changes(logged(log), changes)] == [a for row in by_hand for a in row]


@given(logs_with_changes())
def test_the_first_difference(case: tuple[list[SessionAction], list[Change]]) -> None:
    """Before it the two are equal at every number, and there they are not."""
    log, changes = case
    by_hand = changed_by_hand(log, changes)
    was = [EMPTY_SESSION, *(fold(log[:number]) for number in range(1, len(log) + 1))]
    would = [*accumulate(by_hand, lambda state, row: fold(row, state), initial=EMPTY_SESSION)][1:]
    differ = [number for number in range(len(log) + 1) if written(was[number]) != written(would[number])]
    found = what_if(logged(log), changes)
    assert found.first == (differ[0] if differ else None)
    if found.first is None:
        assert found.first_diff is None
        assert not found.diff
        assert found.lost == found.gained == ()
    else:
        assert found.first_diff is not None
        assert written(apply(was[found.first], found.first_diff)) == written(would[found.first])


@given(logs_with_changes())
def test_what_lost_its_meaning(case: tuple[list[SessionAction], list[Change]]) -> None:
    """Of the actions that stay as they are: those that did something in the one log and nothing in the other."""
    log, changes = case
    by_hand = changed_by_hand(log, changes)
    lost: list[int] = []
    gained: list[int] = []
    old = EMPTY_SESSION
    new = fold(by_hand[0])
    for number, action in enumerate(log, 1):
        did = session_reducer(old, action) is not old
        does = session_reducer(new, action) is not new
        if did != does:
            (lost if did else gained).append(number)
        old, new = session_reducer(old, action), fold(by_hand[number], new)
    touched = {number for change in changes for number in _numbers(change)}
    found = what_if(logged(log), changes)
    assert [*found.lost] == [number for number in lost if number not in touched]
    assert [*found.gained] == [number for number in gained if number not in touched]


def _numbers(change: Change) -> Sequence[int]:
    """The actions that do not stay."""
    if isinstance(change, Skip):
        return range(change.first, (change.last or change.first) + 1)
    return [change.number] if isinstance(change, Replace) else []


@given(logs())
def test_nothing_changed_is_no_difference(log: list[SessionAction]) -> None:
    found = what_if(logged(log), [])
    assert found.after is found.before
    assert (found.first, found.first_diff, bool(found.diff), found.lost, found.gained) == (None, None, False, (), ())


@given(logs())
def test_everything_skipped_is_the_empty_session(log: list[SessionAction]) -> None:
    found = what_if(logged(log), skip_where(logged(log), lambda row: True))
    assert found.after == EMPTY_SESSION
    assert found.lost == found.gained == ()


# ---- by example -------------------------------------------------------------------------------------------------

LOG: list[SessionAction] = [
    Send("u", "Find a flight"),  # 1
    Part(MessageStart("m")),
    Part(StepFinish(0)),  # 3
    Part(ToolCall("m", "c", "search", {"to": "JFK"})),  # 4
    Part(ToolResult("c", {"found": 3})),  # 5
    Part(TextDelta("m", "Three ")),
    Part(TextDelta("m", "flights.")),
    Part(Finish("stop")),  # 8
]


def test_a_result_without_its_call_is_told() -> None:
    found = what_if(logged(LOG), [Skip(4)])
    assert (found.first, found.lost, found.gained) == (4, (5,), ())
    assert [part for part in found.after.messages[1].parts if isinstance(part, ToolPart)] == []


def test_without_its_message_a_whole_answer_is_lost() -> None:
    found = what_if(logged(LOG), [Skip(2)])
    assert (found.first, found.lost) == (2, (4, 5, 6, 7))
    assert len(found.after.messages) == 1


def test_another_answer_of_the_tool() -> None:
    found = what_if(logged(LOG), [Replace(5, Part(ToolResult("c", {"found": 0})))])
    assert (found.first, found.lost, found.gained) == (5, (), ())
    call = found.after.messages[1].parts[0]
    assert isinstance(call, ToolPart)
    assert call.output == {"found": 0}
    assert len(encoded(found.diff, "diff", 99)) < 400


def test_an_action_that_did_nothing_is_not_missed() -> None:
    found = what_if(logged(LOG), [Skip(3)])
    assert found.first is None
    assert written(found.after) == written(found.before)


def test_a_missing_call_put_in_gives_its_result_a_meaning() -> None:
    log = [*LOG[:3], *LOG[4:]]
    found = what_if(logged(log), [Insert(3, (LOG[3],))])
    assert (found.first, found.lost, found.gained) == (3, (), (4,))
    assert found.after == fold(LOG)


def test_before_all_actions() -> None:
    found = what_if(logged(LOG), [Insert(0, (Send("u0", "Hello"),)), Insert(0, (Stop(),))])
    assert found.first == 0
    assert found.after.messages[0].parts == (TextPart("Hello"),)
    assert [number for number, _ in with_changes(logged(LOG), [Insert(0, (Stop(),))])] == [None, *range(1, 9)]


def test_a_difference_may_be_over_before_the_end() -> None:
    found = what_if(logged([*LOG, Reset()]), [Skip(4)])
    assert (found.first, bool(found.diff)) == (4, False)


def test_skips_by_what_the_rows_are() -> None:
    deltas = skip_where(
        logged(LOG), lambda row: isinstance(row.action, Part) and isinstance(row.action.part, TextDelta)
    )
    assert deltas == (Skip(6, 7),)
    assert skip_where(logged(LOG), lambda row: row.number % 4 == 0) == (Skip(4), Skip(8))


@pytest.mark.parametrize(
    "changes",
    [
        [Skip(0)],
        [Skip(9)],
        [Skip(7, 9)],
        [Skip(5, 4)],
        [Skip(1), Skip(1)],
        [Skip(1, 5), Replace(3, Stop())],
        [Replace(2, Stop()), Replace(2, Stop())],
        [Replace(-1, Stop())],
        [Insert(9, (Stop(),))],
        [Insert(-1, (Stop(),))],
    ],
)
def test_changes_that_make_no_sense_are_refused(changes: list[Change]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        what_if(logged(LOG), changes)
    assert caught.value.name == "changes"


def test_only_a_whole_log_can_be_changed() -> None:
    with pytest.raises(InvalidArgument, match="2 stands where 1"):
        what_if(logged(LOG)[1:], [])


def test_changes_and_their_outcome_are_data() -> None:
    changes: list[Change] = [Skip(1), Skip(2, 3), Replace(5, LOG[4]), Insert(8, (Stop(),))]
    body = msgspec.json.encode(changes)
    assert b'{"type":"skip","first":2,"last":3}' in body
    assert msgspec.json.decode(body, type=list[Change]) == changes
    found = what_if(logged(LOG), changes)
    assert msgspec.json.decode(encoded(found, "outcome", 99), type=WhatIf) == found


def test_a_long_log_takes_little_time() -> None:
    log: list[SessionAction] = []
    for turn in range(4_000):
        message, call = f"m{turn}", f"c{turn}"
        log += [Send(f"u{turn}", "And now?"), Part(MessageStart(message))]
        log += [Part(TextDelta(message, "some text "))] * 20
        log += [Part(ToolCall(message, call, "search", {"query": turn})), Part(ToolResult(call, {"found": [turn]}))]
        log += [Part(StepFinish(1))]
    rows = logged(log)
    steps = skip_where(rows, lambda row: isinstance(row.action, Part) and isinstance(row.action.part, StepFinish))
    start = perf_counter()
    found = what_if(rows, [*steps, Skip(len(log) - 2)])
    assert perf_counter() - start < 10, "100,000 actions are folded, not stepped through"
    assert (found.first, found.lost) == (len(log) - 2, (len(log) - 1,))
