"""What Retry sends, what it drops and why, and what it may do twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from wire import same, same_messages

from talkfold import (
    EMPTY_SESSION,
    AgentMessage,
    AgentPart,
    AgentRun,
    Dropped,
    ReasoningPart,
    Retry,
    SessionAction,
    SessionState,
    TextPart,
    ToolCallState,
    ToolPart,
    decode_messages,
    encode_messages,
    fold,
    resumable,
    retry_plan,
    session_reducer,
)
from talkfold.testing.strategies import logs, messages

pytestmark = pytest.mark.timeout(900)  # the long profile tries twenty times as often


def said(*parts: AgentPart, by: str = "assistant", id: str = "a") -> AgentMessage:  # noqa: A002
    return AgentMessage(id, by, parts)  # type: ignore[arg-type]


def call(id: str, state: ToolCallState, *nested: AgentMessage) -> ToolPart:  # noqa: A002
    name = "delegate_to_x" if nested else "search"
    return ToolPart(id, name, {}, state, agent=AgentRun("x", nested) if nested else None)


ASKED = said(TextPart("Do it"), by="user", id="u")


# ---- laws ---------------------------------------------------------------------------------------------------


@given(messages())
def test_it_is_a_beginning_of_what_came_in(row: tuple[AgentMessage, ...]) -> None:
    """Whole messages are shared; only the last that stays may have lost parts, from its end."""
    kept = resumable(row)
    assert len(kept) <= len(row)
    assert all(a is b for a, b in zip(kept[:-1], row, strict=False))
    if kept:
        last, was = kept[-1], row[len(kept) - 1]
        assert (last.id, last.role) == (was.id, was.role)
        assert all(a is b for a, b in zip(last.parts, was.parts, strict=False))
        assert last is was or len(last.parts) < len(was.parts)


@given(messages())
def test_where_it_ends(row: tuple[AgentMessage, ...]) -> None:
    """With the last call that finished after the last user message, else with that message."""
    kept = resumable(row)
    users = [place for place, message in enumerate(row) if message.role == "user"]
    if not users:
        assert kept is row
        return
    after = [part for message in row[users[-1] + 1 :] for part in message.parts]
    finished = [part for part in after if isinstance(part, ToolPart) and part.state in ("done", "error")]
    assert len(kept) > users[-1]
    if finished:
        assert kept[-1].parts[-1] is finished[-1]
        assert [part for message in kept[users[-1] + 1 :] for part in message.parts][-1] is finished[-1]
    else:
        assert len(kept) == users[-1] + 1


@given(messages())
def test_twice_is_once(row: tuple[AgentMessage, ...]) -> None:
    kept = resumable(row)
    assert resumable(kept) is kept
    assert same_messages(resumable(list(row)), kept)
    assert same_messages(resumable(decode_messages(encode_messages(row))), kept)
    plan = retry_plan(kept)
    assert plan.messages is kept
    assert (plan.dropped, plan.at_risk) == ((), ())


@given(messages())
def test_every_part_is_sent_or_dropped_once_and_in_order(row: tuple[AgentMessage, ...]) -> None:
    plan = retry_plan(row)
    assert same_messages(plan.messages, resumable(row))
    sent = [part for message in plan.messages for part in message.parts]
    gone = [entry.part for entry in plan.dropped if entry.part is not None]
    every = [part for message in row for part in message.parts]
    assert [id(part) for part in sent + gone] == [id(part) for part in every]


@given(messages())
def test_dropped_parts_say_where_they_were_and_why(row: tuple[AgentMessage, ...]) -> None:
    plan = retry_plan(row)
    cut = len(plan.messages) - 1
    places = iter(
        [
            (message, index)
            for number, message in enumerate(row[cut:] if cut >= 0 else (), cut)
            for index in range(len(plan.messages[cut].parts) if number == cut else 0, len(message.parts))
        ]
    )
    empty = [message for message in row[cut + 1 :] if not message.parts]
    for entry in plan.dropped:
        if entry.part is None:
            assert entry.reason == "empty-message"
            assert entry.index is None
            assert entry.message_id == empty.pop(0).id
            continue
        message, index = next(places)
        assert (entry.message_id, entry.index) == (message.id, index)
        assert entry.part is message.parts[index]
        match entry.part:
            case ToolPart(state=state):
                assert entry.reason == ("cancelled-call" if state == "cancelled" else "open-call")
                assert state not in ("done", "error")
            case ReasoningPart():
                assert entry.reason in ("reply-cut-short", "reasoning-after-last-call")
            case TextPart():
                assert entry.reason == "reply-cut-short"
    assert next(places, None) is None
    assert empty == []


@given(messages(max_depth=3))
def test_at_risk_are_the_finished_calls_inside_dropped_runs(row: tuple[AgentMessage, ...]) -> None:
    plan = retry_plan(row)
    told: list[tuple[tuple[str, ...], str, int]] = []

    def look(owner: ToolPart, path: tuple[str, ...]) -> None:
        path = (*path, owner.id)
        for message in owner.agent.messages if owner.agent else ():
            for part in message.parts:
                if isinstance(part, ToolPart):
                    if part.state in ("done", "error"):
                        told.append((path, message.id, id(part)))
                    look(part, path)

    for entry in plan.dropped:
        if isinstance(entry.part, ToolPart):
            look(entry.part, ())
    assert [(risk.path, risk.message_id, id(risk.call)) for risk in plan.at_risk] == told


@given(logs())
def test_retry_in_the_log_sends_what_the_plan_says(log: list[SessionAction]) -> None:
    before = fold(log)
    after = session_reducer(before, Retry())
    assert same_messages(after.messages, retry_plan(before.messages).messages)
    assert same_messages(after.messages, resumable(before.messages))
    if any(message.role == "user" for message in before.messages):
        assert (after.status, after.error) == ("streaming", None)
    else:
        assert after is before
    assert same(fold([*log, Retry()]), after)


# ---- reasons ------------------------------------------------------------------------------------------------


def test_reasons() -> None:
    hm, hi = ReasoningPart("hm"), TextPart("hi")
    done, awaiting, cancelled = call("1", "done"), call("2", "awaiting-confirmation"), call("3", "cancelled")
    row = (ASKED, said(hm, done, hm, awaiting), said(id="b"), said(hi, cancelled, id="c"))
    plan = retry_plan(row)
    assert plan.messages == (ASKED, said(hm, done))
    assert plan.dropped == (
        Dropped("a", "reasoning-after-last-call", 2, hm),
        Dropped("a", "open-call", 3, awaiting),
        Dropped("b", "empty-message"),
        Dropped("c", "reply-cut-short", 0, hi),
        Dropped("c", "cancelled-call", 1, cancelled),
    )


def test_reasoning_without_any_finished_call_is_a_reply_cut_short() -> None:
    plan = retry_plan((ASKED, said(ReasoningPart("hm"), TextPart("he"))))
    assert [entry.reason for entry in plan.dropped] == ["reply-cut-short", "reply-cut-short"]


def test_a_call_that_a_sub_agent_finished_is_at_risk_with_its_path() -> None:
    inner = call("e", "running", said(call("paid", "done"), call("open", "running"), id="n2"))
    outer = call("d", "cancelled", said(call("sent", "error"), inner, id="n1"))
    plan = retry_plan((ASKED, said(outer)))
    assert [(risk.path, risk.message_id, risk.call.id) for risk in plan.at_risk] == [
        (("d",), "n1", "sent"),
        (("d", "e"), "n2", "paid"),
    ]


def test_a_finished_run_is_kept_whole_and_nothing_in_it_is_at_risk() -> None:
    outer = call("d", "done", said(call("paid", "done"), call("open", "running")))
    plan = retry_plan((ASKED, said(outer)))
    assert (plan.messages, plan.dropped, plan.at_risk) == ((ASKED, said(outer)), (), ())


def test_without_a_user_message_everything_stays() -> None:
    row = (said(TextPart("Welcome"), call("c", "running")),)
    plan = retry_plan(row)
    assert plan.messages is row
    assert (plan.dropped, plan.at_risk) == ((), ())
    state = SessionState(row, "streaming")
    assert session_reducer(state, Retry()) is state


def test_nothing_at_all() -> None:
    assert resumable([]) == ()
    assert retry_plan(EMPTY_SESSION.messages).messages == ()
