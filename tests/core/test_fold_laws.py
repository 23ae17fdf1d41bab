"""The fold is the reducer, one action after the other: for every log, from every state, at every split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import accumulate, cycle
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from wire import alike, same, written

from talkfold import (
    EMPTY_SESSION,
    AgentMessage,
    InvalidAction,
    MessageStart,
    Part,
    Reset,
    Retry,
    Send,
    SessionAction,
    SessionState,
    Stop,
    TextDelta,
    TextPart,
    ToolPart,
    decode_action,
    decode_state,
    encode_action,
    encode_state,
    fold,
    session_reducer,
)
from talkfold.fold import Draft
from talkfold.testing.strategies import actions, logs, states, wild_logs

pytestmark = pytest.mark.timeout(900)  # the long profile tries twenty times as often


def stepped(log: Iterable[SessionAction], state: SessionState = EMPTY_SESSION) -> list[SessionState]:
    """The state before the log and after each of its actions, one step of the reducer each."""
    return list(accumulate(log, session_reducer, initial=state))


def calls(messages: Sequence[AgentMessage]) -> Iterator[ToolPart]:
    """Every call at every depth."""
    levels = [messages]
    while levels:
        for message in levels.pop():
            for part in message.parts:
                if isinstance(part, ToolPart):
                    yield part
                    if part.agent is not None:
                        levels.append(part.agent.messages)


@given(logs())
def test_fold_is_the_reducer_at_every_prefix(log: list[SessionAction]) -> None:
    for length, state in enumerate(stepped(log)):
        assert same(fold(log[:length]), state)


@given(states(), wild_logs())
def test_from_any_state(start: SessionState, log: list[SessionAction]) -> None:
    """Also from states that no log makes."""
    end = stepped(log, start)[-1]
    assert same(fold(log, start), end)


@given(logs(), st.data())
def test_split_anywhere(log: list[SessionAction], data: st.DataObject) -> None:
    """In pieces, each folded from what the one before gave, be it as it was or written and read again."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), min_size=1, max_size=2)))
    warm = cold = EMPTY_SESSION
    for start, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        warm = fold(log[start:end], warm)
        cold = fold(iter(log[start:end]), decode_state(encode_state(cold)))
    whole = fold(decode_action(encode_action(action)) for action in log)
    assert same(warm, whole)
    assert same(cold, whole)


@given(states(), logs(), st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_a_draft_goes_on_after_it_was_frozen(start: SessionState, log: list[SessionAction], sizes: list[int]) -> None:
    draft, at, before = Draft(start), 0, start
    for size in cycle(sizes):
        draft.feed(log[at : at + size])
        state = draft.frozen()
        assert same(state, fold(log[at : at + size], before))
        assert draft.frozen() is state
        assert all(
            (now is then) == (once is then)
            for now, once, then in zip(
                state.messages, fold(log[at : at + size], before).messages, before.messages, strict=False
            )
        )
        at, before = at + size, state
        if at >= len(log):
            break


@given(states(), wild_logs())
def test_nothing_that_goes_in_is_changed(start: SessionState, log: list[SessionAction]) -> None:
    before, bodies = written(start), [encode_action(action) for action in log]
    fold(log, start)
    stepped(log, start)
    assert written(start) == before
    assert [encode_action(action) for action in log] == bodies


@given(states(), actions())
def test_unchanged_is_the_same_object_and_changed_is_another(state: SessionState, action: SessionAction) -> None:
    """By value on the wire, not only by Python's ==, where 1 is 1.0."""
    after = session_reducer(state, action)
    assert (after is state) == same(after, state)
    assert (fold([action], state) is state) == same(after, state)


def parts(messages: Sequence[AgentMessage]) -> Iterator[tuple[tuple[object, ...], object]]:
    """Every message and part at every depth, each with its place."""
    levels: list[tuple[tuple[object, ...], Sequence[AgentMessage]]] = [((), messages)]
    for around, level in levels:
        for m, message in enumerate(level):
            yield (*around, m), message
            for p, part in enumerate(message.parts):
                yield (*around, m, p), part
                if isinstance(part, ToolPart) and part.agent is not None:
                    levels.append(((*around, m, p), part.agent.messages))


@given(states(), actions())
def test_what_an_action_leaves_as_it_was_is_shared(state: SessionState, action: SessionAction) -> None:
    """By reducer and fold alike: no equal copy stands where the old object could stand."""
    for after in (session_reducer(state, action), fold([action], state)):
        now = dict(parts(after.messages))
        for place, old in parts(state.messages):
            new = now.get(place)
            assert new is old or new is None or not alike(new, old), place


@given(states(), wild_logs(max_size=8))
def test_what_a_log_leaves_as_it_was_is_shared(start: SessionState, log: list[SessionAction]) -> None:
    """The fold shares with its start state all that the reducer, step by step, shares."""
    now = dict(parts(fold(log, start).messages))
    before = {id(part) for _, part in parts(start.messages)}
    for place, part in parts(stepped(log, start)[-1].messages):
        assert id(part) not in before or now[place] is part, place


# ---- what the contract promises of every log ---------------------------------------------------------------


@given(logs())
def test_what_the_contract_promises_of_every_log(log: list[SessionAction]) -> None:
    state = fold(log)
    fields_are_those_of_a_calls_state(state)
    people_keep_their_words(log, state)
    stop_leaves_no_call_open(state)
    a_second_retry_is_none(state)
    for each in stepped(log):
        assert each.status != "error" or each.error is not None


def fields_are_those_of_a_calls_state(state: SessionState) -> None:
    for call in calls(state.messages):
        assert (call.output is not UNSET) == (call.state == "done")
        assert call.error is None or call.state in ("error", "cancelled")
        assert call.error is not None or call.state != "error"
        assert call.prompt is None or call.state in ("running", "awaiting-confirmation")
        assert call.agent is None or (call.name == "delegate_to_" + call.agent.id and call.agent.messages)


def people_keep_their_words(log: list[SessionAction], state: SessionState) -> None:
    """No stream part touches what the person wrote: users' messages are the sends since the last reset."""
    sent: list[tuple[str, TextPart]] = []
    for action in log:
        if isinstance(action, Send):
            sent.append((action.id, TextPart(action.text)))
        elif isinstance(action, Reset):
            sent.clear()
    assert [(message.id, *message.parts) for message in state.messages if message.role == "user"] == sent


def stop_leaves_no_call_open(state: SessionState) -> None:
    stopped = session_reducer(state, Stop())
    assert (stopped.status, stopped.error) == ("idle", state.error)
    assert not [call for call in calls(stopped.messages) if call.state in ("running", "awaiting-confirmation")]
    assert session_reducer(stopped, Stop()) is stopped


def a_second_retry_is_none(state: SessionState) -> None:
    again = session_reducer(state, Retry())
    assert session_reducer(again, Retry()) is again
    assert fold([Retry(), Retry()], again) is again


# ---- text is UTF-16 units -----------------------------------------------------------------------------------

_UNITS = st.text(st.sampled_from("a\ud83d\ude00\udbff\udfffé\U0001f600\0"), max_size=5)


def units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


@given(st.lists(_UNITS, min_size=1, max_size=8), st.data())
def test_halves_join_however_they_are_cut(pieces: list[str], data: st.DataObject) -> None:
    """Any pieces, unjoined pairs inside one of them included, give the text that JavaScript's ``+`` would give."""
    log: list[SessionAction] = [Part(MessageStart("m")), *(Part(TextDelta("m", piece)) for piece in pieces)]
    whole = b"".join(map(units, pieces)).decode("utf-16-le", "surrogatepass")
    end = reduce(session_reducer, log, EMPTY_SESSION)
    cut = data.draw(st.integers(0, len(log)))
    for state in (end, fold(log), fold(log[cut:], fold(log[:cut]))):
        assert state.messages[0].parts == (TextPart(whole),)
        assert same(decode_state(encode_state(state)), state)


@given(_UNITS)
def test_what_the_person_wrote_is_joined_as_well(text: str) -> None:
    for state in (session_reducer(EMPTY_SESSION, Send("u", text)), fold([Send("u", text)])):
        assert state.messages[0].parts == (TextPart(units(text).decode("utf-16-le", "surrogatepass")),)


@pytest.mark.parametrize("action", [{"type": "stop"}, b"{}", None, Part(cast("Any", {"type": "finish"}))])
def test_what_is_no_action_is_named(action: Any) -> None:
    with pytest.raises(InvalidAction, match="decode_action"):
        fold([action])
    with pytest.raises(InvalidAction, match="decode_action"):
        session_reducer(EMPTY_SESSION, action)
