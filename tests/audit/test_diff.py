"""A diff is exact, empty for equal states, small for small changes, and matches by identity, not by position."""

from __future__ import annotations

import sys
from contextlib import suppress
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from talkfold import (
    EMPTY_SESSION,
    AgentMessage,
    AgentRun,
    Finish,
    InvalidAction,
    InvalidArgument,
    InvalidJson,
    MessageStart,
    Part,
    Reasoning,
    ReasoningPart,
    Retry,
    Send,
    SessionAction,
    SessionError,
    SessionState,
    TextDelta,
    TextPart,
    TooLarge,
    ToolCall,
    ToolError,
    ToolPart,
    ToolPhase,
    ToolResult,
    decode_state,
    encode_action,
    encode_state,
    fold,
    session_reducer,
)
from talkfold.audit.diff import diff
from talkfold.audit.edits import (
    EditText,
    JsonEdit,
    OrderKeys,
    SetValue,
    SpliceArray,
    TextEdit,
    json_edits,
    text_edits,
    with_json_edits,
    with_text_edits,
)
from talkfold.audit.operations import (
    ChangeCall,
    Changed,
    ChangeMessage,
    ChangeReasoning,
    ChangeText,
    Diff,
    InsertMessage,
    InsertPart,
    LevelDiff,
    MoveMessage,
    MovePart,
    RemoveMessage,
    RemovePart,
    decode_diff,
    encode_diff,
)
from talkfold.audit.patch import apply
from talkfold.audit.view import EXCERPT, describe
from talkfold.codec.text import encoded
from talkfold.testing.strategies import actions, json_values, logs, plausible_logs, states, texts

pytestmark = pytest.mark.timeout(900)


def written(value: object) -> bytes:
    """The value's JSON: 1, 1.0 and True are three values there, and the order of keys counts."""
    return encoded(value, "value", sys.maxsize)


def session(*messages: AgentMessage) -> SessionState:
    return SessionState(messages, "idle")


def says(message_id: str, *parts: str | ToolPart | ReasoningPart) -> AgentMessage:
    return AgentMessage(
        message_id, "assistant", tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    )


def call(call_id: str, name: str = "search", agent: AgentRun | None = None) -> ToolPart:
    return ToolPart(call_id, name, {}, "running", agent=agent)


def operations(before: SessionState, after: SessionState) -> tuple[object, ...]:
    """What changed on the session's own level."""
    found = diff(before, after)
    assert written(apply(before, found)) == written(after)
    return found.levels[0].messages if found.levels else ()


def part_operations(before: AgentMessage, after: AgentMessage) -> tuple[object, ...]:
    found = operations(session(before), session(after))
    if not found:
        return ()
    (change,) = found
    assert isinstance(change, ChangeMessage)
    return change.parts


# ---- laws ---------------------------------------------------------------------------------------------------


@given(states(), states())
def test_applied_it_gives_the_state_after(before: SessionState, after: SessionState) -> None:
    """Also between sessions that have nothing in common, and as JSON."""
    found = diff(before, after)
    assert written(apply(before, found)) == written(after)
    assert apply(before, found) == after
    body = encode_diff(found)
    again = decode_diff(body)
    assert encode_diff(again) == body
    assert written(apply(before, again)) == written(after)


@given(logs(), st.data())
def test_between_any_two_numbers_of_a_session(log: list[SessionAction], data: st.DataObject) -> None:
    lengths = st.integers(0, len(log))
    before, after = fold(log[: data.draw(lengths)]), fold(log[: data.draw(lengths)])
    assert written(apply(before, diff(before, after))) == written(after)


@given(states(), st.lists(actions(), max_size=6))
def test_between_states_that_share_objects(before: SessionState, log: list[SessionAction]) -> None:
    """Whether they share them or not."""
    after = fold(log, before)
    copy = decode_state(encode_state(after))
    assert written(apply(before, diff(before, after))) == written(after)
    assert written(apply(before, diff(before, copy))) == written(after)


@given(states(), states())
def test_empty_means_equal(one: SessionState, other: SessionState) -> None:
    assert bool(diff(one, other)) == (written(one) != written(other))
    assert diff(one, decode_state(encode_state(one))) == Diff()
    assert apply(one, Diff()) is one


@given(states(), states())
def test_the_same_question_gets_the_same_answer(before: SessionState, after: SessionState) -> None:
    copies = decode_state(encode_state(before)), decode_state(encode_state(after))
    assert encode_diff(diff(*copies)) == encode_diff(diff(*copies))


@given(states(), states())
def test_nothing_that_goes_in_is_changed(before: SessionState, after: SessionState) -> None:
    bodies = written(before), written(after)
    apply(before, diff(before, after))
    assert (written(before), written(after)) == bodies


@given(states(), states(), states())
def test_for_another_state_it_fits_or_is_refused(
    before: SessionState, after: SessionState, other: SessionState
) -> None:
    with suppress(InvalidArgument):
        apply(other, diff(before, after))


SMALL = (Send, MessageStart, TextDelta, Reasoning, ToolCall, ToolResult, ToolError, ToolPhase)


@given(plausible_logs())
def test_what_one_action_changes_is_small(log: list[SessionAction]) -> None:
    """In proportion to the action, and to how many runs it is nested in; whatever the session already holds."""
    state = EMPTY_SESSION
    for action in log:
        after = session_reducer(state, action)
        if isinstance(action.part if isinstance(action, Part) else action, SMALL):
            found = diff(state, after)
            limit = 200 + 2 * len(encode_action(action)) + 150 * len(found.levels)
            assert len(encode_diff(found)) <= limit
        state = after


@given(texts(), texts())
def test_texts(before: str, after: str) -> None:
    edits = text_edits(before, after)
    assert with_text_edits(before, edits) == after
    assert bool(edits) == (before != after)


@given(st.text("ab c\n\ud83d"), st.text("ab c\n\ud83d"))
def test_edits_of_a_text_stand_in_order_and_apart(before: str, after: str) -> None:
    edits = text_edits(before, after)
    assert with_text_edits(before, edits) == after
    ends = [edit.at + len(edit.removed) for edit in edits]
    assert all(end < edit.at for end, edit in zip(ends, edits[1:], strict=False))


@given(json_values(), json_values())
def test_json(before: object, after: object) -> None:
    body = written(before)
    edits = json_edits(before, after)
    assert written(with_json_edits(before, edits)) == written(after)
    assert bool(edits) == (body != written(after))
    assert written(before) == body


# ---- text -----------------------------------------------------------------------------------------------------


def test_text_that_grew_is_one_append() -> None:
    changes = part_operations(says("m", "some text"), says("m", "some text and more"))
    assert changes == (ChangeText(0, (TextEdit(9, "", " and more"),)),)


def test_offsets_are_code_points() -> None:
    assert text_edits("\U0001f600 one", "\U0001f600 two") == (TextEdit(2, "one", "two"),)
    assert text_edits("a\ud83d", "a\U0001f600") == (TextEdit(1, "\ud83d", "\U0001f600"),)


def test_text_is_edited_by_words() -> None:
    before = "The flight leaves at nine and lands at noon in Rome."
    after = "The flight leaves at ten and lands at noon in Oslo."
    assert text_edits(before, after) == (TextEdit(21, "nine", "ten"), TextEdit(47, "Rome", "Oslo"))


# ---- JSON -----------------------------------------------------------------------------------------------------


def test_json_is_edited_by_pointer() -> None:
    before = {"from": "TLV", "legs": [{"no": 1}, {"no": 2}], "a/b~": 1, "gone": None}
    after = {"from": "JFK", "legs": [{"no": 1}, {"no": 2.0}, {"no": 3}], "a/b~": 1.0, "new": None}
    edits = json_edits(before, after)
    assert {edit.path for edit in edits} == {"/from", "/legs", "/legs/1/no", "/a~1b~0", "/gone", "/new"}
    assert SetValue("/gone", before=None) in edits
    assert SetValue("/new", after=None) in edits


def test_an_item_taken_out_of_an_array_is_one_edit() -> None:
    (edit,) = json_edits([*range(1000)], [*range(500), *range(501, 1000)])
    assert (edit.path, len(written(edit)) < 100) == ("", True)


def test_the_order_of_keys_counts() -> None:
    (edit,) = json_edits({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert [*with_json_edits({"a": 1, "b": 2}, [edit])] == ["b", "a"]


def test_null_is_a_value_and_absent_is_not() -> None:
    done = ToolPart("c", "f", {}, "done", None)
    (change,) = part_operations(says("m", call("c", "f")), says("m", done))
    assert isinstance(change, ChangeCall)
    assert (change.state, change.output) == (Changed("running", "done"), (SetValue("", after=None),))
    assert decode_diff(encode_diff(diff(session(says("m", call("c", "f"))), session(says("m", done))))).levels


def test_a_long_string_in_a_value_is_edited() -> None:
    page = "A line of a long page. " * 50
    (edit,) = json_edits({"content": [{"text": page}]}, {"content": [{"text": page + "More."}]})
    assert edit == EditText("/content/0/text", (TextEdit(len(page), "", "More."),))
    (edit,) = json_edits({"text": page}, {"text": "Nothing like it. " * 50})
    assert isinstance(edit, SetValue)
    with pytest.raises(InvalidArgument):
        with_json_edits({"text": 1}, [EditText("/text", ())])


@pytest.mark.parametrize(
    ("value", "edit"),
    [
        ({}, SetValue("/a/b", after=1)),
        ([], SetValue("/0", after=1)),
        ([1], SetValue("/-1", 1, 2)),
        ([1], SetValue("/x", after=2)),
        ({"a": 1}, SetValue("/a", 1.0, 2)),
        ({"a": 1}, SetValue("/a", after=2)),
        ({}, SetValue("/a", 1)),
        ([1, 2], SpliceArray("", 2, (3,))),
        ({}, SpliceArray("", 0, (), (1,))),
        ([1], OrderKeys("", ("a",), ("a",))),
        ({"a": 1}, OrderKeys("", ("a",), ("b",))),
        (1, SetValue("/a", after=1)),
        ({}, EditText("/a", (TextEdit(0, "", "x"),))),
    ],
)
def test_edits_of_another_value_are_refused(value: object, edit: JsonEdit) -> None:
    with pytest.raises(InvalidArgument):
        with_json_edits(value, [edit])


# ---- identity ---------------------------------------------------------------------------------------------------


def test_a_message_put_in_front_changes_no_other() -> None:
    old = [says(f"m{number}", f"text {number}") for number in range(50)]
    assert operations(session(*old), session(says("new", "x"), *old)) == (InsertMessage(0, says("new", "x")),)
    assert operations(session(*old), session(*old[:20], *old[21:])) == (RemoveMessage(20, old[20]),)


def test_messages_of_one_id_belong_together_in_order() -> None:
    before = session(says("a", "one"), says("a", "two"), says("a", "three"))
    assert operations(before, session(says("a", "two"), says("a", "three"))) == (RemoveMessage(0, says("a", "one")),)
    (change,) = operations(before, session(says("a", "one"), says("a", "two, too"), says("a", "three")))
    assert change == ChangeMessage(1, "a", "assistant", (ChangeText(0, (TextEdit(3, "", ", too"),)),))


def test_the_same_id_of_another_role_is_another_message() -> None:
    asked = AgentMessage("a", "user", (TextPart("x"),))
    assert {type(each) for each in operations(session(asked), session(says("a", "x")))} == {
        RemoveMessage,
        InsertMessage,
    }


def test_what_moved_is_told_as_moved() -> None:
    one, two, three = says("1", "a"), says("2", "b"), says("3", "c")
    assert operations(session(one, two, three), session(three, one, two)) == (MoveMessage(2, 0, "3", "assistant"),)
    changes = part_operations(says("m", call("c"), call("d"), call("e")), says("m", call("e"), call("c"), call("d")))
    assert changes == (MovePart(2, 0, "e"),)


def test_calls_are_found_by_their_ids() -> None:
    before = says("m", "Let me see.", call("c"), "Found.", call("d"))
    after = says("m", "Let me see.", call("b"), "Well.", call("c"), "Found it.", call("d"))
    assert part_operations(before, after) == (
        InsertPart(1, call("b")),
        InsertPart(2, TextPart("Well.")),
        ChangeText(2, (TextEdit(5, "", " it"),)),
    )


def test_text_and_reasoning_stand_between_the_same_calls() -> None:
    before = says("m", ReasoningPart("hm", {"signature": "a"}), "one", call("c"), "two")
    after = says("m", ReasoningPart("hm", {"signature": "b"}), call("c"), "two")
    removed, changed = part_operations(before, after)
    assert removed == RemovePart(1, TextPart("one"))
    assert changed == ChangeReasoning(0, (), (SetValue("/signature", "a", "b"),))


def test_a_change_deep_in_nested_runs_names_only_the_way_there() -> None:
    log: list[SessionAction] = [Send("u", "go"), Part(MessageStart("m"))]
    log.append(Part(ToolCall("m", "c0", "delegate_to_clerk", {})))
    for depth in range(5):
        log.append(Part(MessageStart("m"), f"c{depth}"))
        log.append(Part(TextDelta("m", "long text " * 100), f"c{depth}"))
        log.append(Part(ToolCall("m", f"c{depth + 1}", "delegate_to_clerk", {}), f"c{depth}"))
    before = fold(log)
    after = session_reducer(before, Part(ToolResult("c5", "done"), "c4"))
    found = diff(before, after)
    assert [level.call and level.call.id for level in found.levels] == [None, "c0", "c1", "c2", "c3", "c4"]
    assert [len(level.messages) for level in found.levels] == [0, 0, 0, 0, 0, 1]
    assert len(encode_diff(found)) < 1000
    assert apply(before, found) == after
    kinds = {line.kind for line in describe(found)}
    assert kinds == {"call-state", "call-output"}


def test_runs_may_nest_without_end() -> None:
    levels = 3000
    log: list[SessionAction] = [Part(MessageStart("m")), Part(ToolCall("m", "c0", "delegate_to_a", {}))]
    for depth in range(levels):
        log.append(Part(MessageStart("m"), f"c{depth}"))
        log.append(Part(ToolCall("m", f"c{depth + 1}", "delegate_to_a", {}), f"c{depth}"))
    before = fold(log)
    after = fold([Part(TextDelta("m", "here"), f"c{levels - 1}")], before)
    found = diff(before, after)
    assert len(found.levels) == levels + 1
    assert not diff(after, apply(before, found))
    (line,) = describe(decode_diff(encode_diff(found)))
    assert len(line.where) < 200


# ---- small and quick ---------------------------------------------------------------------------------------------


def long_log(turns: int) -> list[SessionAction]:
    log: list[SessionAction] = []
    for turn in range(turns):
        message, call_id = f"m{turn}", f"c{turn}"
        log += [
            Send(f"u{turn}", "And now?"),
            Part(MessageStart(message)),
            Part(TextDelta(message, "Let me see. ")),
            Part(ToolCall(message, call_id, "search", {"query": turn})),
            Part(ToolResult(call_id, {"found": [turn]})),
            Part(TextDelta(message, "Found ")),
            Part(TextDelta(message, "it.")),
            Part(Finish("stop")),
        ]
    return log


def test_small_changes_of_a_long_conversation_are_small_and_found_quickly() -> None:
    before = fold(long_log(12_500))
    late: list[SessionAction] = [Send("u", "Thanks"), Part(TextDelta("m3", " Sorry."))]
    after = fold(late, before)
    best = min(_timed(before, after) for _ in range(5))
    assert best < 0.05, "25,000 messages are looked at, not compared"
    found = diff(before, after)
    assert len(encode_diff(found)) < 500
    assert apply(before, found) == after
    assert {type(each) for each in found.levels[0].messages} == {ChangeMessage, InsertMessage}


def _timed(before: SessionState, after: SessionState) -> float:
    start = perf_counter()
    diff(before, after)
    return perf_counter() - start


def test_a_hundred_thousand_calls_in_one_message() -> None:
    before = session(says("m", *(call(f"c{number}") for number in range(100_000))))
    parts = before.messages[0].parts
    after = session(AgentMessage("m", "assistant", (*parts[50_000:], *parts[:50_000])))
    start = perf_counter()
    assert apply(before, diff(before, after)) == after
    assert perf_counter() - start < 20


# ---- refusals -------------------------------------------------------------------------------------------------


def test_a_diff_of_another_state_is_refused() -> None:
    before, after = fold(long_log(2)), fold(long_log(3))
    found = diff(before, after)
    with pytest.raises(InvalidArgument, match="made for another"):
        apply(EMPTY_SESSION, diff(after, before))
    with pytest.raises(InvalidArgument, match="made for another"):
        apply(EMPTY_SESSION, Diff(Changed("error", "idle")))
    assert apply(apply(before, found), diff(after, before)) == before


@pytest.mark.parametrize(
    "levels",
    [
        [{"messages": [{"type": "insert-message", "to": 7, "message": {"id": "m", "role": "user", "parts": []}}]}],
        [{"messages": [{"type": "move-message", "at": -1, "to": 0, "id": "m", "role": "user"}]}],
        [{"call": {"level": 0, "message": 0, "part": 0, "id": "c", "name": "f"}}],
        [{}, {}],
        [{}, {"call": {"level": 1, "message": 0, "part": 0, "id": "c", "name": "f"}}],
    ],
)
def test_places_that_are_not_there_are_refused(levels: object) -> None:
    found = decode_diff(written({"levels": levels}))
    with pytest.raises(InvalidArgument):
        apply(EMPTY_SESSION, found)


def test_what_is_no_diff_is_refused() -> None:
    with pytest.raises(InvalidJson):
        decode_diff("{")
    with pytest.raises(InvalidAction) as caught:
        decode_diff('{"levels":[{"messages":[{"type":"no-such"}]}]}')
    assert caught.value.path.startswith("$.levels[0].messages[0]")
    with pytest.raises(TooLarge):
        encode_diff(diff(EMPTY_SESSION, fold(long_log(1))), max_bytes=10)


# ---- in words ---------------------------------------------------------------------------------------------------


@given(states(), states())
def test_every_change_has_a_line_that_is_safe_to_show(before: SessionState, after: SessionState) -> None:
    found = diff(before, after)
    lines = [*describe(found)]
    assert bool(lines) == bool(found)
    for line in lines:
        assert line.before is not None or line.after is not None
        for excerpt in (line.before or "", line.after or ""):
            assert len(excerpt) <= EXCERPT
            assert excerpt.isprintable()
        assert line.where.isprintable()


def test_lines_say_what_changed() -> None:
    log: list[SessionAction] = [Send("u", "Hello"), Part(MessageStart("m")), Part(TextDelta("m", "Hi"))]
    log.append(Part(ToolCall("m", "c", "search", {"query": "x"})))
    before = fold(log)
    after = fold([Part(ToolError("c", "Error:\n\x1b[2J")), Part(Finish("stop"))], before)
    said = [(line.kind, line.where, line.before, line.after) for line in describe(diff(before, after))]
    assert said == [
        ("status", "session status", "streaming", "idle"),
        ("call-state", 'message 2 (assistant "m"), call search "c", state', "running", "error"),
        ("call-error", 'message 2 (assistant "m"), call search "c", error', None, "Error:\\n\\u001b[2J"),
    ]
    (gone, *_) = [line for line in describe(diff(after, fold(log[:1]))) if line.kind == "message-removed"]
    assert gone.before == 'Hi · search "c" error {"query":"x"}'


def test_excerpts_of_long_texts_show_where_they_differ() -> None:
    long = "The same words again. " * 20
    before = fold([Part(MessageStart("m")), Part(ToolCall("m", "c", "f", {"q": [long]}))])
    failed, other = (fold([Part(ToolError("c", long + end))], before) for end in ("one", "two"))
    (line,) = describe(diff(failed, other))
    assert (line.before, line.after) == ("…gain. one", "…gain. two")


def test_the_error_and_retry_in_words() -> None:
    before = SessionState((), "error", SessionError("lost", "network"))
    (status, error) = describe(diff(before, EMPTY_SESSION))
    assert (status.before, status.after) == ("error", "idle")
    assert (error.before, error.after) == ("lost (network)", None)
    log = long_log(3)
    cut = diff(fold(log), fold([*log, Retry()]))
    assert [line.kind for line in describe(cut)] == ["status", "text-removed"]


def test_the_parts_of_a_diff_are_data() -> None:
    assert decode_diff(b"{}") == Diff()
    assert not Diff()
    assert LevelDiff() == LevelDiff(None, ())
