"""Blame: what it says is checked against the reducer, one action at a time, for every place of random logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logged_rows import rows, stepped
from msgspec import UNSET

from talkfold import (
    AgentMessage,
    AgentPart,
    Finish,
    InvalidArgument,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    SessionState,
    Stop,
    TextDelta,
    TextPart,
    ToolCall,
    ToolError,
    ToolPart,
    ToolPhase,
    ToolResult,
    encode_state,
    fold,
)
from talkfold.audit.blame import Blame, Contribution, Field, Place, PlaceStep, place_at
from talkfold.codec.text import encoded
from talkfold.testing.strategies import logs

pytestmark = pytest.mark.timeout(900)  # the long profile tries twenty times as often

Steps = tuple[PlaceStep, ...]


def places(messages: Sequence[AgentMessage]) -> Iterator[tuple[Steps, AgentMessage | AgentPart]]:
    """Every message and part at every depth, each with its place."""
    levels: list[tuple[Steps, Sequence[AgentMessage]]] = [((), messages)]
    for around, level in levels:
        for m, message in enumerate(level):
            yield (*around, PlaceStep(m)), message
            for p, part in enumerate(message.parts):
                here = (*around, PlaceStep(m, p))
                yield here, part
                if isinstance(part, ToolPart) and part.agent is not None:
                    levels.append((here, part.agent.messages))


def units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def brought(action: SessionAction) -> str:
    """The text that an action carries."""
    what = action.part if isinstance(action, Part) else action
    return what.delta if isinstance(what, TextDelta) else cast("Send", what).text


def value(part: AgentMessage | AgentPart, field: Field) -> bytes | None:
    """A field's JSON, None when it is not set."""
    found = getattr(part, "provider_metadata" if field == "providerMetadata" else field)
    unset = found is UNSET or (found is None and field in ("error", "prompt"))
    return None if unset else encoded(found, "value", 10**9)


def shell(part: AgentMessage | AgentPart) -> bytes:
    """A part's JSON without its nested run."""
    return encoded(msgspec.structs.replace(part, agent=None) if isinstance(part, ToolPart) else part, "x", 10**9)


FIELDS: dict[type, tuple[Field, ...]] = {
    TextPart: ("text",),
    ToolPart: ("input", "output", "error", "prompt", "providerMetadata"),
}


# ---- for every log ------------------------------------------------------------------------------------------


@given(logs())
def test_the_blamed_structure_is_that_of_the_fold(log: list[SessionAction]) -> None:
    blame = Blame(rows(log))
    state = fold(log)
    assert encode_state(blame.state) == encode_state(state)
    for steps, what in places(state.messages):
        assert len(blame.of(Place(steps))) == 1
        if isinstance(what, AgentMessage):
            with pytest.raises(InvalidArgument):
                blame.of(Place((*steps[:-1], PlaceStep(cast("int", steps[-1].message), len(what.parts) + 99))))


@given(logs())
def test_deltas_that_contributed_are_the_text(log: list[SessionAction]) -> None:
    blame = Blame(rows(log))
    for steps, part in places(fold(log).messages):
        if not isinstance(part, TextPart):
            continue
        text = units(part.text)
        at = 0
        for one in blame.of(Place(steps, "text")):
            assert one.in_text is not None
            assert one.in_delta is not None
            delta = units(brought(log[one.number - 1]))
            assert one.in_text == (at, at + len(delta) // 2)
            assert one.in_delta == (0, len(delta) // 2)
            assert text[2 * at : 2 * at + len(delta)] == delta
            at = one.in_text[1]
        assert at == len(text) // 2


@given(logs(), st.data())
def test_a_range_is_told_by_those_who_reach_into_it(log: list[SessionAction], data: st.DataObject) -> None:
    blame = Blame(rows(log))
    for steps, part in places(fold(log).messages):
        if isinstance(part, TextPart):
            text = units(part.text)
            start, end = sorted(data.draw(st.integers(0, len(text) // 2 + 1)) for _ in "ab")
            told = blame.of(Place(steps, "text", start, end))
            got = b""
            for one in told:
                low, high = cast("tuple[int, int]", one.in_delta)
                assert low < high
                got += units(brought(log[one.number - 1]))[2 * low : 2 * high]
            assert got == text[2 * start : 2 * end]
            whole = [one.number for one in blame.of(Place(steps, "text"))]
            assert [one.number for one in told] == [number for number in whole if number in {o.number for o in told}]


def life(states: Sequence[SessionState], steps: Steps) -> list[tuple[int, AgentMessage | AgentPart]]:
    """What stood at a place of the last state: after its birth and every action since. What is removed is away
    for at least one action, so walking back as long as something is there finds the birth."""
    found: list[tuple[int, AgentMessage | AgentPart]] = []
    for number in range(len(states) - 1, -1, -1):
        what = dict(places(states[number].messages)).get(steps)
        if what is None:
            break
        found.append((number, what))
    return found[::-1]


@given(logs())
def test_every_change_that_the_reducer_makes_is_told(log: list[SessionAction]) -> None:
    blame, states = Blame(rows(log)), stepped(log)
    for steps, _ in places(states[-1].messages):
        lived = life(states, steps)
        assert [one.number for one in blame.of(Place(steps))] == [lived[0][0]]
        for field in FIELDS.get(type(lived[0][1]), ()):
            before, expected = None, []
            for number, part in lived:
                now = value(part, field)
                if now != before:
                    expected.append((number, now is None))
                before = now
            assert [(one.number, one.removed) for one in blame.of(Place(steps, field))] == expected
        if isinstance(lived[0][1], ToolPart):
            a_call_is_told(blame, steps, cast("list[tuple[int, ToolPart]]", lived))


def a_call_is_told(blame: Blame, steps: Steps, lived: list[tuple[int, ToolPart]]) -> None:
    changes = [
        lived[0],
        *(now for before, now in pairwise(lived) if shell(before[1]) != shell(now[1])),
    ]
    assert [(one.number, one.state) for one in blame.of(Place(steps, "state"))] == [
        (n, call.state) for n, call in changes
    ]
    begun = [number for number, call in lived if call.agent is not None][:1]
    assert [one.number for one in blame.of(Place(steps, "agent"))] == begun


@given(logs())
def test_the_session_s_own_fields(log: list[SessionAction]) -> None:
    blame, states = Blame(rows(log)), stepped(log)
    pairs = list(pairwise(states))
    status = [(n, now.status) for n, (before, now) in enumerate(pairs, 1) if before.status != now.status]
    error = [(n, now.error is None) for n, (before, now) in enumerate(pairs, 1) if before.error != now.error]
    assert [(one.number, one.state) for one in blame.of(Place((), "status"))] == status
    assert [(one.number, one.removed) for one in blame.of(Place((), "error"))] == error


def fields(what: AgentMessage | AgentPart) -> tuple[Field | None, ...]:
    return (None, *FIELDS.get(type(what), ()), *(("state", "agent") if isinstance(what, ToolPart) else ()))


@given(logs(), st.data())
def test_blame_at_a_number_is_blame_of_the_prefix(log: list[SessionAction], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(log)))
    whole, prefix = Blame(rows(log)), Blame(rows(log[:at]))
    for steps, what in places(fold(log[:at]).messages):
        for field in fields(what):
            assert whole.of(Place(steps, field), at=at) == prefix.of(Place(steps, field))
    for field in ("status", "error"):
        assert whole.of(Place((), field), at=at) == prefix.of(Place((), field))


@given(logs())
def test_what_is_gone_names_who_removed_it(log: list[SessionAction]) -> None:
    blame, states = Blame(rows(log)), stepped(log)
    for number, (before, now) in enumerate(pairwise(states), 1):
        there = dict(places(now.messages))
        for steps, what in places(before.messages):
            if steps not in there:
                by = "reset" if isinstance(log[number - 1], Reset) else "retry"
                for field in fields(what):
                    assert blame.of(Place(steps, field), at=number) == (Contribution(number, by, removed=True),)


@given(logs())
def test_a_message_can_be_named_by_id_and_occurrence(log: list[SessionAction]) -> None:
    blame = Blame(rows(log))
    seen: dict[tuple[Steps, str], int] = {}
    newest: dict[tuple[Steps, str], PlaceStep] = {}
    for steps, what in places(fold(log).messages):
        if isinstance(what, AgentMessage):
            around, key = steps[:-1], (steps[:-1], what.id)
            nth = seen[key] = seen.get(key, -1) + 1
            newest[key] = steps[-1]
            assert blame.of(Place((*around, PlaceStep(what.id, None, nth)))) == blame.of(Place(steps))
    for (around, message_id), step in newest.items():
        assert blame.of(Place((*around, PlaceStep(message_id)))) == blame.of(Place((*around, step)))


@given(logs())
def test_answers_and_questions_have_a_json_form(log: list[SessionAction]) -> None:
    blame = Blame(rows(log))
    for steps, what in places(fold(log).messages):
        for field in fields(what):
            place = Place(steps, field)
            told = blame.of(msgspec.json.decode(msgspec.json.encode(place), type=Place))
            assert msgspec.json.decode(msgspec.json.encode(told), type=tuple[Contribution, ...]) == blame.of(place)
            assert blame.of(place_at(pointer(place))) == told


def pointer(place: Place) -> str:
    text = ""
    for step in place.steps:
        text += ("/agent" if text else "") + f"/messages/{step.message}"
        text += "" if step.part is None else f"/parts/{step.part}"
    return text + (f"/{place.field}" if place.field else "")


# ---- by hand -------------------------------------------------------------------------------------------------

CALL_A_CLERK: list[SessionAction] = [
    Send("u", "Book it"),
    Part(MessageStart("m")),
    Part(TextDelta("m", "Let me ")),
    Part(TextDelta("m", "see.")),
    Part(ToolCall("m", "c", "delegate_to_clerk", {"flight": 7})),  # 5
    Part(MessageStart("n"), "c"),
    Part(ToolCall("n", "c", "book", {}), "c"),
    ToolPhase("book", "awaiting-confirmation", "Book it?"),
    ToolPhase("book", "running"),
    Part(ToolResult("c", "booked"), "c"),  # 10
    Part(ToolResult("c", "done")),
    Part(ToolError("c", "Error: too late")),
    Part(RunError("lost", "network")),
]


def at(*steps: PlaceStep, field: Field | None = None) -> Place:
    return Place(steps, field)


def test_a_call_tells_its_whole_history() -> None:
    blame = Blame(rows(CALL_A_CLERK))
    outer, inner = PlaceStep("m", 1), PlaceStep("n", 0)
    assert blame.of(at(outer, inner, field="state")) == (
        Contribution(7, "tool-call", "running"),
        Contribution(8, "toolPhase awaiting-confirmation", "awaiting-confirmation"),
        Contribution(9, "toolPhase running", "running"),
        Contribution(10, "tool-result", "done"),
    )
    assert blame.of(at(outer, field="state")) == (
        Contribution(5, "tool-call", "running"),
        Contribution(11, "tool-result", "done"),
        Contribution(12, "tool-error", "error"),
    )
    assert blame.of(at(outer, inner, field="prompt")) == (
        Contribution(8, "toolPhase awaiting-confirmation"),
        Contribution(9, "toolPhase running", removed=True),
    )
    assert blame.of(at(outer, field="output")) == (
        Contribution(11, "tool-result"),
        Contribution(12, "tool-error", removed=True),
    )
    assert blame.of(at(outer, field="agent")) == (Contribution(6, "message-start"),)
    assert blame.of(at(outer, field="agent"), at=5) == ()
    assert blame.of(at(outer, field="error"), at=11) == ()
    assert blame.of(Place((), "status")) == (
        Contribution(1, "send", "streaming"),
        Contribution(13, "error", "error"),
    )


def test_a_range_of_text_and_halves_of_a_character() -> None:
    log: list[SessionAction] = [
        Part(MessageStart("m")),
        Part(TextDelta("m", "ab\ud83d")),
        Part(TextDelta("m", "")),
        Part(TextDelta("m", "\ude00\U0001f600c")),
    ]
    blame = Blame(rows(log))
    assert fold(log).messages[0].parts == (TextPart("ab\U0001f600\U0001f600c"),)
    step = (PlaceStep(0, 0),)
    assert blame.of(Place(step, "text")) == (
        Contribution(2, "text-delta", in_text=(0, 3), in_delta=(0, 3)),
        Contribution(4, "text-delta", in_text=(3, 7), in_delta=(0, 4)),
    )
    assert blame.of(Place(step, "text", 2, 4)) == (
        Contribution(2, "text-delta", in_text=(2, 3), in_delta=(2, 3)),
        Contribution(4, "text-delta", in_text=(3, 4), in_delta=(0, 1)),
    )
    assert blame.of(Place(step, "text", 2, 99), at=3) == (
        Contribution(2, "text-delta", in_text=(2, 3), in_delta=(2, 3)),
    )
    assert blame.of(Place(step, "text", 7)) == ()


def test_retry_and_reset_are_named_and_what_was_there_is_still_known() -> None:
    log: list[SessionAction] = [
        Send("u", "go"),
        Part(MessageStart("m")),
        Part(TextDelta("m", "cut")),
        Stop(),
        Retry(),
        Part(MessageStart("m")),
        Part(TextDelta("m", "whole")),
        Part(Finish("stop")),
        Reset(),
    ]
    blame = Blame(rows(log))
    text = at(PlaceStep("m", 0), field="text")
    assert [one.number for one in blame.of(text, at=4)] == [3]
    assert blame.of(text, at=5) == (Contribution(5, "retry", removed=True),)
    assert [one.number for one in blame.of(text, at=8)] == [7]
    assert blame.of(text) == (Contribution(9, "reset", removed=True),)
    assert blame.of(at(PlaceStep(0))) == (Contribution(9, "reset", removed=True),)
    assert blame.of(Place((), "status"))[-1] == Contribution(8, "finish stop", "idle")


@pytest.mark.parametrize(
    "place",
    [
        Place(),
        Place((), "text"),
        at(PlaceStep("nobody")),
        at(PlaceStep(9)),
        at(PlaceStep(-1)),
        at(PlaceStep("m", occurrence=1)),
        at(PlaceStep("m", 9)),
        at(PlaceStep("m", -1)),
        at(PlaceStep("m"), field="text"),
        at(PlaceStep("m"), PlaceStep("n")),
        at(PlaceStep("m", 0), PlaceStep("n")),
        at(PlaceStep("m", 0), field="state"),
        at(PlaceStep("m", 1), field="text"),
        at(PlaceStep("m", 1), field="status"),
        Place((PlaceStep("m", 1),), "input", 0, 1),
        Place((PlaceStep("m", 0),), "text", -1, 1),
        Place((PlaceStep("m", 0),), "text", 3, 2),
    ],
)
def test_where_nothing_can_be_the_question_is_refused(place: Place) -> None:
    with pytest.raises(InvalidArgument, match="place"):
        Blame(rows(CALL_A_CLERK)).of(place)


@pytest.mark.parametrize("number", [-1, 14])
def test_a_number_that_the_log_has_not_is_refused(number: int) -> None:
    with pytest.raises(InvalidArgument, match="at: "):
        Blame(rows(CALL_A_CLERK)).of(Place((), "status"), at=number)


@pytest.mark.parametrize(
    "text",
    ["", "/", "messages/0", "/messages", "/messages/x", "/messages/-1", "/messages/0/parts", "/messages/0/text",
     "/messages/0/parts/0/agent/messages/x", "/messages/0/parts/0/name", "/messages/0/parts/0/text/0"],
)  # fmt: skip
def test_a_pointer_to_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="place"):
        place_at(text)


def test_a_pointer_into_a_value_means_the_whole_of_it() -> None:
    assert place_at("/messages/0/parts/1/input/flight") == at(PlaceStep(0, 1), field="input")
    assert place_at("/error/message") == Place((), "error")


@pytest.mark.timeout(60)
def test_a_long_log_is_folded_once_and_asked_often() -> None:
    """What is quadratic would take minutes: one long text, many messages, calls that stay open, many questions."""
    log: list[SessionAction] = [Part(MessageStart("m")), *(Part(TextDelta("m", "word ")) for _ in range(50_000))]
    for n in range(10_000):
        log += [Part(ToolCall("m", f"c{n}", f"t{n % 7}", {})), Part(TextDelta("m", "x"))]
        log += [Part(ToolResult(f"c{n}", n))] if n % 2 else [ToolPhase(f"t{n % 7}", "awaiting-confirmation")]
        log += [Part(MessageStart(f"m{n}"))]
    log += [Stop()]
    blame = Blame(rows(log))
    for n in range(10_000):
        (one,) = blame.of(Place((PlaceStep("m", 0),), "text", 5 * n, 5 * n + 1))
        assert one.number == n + 2
        assert blame.of(at(PlaceStep("m", 2 * n + 1), field="state"))[-1].state == ("done" if n % 2 else "cancelled")
        assert len(blame.of(at(PlaceStep(f"m{n}")))) == 1


def test_what_came_at_once_is_told_as_one() -> None:
    log: list[SessionAction] = [
        Send("u", "hello"),
        Part(MessageStart("m")),
        Part(Reasoning("m", "hm, well", {"signature": "sig=="})),
    ]
    blame = Blame(rows(log))
    assert blame.of(Place((PlaceStep("u", 0),), "text", 1, 3)) == (
        Contribution(1, "send", in_text=(1, 3), in_delta=(1, 3)),
    )
    assert blame.of(at(PlaceStep("m", 0), field="text")) == (
        Contribution(3, "reasoning", in_text=(0, 8), in_delta=(0, 8)),
    )
    assert blame.of(at(PlaceStep("m", 0), field="providerMetadata")) == (Contribution(3, "reasoning"),)


@given(logs())
def test_an_action_is_blamed_when_it_changed_something_and_only_then(log: list[SessionAction]) -> None:
    """Asked after every action: what the newest one did is told somewhere, unless the reducer says it did nothing."""
    blame, states = Blame(rows(log)), stepped(log)
    for number, (before, now) in enumerate(pairwise(states), 1):
        there = [*places(before.messages), *places(now.messages)]
        asked = [Place(steps, field) for steps, what in there for field in fields(what)]
        told = {
            one.number
            for place in [*asked, Place((), "status"), Place((), "error")]
            for one in blame.of(place, at=number)
            if one.number >= number
        }
        assert told == (set() if before is now else {number})
