"""Calls that wait for somebody outside: approvals and the tools of a connected client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from run_world import Agent, actions, at_rest, calls, says, until, whole_log

from talkfold import (
    AgentStreamPart,
    CallNotWaiting,
    Finish,
    MessageStart,
    Part,
    RunInProgress,
    ToolCall,
    ToolError,
    ToolPart,
    ToolPhase,
    ToolResult,
)
from talkfold.runs import (
    AgentRunRequest,
    CallAnswered,
    CallParked,
    ClientTools,
    ParkedCall,
    Run,
    RunEvent,
    RunSettings,
    SubAgent,
    Toolbox,
    ToolDescriptor,
    approve,
    deny,
    give_result,
    parked_call,
    start_run,
    stop_run,
    tool,
    tool_outcome,
)
from talkfold.store import SessionStore

pytestmark = pytest.mark.anyio

paid: list[dict[str, Any]] = []


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


@tool(confirm=lambda given: f"Pay {given['amount']} euro?")
def pay(amount: int) -> str:
    paid.append({"amount": amount})
    return f"paid {amount}"


PAYS = calls(("c1", "pay", {"amount": 5}))


async def parked(store: SessionStore, session_id: str) -> ParkedCall:
    """The call that a run has parked, once it has."""
    with anyio.fail_after(5):
        while True:
            found = await parked_call(store, session_id)
            if found is not None:
                return found
            await anyio.sleep(0.001)


def only_call(state: Any) -> ToolPart:
    (call,) = [part for message in state.messages for part in message.parts if isinstance(part, ToolPart)]
    return call


# ---- approvals --------------------------------------------------------------------------------------------------


async def test_a_call_that_needs_a_yes_waits_with_its_prompt_and_then_runs(store: SessionStore) -> None:
    session = await store.create()
    async with start_run(store, session.id, Agent(PAYS), text="go", tools=Toolbox(pay)) as run:
        found = await parked(store, session.id)
        assert (found.waiting.call_id, found.waiting.name, found.waiting.kind) == ("c1", "pay", "approval")
        assert (found.waiting.prompt, found.input) == ("Pay 5 euro?", {"amount": 5})
        call = only_call((await store.state(session.id)).state)
        assert (call.state, call.prompt) == ("awaiting-confirmation", "Pay 5 euro?")
        assert paid == []
        number = await approve(store, session.id, "c1", {"amount": 5}, by="u-1", reason="fine")
        ending = await run.wait()
    assert paid == [{"amount": 5}]
    assert ending.part == Finish("stop")
    rows = await whole_log(store, session.id)
    answer = rows[number - 1]
    assert answer.action == ToolPhase("pay", "running")
    assert (answer.run, answer.actor) == (run.id, "u-1")
    assert answer.meta == {"answers": found.waiting.number, "decision": "approved", "reason": "fine"}
    asked = rows[number - 2]
    assert (asked.action, asked.meta) == (
        ToolPhase("pay", "awaiting-confirmation", "Pay 5 euro?"),
        {"call": found.waiting.number},
    )
    call = only_call(await at_rest(store, session.id))
    assert (call.state, call.prompt) == ("done", None)


async def test_a_no_ends_the_call_as_cancelled_and_the_agent_reads_why(store: SessionStore) -> None:
    session = await store.create()
    async with start_run(store, session.id, Agent(PAYS), text="go", tools=Toolbox(pay)) as run:
        await parked(store, session.id)
        await deny(store, session.id, "c1", {"amount": 5}, by="u-1", reason="too much")
        await run.wait()
    assert paid == []
    call = only_call(await at_rest(store, session.id))
    text = "Error [cancelled] pay: the person declined this call: too much"
    assert (call.state, call.error) == ("cancelled", text)
    rows = await whole_log(store, session.id)
    assert [type(row.action.part) for row in rows if isinstance(row.action, Part)].count(ToolError) == 1
    assert any(f"[{text}]" in str(action) for action in actions(rows))  # what the agent said it read


@pytest.mark.parametrize(
    ("call_id", "given", "reason"),
    [
        ("c2", {"amount": 5}, "'c1' (pay) is the one that waits"),
        ("c1", {"amount": 6}, "its input is another than the one that was seen"),
        ("c1", {"amount": True}, "its input is another than the one that was seen"),
        ("c1", {}, "its input is another than the one that was seen"),
        ("c1", None, "its input is another than the one that was seen"),
    ],
)
async def test_a_decision_never_reaches_another_call_or_other_arguments(
    store: SessionStore, call_id: str, given: Any, reason: str
) -> None:
    session = await store.create()
    async with start_run(store, session.id, Agent(PAYS), text="go", tools=Toolbox(pay)) as run:
        await parked(store, session.id)
        before = (await store.get(session.id)).number
        for decide in (approve, deny):
            with pytest.raises(CallNotWaiting) as refused:
                await decide(store, session.id, call_id, given)
            assert refused.value.reason == reason
        assert (await store.get(session.id)).number == before
        await approve(store, session.id, "c1", {"amount": 5.0})  # the same number, as a browser writes it
        await run.wait()
    assert paid == [{"amount": 5}]


async def test_only_the_first_of_several_decisions_counts(store: SessionStore) -> None:
    session = await store.create()
    taken: list[str] = []

    async def decide(how: Any) -> None:
        try:
            await how(store, session.id, "c1", {"amount": 5})
        except CallNotWaiting:
            return
        taken.append(how.__name__)

    async with start_run(store, session.id, Agent(PAYS), text="go", tools=Toolbox(pay)) as run:
        await parked(store, session.id)
        async with anyio.create_task_group() as group:
            for how in (approve, deny, approve, deny):
                group.start_soon(decide, how)
        await run.wait()
    assert len(taken) == 1
    assert len(paid) == (taken == ["approve"])
    with pytest.raises(CallNotWaiting, match="no call waits"):
        await approve(store, session.id, "c1", {"amount": 5})


async def test_an_id_that_is_used_again_does_not_inherit_a_decision(store: SessionStore) -> None:
    session = await store.create()
    agent = Agent(calls(("c", "pay", {"amount": 5}), ("c", "pay", {"amount": 500})))
    async with start_run(store, session.id, agent, text="go", tools=Toolbox(pay)) as run:
        first = await parked(store, session.id)
        await approve(store, session.id, "c", first.input)
        await until(lambda: paid)
        second = first
        while second.waiting.number == first.waiting.number:
            second = await parked(store, session.id)
        with pytest.raises(CallNotWaiting):
            await approve(store, session.id, "c", first.input)
        await deny(store, session.id, "c", {"amount": 500})
        await run.wait()
    assert paid == [{"amount": 5}]
    await at_rest(store, session.id)


async def test_nobody_answers_in_time(store: SessionStore) -> None:
    session = await store.create()
    settings = RunSettings(approval_seconds=0.1)
    async with start_run(store, session.id, Agent(PAYS), text="go", tools=Toolbox(pay), settings=settings) as run:
        found = await parked(store, session.id)
        assert found.waiting.expires is not None
        ending = await run.wait()
    assert ending.part == Finish("stop")
    assert paid == []
    call = only_call(await at_rest(store, session.id))
    assert (call.state, call.error) == ("error", "Error [timeout] pay: nobody answered within 0.1 s")
    with pytest.raises(CallNotWaiting):
        await approve(store, session.id, "c1", {"amount": 5})


async def test_stop_ends_the_wait(store: SessionStore) -> None:
    session = await store.create()
    async with start_run(store, session.id, Agent(PAYS), text="go", tools=Toolbox(pay)) as run:
        await parked(store, session.id)
        await stop_run(store, session.id)
        with pytest.raises(CallNotWaiting):
            await approve(store, session.id, "c1", {"amount": 5})
        ending = await run.wait()
    assert ending.cause == "stop"
    assert paid == []
    assert only_call(await at_rest(store, session.id)).state == "cancelled"


async def test_a_new_message_is_refused_while_a_call_waits_unless_it_interrupts(store: SessionStore) -> None:
    session = await store.create()
    async with start_run(store, session.id, Agent(PAYS), text="go", tools=Toolbox(pay)) as run:
        await parked(store, session.id)
        with pytest.raises(RunInProgress) as refused:
            async with start_run(store, session.id, Agent(says), text="never mind"):
                pass
        assert refused.value.lease.waiting is not None
        async with start_run(store, session.id, Agent(says), text="never mind", interrupt=True) as second:
            await second.wait()
        await run.wait()
    assert paid == []
    state = await at_rest(store, session.id)
    assert only_call(state).state == "cancelled"


async def test_opening_a_session_while_its_run_waits_changes_nothing(store: SessionStore) -> None:
    session = await store.create()
    async with start_run(store, session.id, Agent(PAYS), text="go", tools=Toolbox(pay)) as run:
        found = await parked(store, session.id)
        opened = await store.open_session(session.id)
        assert not opened.settled
        assert opened.session.lease is not None
        assert opened.session.lease.waiting == found.waiting
        await approve(store, session.id, "c1", {"amount": 5})
        await run.wait()
    assert len(paid) == 1


async def test_a_call_that_would_fail_anyway_asks_nobody(store: SessionStore) -> None:
    session = await store.create()
    agent = Agent(calls(("c1", "pay", {"amount": "five"}), ("c2", "play", {})))
    async with start_run(store, session.id, agent, text="go", tools=Toolbox(pay)) as run:
        await run.wait()
    state = await at_rest(store, session.id)
    errors = [part.error for part in state.messages[1].parts if isinstance(part, ToolPart)]
    assert [str(error)[:21] for error in errors] == ["Error [invalid_input]", "Error [not_found] the"]


async def test_with_two_open_calls_of_one_name_no_prompt_shows_on_the_wrong_one(store: SessionStore) -> None:
    """The phase goes to the newest open call of its name, so it is not logged for an older one."""

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        both = [ToolCall("m", f"c{n}", "pay", {"amount": n}) for n in (1, 2)]
        for call in both:
            yield call
        for call in both:
            yield tool_outcome(call.id, await request.call_tool(call))
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(pay)) as run:
        first = await parked(store, session.id)
        assert (first.waiting.call_id, first.input) == ("c1", {"amount": 1})
        state = (await store.state(session.id)).state
        assert [part.prompt for part in state.messages[1].parts] == [None, None]  # type: ignore[union-attr]
        await deny(store, session.id, "c1", {"amount": 1})
        second = first
        while second.waiting.call_id == "c1":
            second = await parked(store, session.id)
        state = (await store.state(session.id)).state
        assert [part.state for part in state.messages[1].parts] == [  # type: ignore[union-attr]
            "cancelled",
            "awaiting-confirmation",
        ]
        await approve(store, session.id, "c2", {"amount": 2})
        await run.wait()
    assert paid == [{"amount": 2}]
    await at_rest(store, session.id)


async def test_a_nested_call_waits_and_is_answered_like_any_other(store: SessionStore) -> None:
    session = await store.create()
    events: list[RunEvent] = []
    buyer = SubAgent("buyer", Agent(PAYS), "Buys.", tools=Toolbox(pay))
    agent = Agent(calls(("d1", "delegate_to_buyer", {"task": "Buy it."})))
    settings = RunSettings(observe=events.append)
    async with start_run(store, session.id, agent, text="go", agents=[buyer], settings=settings) as run:
        found = await parked(store, session.id)
        assert found.waiting.within == "d1"
        await approve(store, session.id, "c1", {"amount": 5})
        await run.wait()
    assert paid == [{"amount": 5}]
    (answered,) = [event for event in events if isinstance(event, CallAnswered)]
    assert (answered.waiting, answered.decision) == (found.waiting, "approved")
    assert [event for event in events if isinstance(event, CallParked)] == [CallParked(run.id, found.waiting)]
    await at_rest(store, session.id)


# ---- tools of a client --------------------------------------------------------------------------------------------

FILL_IN = ToolDescriptor("fill_in", "Fills in the form on the page.", {"type": "object", "properties": {}})
FILLS = calls(("c1", "fill_in", {"name": "x"}))


async def with_client(store: SessionStore, session_id: str, tools: ClientTools, client: Any) -> Run:
    async with start_run(store, session_id, Agent(FILLS), text="go", tools=Toolbox(tools)) as run:
        await client()
        await run.wait()
    return run


async def test_a_clients_call_is_parked_until_the_client_posts_its_result(store: SessionStore) -> None:
    session = await store.create()
    output = {"content": [{"type": "text", "text": "filled"}], "structuredContent": {"ok": True}, "_meta": {"t": 1}}

    async def client() -> None:
        found = await parked(store, session.id)
        assert (found.waiting.kind, found.input) == ("client", {"name": "x"})
        with pytest.raises(CallNotWaiting, match="result from a client"):
            await approve(store, session.id, "c1", {"name": "x"})
        await give_result(store, session.id, "c1", output, input={"name": "x"}, by="page")

    await with_client(store, session.id, ClientTools([FILL_IN]), client)
    call = only_call(await at_rest(store, session.id))
    assert (call.state, call.output) == ("done", output)
    rows = await whole_log(store, session.id)
    (result,) = [row for row in rows if isinstance(row.action, Part) and isinstance(row.action.part, ToolResult)]
    assert result.actor == "page"


async def test_a_clients_failure_is_the_calls_error(store: SessionStore) -> None:
    session = await store.create()
    failed = {"content": [{"type": "text", "text": "Error [failed] no such form"}], "isError": True}

    async def client() -> None:
        await parked(store, session.id)
        await give_result(store, session.id, "c1", failed)

    await with_client(store, session.id, ClientTools([FILL_IN]), client)
    call = only_call(await at_rest(store, session.id))
    assert (call.state, call.error) == ("error", "Error [failed] no such form")


async def test_a_client_that_never_answers_times_out(store: SessionStore) -> None:
    session = await store.create()

    async def client() -> None:
        await parked(store, session.id)

    await with_client(store, session.id, ClientTools([FILL_IN], timeout=0.1), client)
    call = only_call(await at_rest(store, session.id))
    assert (call.state, call.error) == ("error", "Error [timeout] fill_in: nobody answered within 0.1 s")
    with pytest.raises(CallNotWaiting):
        await give_result(store, session.id, "c1", "late")
