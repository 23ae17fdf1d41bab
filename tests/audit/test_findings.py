"""What findings promise: total, one pass, the same however the rows come, and the fold's own view of a log."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from healthy_logs import healthy_logs, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from talkfold import audit
from talkfold.actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Retry,
    Send,
    SessionAction,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from talkfold.audit import Auditor, Finding, findings
from talkfold.audit.findings import AGENT_FAULTS, FINDINGS, HUGE_BYTES, to_page
from talkfold.audit.findings._conversation import Level
from talkfold.audit.findings._telling import Telling
from talkfold.audit.findings._turns import Turns
from talkfold.calls import is_open
from talkfold.codec import encode_action
from talkfold.fold import fold
from talkfold.json_values import json_text
from talkfold.log import LoggedAction
from talkfold.model import AgentMessage, ToolPart
from talkfold.resumable import retry_plan
from talkfold.runs.events import AgentFaultCode
from talkfold.testing.strategies import json_values, logs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "findings.md"

# ---- the whole, over any log ----------------------------------------------------------------------------------

_runs = st.sampled_from((None, "r", "s"))
_metas: st.SearchStrategy[Any] = st.none() | st.dictionaries(
    st.sampled_from(("cause", "faults", "dropped", "reused", "decision", "call", "answers")),
    json_values() | st.sampled_from(("store", "denied", True, 3, [{"code": "no-end", "count": 1, "text": "t"}])),
)


@st.composite
def any_rows(draw: st.DrawFn) -> list[LoggedAction]:
    """Any log, with any envelopes."""
    rows = rows_of(draw(logs()))
    envelope = st.tuples(_runs, st.sampled_from((None, None, "talkfold")), _metas, st.integers(0, 200_000))
    odd = draw(st.lists(envelope, min_size=len(rows), max_size=len(rows)))
    return [
        msgspec.structs.replace(row, run=run, actor=actor, meta=meta, time=time)
        for row, (run, actor, meta, time) in zip(rows, odd, strict=True)
    ]


@given(any_rows() | healthy_logs(), st.data())
def test_it_never_raises_and_splits_do_not_matter(rows: list[LoggedAction], data: st.DataObject) -> None:
    whole = list(findings(rows))
    auditor, split = Auditor(), list[Finding]()
    at = 0
    while at < len(rows):
        size = data.draw(st.integers(1, 7))
        split += auditor.feed(rows[at : at + size])
        auditor.pending()
        at += size
    assert split + auditor.pending() == whole
    numbers = {row.number for row in rows}
    for found in whole:
        kind = FINDINGS[found.code]
        assert (found.severity, found.next_step) == (kind.severity, kind.next_step)
        assert set(found.numbers) <= numbers
        found.text.encode()
        assert msgspec.convert(json.loads(json_text(msgspec.to_builtins(found))), Finding) == found


@given(any_rows())
def test_a_finding_comes_with_its_row(rows: list[LoggedAction]) -> None:
    """What is told of a prefix stays told, and nothing waits for the next row."""
    auditor, taken = Auditor(), 0

    def counted() -> Iterator[LoggedAction]:
        nonlocal taken
        for row in rows:
            taken += 1
            yield row

    by_row = [(n, found) for n, row in enumerate(rows, 1) for found in auditor.feed([row])]
    assert [(taken, found) for found in Auditor().read(counted())] == by_row


# ---- the fold's view ------------------------------------------------------------------------------------------

View = list[tuple[str, list[tuple[str, str, str, Any]]]]


def seen(level: Level | None) -> View:
    """The assistant messages of a level with their calls."""
    if level is None:
        return []
    messages = sorted((m for row in level.messages.values() for m in row), key=lambda message: message.place)
    return [(m.id, [(c.id, c.name, c.state, seen(c.run)) for c in m.calls]) for m in messages]


def folded(messages: tuple[AgentMessage, ...]) -> View:
    return [
        (
            m.id,
            [
                (c.id, c.name, c.state, folded(c.agent.messages if c.agent else ()))
                for c in m.parts
                if isinstance(c, ToolPart)
            ],
        )
        for m in messages
        if m.role == "assistant"
    ]


@settings(max_examples=400)
@given(logs())
def test_it_sees_what_the_fold_makes(actions: list[SessionAction]) -> None:
    turns = Turns(Telling())
    for row in rows_of(actions):
        turns.take(row)
    assert seen(turns.conversation.session) == folded(fold(actions).messages)


# ---- the table and the page -----------------------------------------------------------------------------------


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text("utf-8") == to_page()


def test_every_fault_of_an_adapter_has_its_code() -> None:
    assert {*AGENT_FAULTS} == {*get_args(AgentFaultCode), "agent-fault"}


def test_sentences_are_sentences() -> None:
    for code, kind in FINDINGS.items():
        assert kind.sentence.endswith("."), code
        assert kind.next_step.endswith("."), code
        assert "|" not in kind.sentence + kind.next_step


def test_the_package_offers_them() -> None:
    assert {"Auditor", "Finding", "findings"} <= {*audit.__all__}


# ---- single things ---------------------------------------------------------------------------------------------


def codes(*actions: SessionAction, living: bool = False) -> list[tuple[str, tuple[int, ...]]]:
    return [(each.code, each.numbers) for each in findings(rows_of([*actions]), living=living)]


def said(message: str, text: str = "Yes.") -> list[SessionAction]:
    return [Part(MessageStart(message)), Part(TextDelta(message, text))]


END = Part(Finish("stop"))


def test_a_living_run_may_still_end() -> None:
    log: list[SessionAction] = [Send("u", "Hi"), *said("m"), Part(ToolCall("m", "c", "search", {}))]
    assert codes(*log, living=True) == []
    assert codes(*log) == [("run-without-end", (4, 1)), ("call-never-ended", (4,))]


def test_two_halves_in_two_deltas_are_a_character() -> None:
    halves = [*said("m", "a\ud83d"), Part(TextDelta("m", "")), Part(TextDelta("m", "\ude00b"))]
    assert codes(Send("u", "Hi"), *halves, END) == []
    across = [*said("m", "a\ud83d"), *said("n"), Part(TextDelta("m", "\ude00b"))]
    assert codes(Send("u", "Hi"), *across, END) == []


@pytest.mark.parametrize("between", [Part(Reasoning("m", "")), Part(ToolCall("m", "c", "search", {}))])
def test_a_half_before_another_part_stays_alone(between: SessionAction) -> None:
    log = [Send("u", "Hi"), *said("m", "a\ud83d"), between, Part(TextDelta("m", "\ude00b")), Part(ToolResult("c", 1))]
    found = [each for each in codes(*log, END) if each[0] == "lone-surrogate"]
    assert found == [("lone-surrogate", (3,)), ("lone-surrogate", (5,))]


def test_what_repeats_is_told_once_a_turn() -> None:
    lost = [Part(TextDelta("x", "lost"))] * 5
    log = [Send("u", "Hi"), *said("m"), *lost, END, Send("v", "Hi"), *said("n"), *lost, END]
    unknown = [numbers for code, numbers in codes(*log) if code == "part-for-unknown-message"]
    assert unknown == [(4,), (13,)]


def test_empty_deltas_are_nothing() -> None:
    empty = [Part(TextDelta("x", "")), Part(TextDelta("u", ""), "c")]
    assert codes(*empty, Send("u", "Hi"), *said("m"), *empty, END, *empty) == []


def test_an_outcome_that_waits_for_nobody_in_particular_pairs_as_the_fold_does() -> None:
    made = [Part(ToolCall("m", "c", "search", n)) for n in (1, 2)]
    log = [Send("u", "Hi"), *said("m"), *made, Part(ToolResult("c", 2)), Part(ToolResult("c", 1)), END]
    assert codes(*log) == [("call-id-in-use", (5, 4))]


def test_a_phase_that_names_its_call_is_not_ambiguous() -> None:
    log = [Send("u", "Hi"), *said("m"), *(Part(ToolCall("m", c, "pay", {})) for c in "ab"), ToolPhase("pay", "running")]
    rows = rows_of(log)
    told = [each for each in findings(rows, living=True) if each.code == "phase-ambiguous"]
    assert [(each.call_id, each.numbers) for each in told] == [("b", (6, 5))]
    named = [*rows[:5], msgspec.structs.replace(rows[5], meta={"call": 5})]
    assert list(findings(named, living=True)) == []


def test_a_stop_that_is_followed_by_the_runs_own_words_is_no_error() -> None:
    log = [Send("u", "Hi"), *said("m"), Part(ToolCall("m", "c", "pay", {})), Stop()]
    tail = [Part(ToolError("c", "Error [cancelled] pay: stopped")), Part(Finish("aborted"))]
    assert codes(*log, *tail) == []
    assert codes(*log, Part(ToolResult("c", 1)), tail[1]) == [("result-after-stop", (6,))]


def test_a_retry_after_a_stop_is_no_error() -> None:
    log = [Send("u", "Hi"), *said("m"), Part(ToolCall("m", "c", "pay", {})), Stop(), Retry(), *said("m"), END]
    assert codes(*log) == []


def test_a_huge_delta_is_told_amid_small_ones() -> None:
    log = [Send("u", "Hi"), *said("m"), *said("m", "x" * HUGE_BYTES)[1:], *said("m")[1:], END]
    assert codes(*log) == [("huge-part", (4,))]


def test_a_sub_agent_of_a_sub_agent() -> None:
    log: list[SessionAction] = [Send("u", "Hi"), *said("m"), Part(ToolCall("m", "c1", "delegate_to_x", {}))]
    log += [Part(MessageStart("m"), "c1"), Part(ToolCall("m", "c2", "delegate_to_y", {}), "c1")]
    log += [Part(MessageStart("m"), "c2"), Part(ToolCall("m", "c1", "search", {}), "c2")]
    log += [Part(ToolResult("c1", "done"))]
    told = codes(*log, END)
    assert ("nested-run-without-end", (9, 4)) in told
    assert ("call-outlives-delegate", (9, 6, 8)) in told


def test_every_finding_has_a_json_form() -> None:
    lost = Part(ToolResult("\ud83d", 1), "\ude00")
    (found, _) = findings(rows_of([Send("u", "Hi"), lost]))
    assert json.loads(json_text(msgspec.to_builtins(found))) == {
        "code": "within-unknown-call",
        "severity": "error",
        "numbers": [2],
        "text": FINDINGS["within-unknown-call"].sentence.format(number=2, within="'\\ude00'"),
        "nextStep": FINDINGS["within-unknown-call"].next_step,
        "within": "\ude00",
    }


def test_a_long_id_does_not_make_a_long_sentence() -> None:
    (found, _) = findings(rows_of([Send("u", "Hi"), Part(ToolResult("c" * 10_000, 1))]))
    assert found.call_id == "c" * 10_000
    assert len(found.text) < 300


def test_many_open_calls_are_one_finding_with_all_their_numbers() -> None:
    made = [Part(ToolCall("m", f"c{n}", "search", {})) for n in range(1_000)]
    found = [each for each in findings(rows_of([Send("u", "Hi"), *said("m"), *made, END])) if len(each.numbers) > 2]
    assert [each.numbers for each in found] == [(1_004, *range(4, 1_004))]
    assert "and 997 more" in found[0].text


def test_memory_is_for_ids_and_not_for_what_is_said() -> None:
    def row(number: int, action: SessionAction) -> LoggedAction:
        return LoggedAction(number, number, action, encode_action(action), None)

    def rows(count: int) -> Iterator[LoggedAction]:
        yield row(1, Send("u", "Hi"))
        yield row(2, Part(MessageStart("m")))
        for number in range(count):
            yield row(number + 3, Part(TextDelta("m", f"{number} is a number of which there are many. ")))
        yield row(count + 3, END)

    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            assert list(findings(rows(count))) == []
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(20_000) < peak(200) + 10_000


# ---- what the state says as well ----------------------------------------------------------------------------------


def open_calls(messages: tuple[AgentMessage, ...]) -> list[str]:
    calls = [part for m in messages for part in m.parts if isinstance(part, ToolPart)]
    return [c.id for c in calls if is_open(c)] + [i for c in calls if c.agent for i in open_calls(c.agent.messages)]


@settings(max_examples=200)
@given(logs())
def test_the_end_of_a_log_is_told_as_the_state_has_it(actions: list[SessionAction]) -> None:
    auditor, state = Auditor(), fold(actions)
    auditor.feed(rows_of(actions))
    pending = auditor.pending()
    never = [each.call_id for each in pending if each.code == "call-never-ended"]
    assert sorted(map(str, never)) == sorted(open_calls(state.messages))
    if state.status == "streaming":
        assert "run-without-end" in {each.code for each in pending}
    assert {each.code for each in auditor.pending(living=True)} <= {"lone-surrogate"}


@settings(max_examples=200)
@given(logs())
def test_a_retry_tells_the_calls_that_the_plan_has_at_risk(actions: list[SessionAction]) -> None:
    auditor = Auditor()
    for row in rows_of(actions):
        found = auditor.feed([row])
        if isinstance(row.action, Retry):
            before = fold(actions[: row.number - 1]).messages
            told = [each for each in found if each.code == "retry-repeats-calls"]
            assert sum(len(each.numbers) - 1 for each in told) == len(retry_plan(before).at_risk)
            users = any(message.role == "user" for message in before)
            assert ("retry-without-message" in {each.code for each in found}) == (not users)
