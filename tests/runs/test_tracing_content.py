"""Traces of calls that wait, what of a conversation is in a trace, and runs that are not traced."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from run_world import Agent, calls, whole_log
from traces import ADDS, FINE, Traces, about, add, everything, failed, python, status

from talkfold import AgentStreamPart, Finish, MessageStart, RunError, TextDelta, ToolCall
from talkfold.runs import (
    AgentRunRequest,
    ClientTools,
    RunSettings,
    Toolbox,
    ToolDescriptor,
    approve,
    deny,
    give_result,
    parked_call,
    start_run,
    tool,
    tool_outcome,
)
from talkfold.runs.tracing import OpenTelemetry
from talkfold.store import SessionStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def traces() -> Traces:
    return Traces()


# ---- calls that wait ----------------------------------------------------------------------------------------------


@tool(confirm=lambda given: f"Pay {given['amount']} with card 4242?")
async def pay(amount: int) -> str:
    await anyio.sleep(0.05)
    return "paid"


PAYS = Agent(calls(("c1", "pay", {"amount": 5})))


async def answered(
    store: SessionStore, traces: Traces, answer: Any, *, agent: Agent = PAYS, box: Any = pay, **settings: Any
) -> ReadableSpan:
    """A run whose call is parked for a while and then answered; the call's span."""
    session = await store.create()
    options = RunSettings(observe=OpenTelemetry(traces.provider), grace_seconds=0.2, **settings)
    async with start_run(store, session.id, agent, text="go", tools=Toolbox(box), settings=options) as run:
        with anyio.fail_after(5):
            while await parked_call(store, session.id) is None:  # noqa: ASYNC110 - it is the store that says so
                await anyio.sleep(0.002)
        await answer(session.id, run)
        await run.wait()
    span = next(span for span in traces.ended() if span.name.startswith("execute_tool"))
    (event,) = span.events
    assert event.name == "talkfold.call.parked"
    assert "4242" not in everything(traces.ended())
    return span


def wait_of(span: ReadableSpan) -> tuple[Any, Any]:
    said = about(span)
    return said["talkfold.wait.kind"], said.get("talkfold.wait.decision")


async def test_a_person_says_yes(store: SessionStore, traces: Traces) -> None:
    async def yes(session_id: str, run: Any) -> None:
        await approve(store, session_id, "c1", {"amount": 5}, by="anna")

    span = await answered(store, traces, yes)
    assert (wait_of(span), status(span)) == (("approval", "approved"), FINE)
    (event,) = span.events
    attributes = dict(event.attributes or {})
    assert attributes.pop("talkfold.wait.expires") > 1_600_000_000_000
    assert attributes == {"talkfold.wait.kind": "approval"}
    assert 0 <= about(span)["talkfold.wait.seconds"] < 5


async def test_a_person_says_no(store: SessionStore, traces: Traces) -> None:
    async def no(session_id: str, run: Any) -> None:
        await anyio.sleep(0.1)
        await deny(store, session_id, "c1", {"amount": 5}, reason="card 4242 is empty")

    span = await answered(store, traces, no)
    assert (wait_of(span), status(span)) == (("approval", "denied"), FINE)
    assert about(span)["talkfold.call.state"] == "cancelled"
    assert 0.1 <= about(span)["talkfold.wait.seconds"] < 5


async def test_nobody_answers(store: SessionStore, traces: Traces) -> None:
    async def nothing(session_id: str, run: Any) -> None:
        pass

    span = await answered(store, traces, nothing, approval_seconds=0.1)
    assert (wait_of(span), status(span)) == (("approval", "expired"), failed("timeout"))
    assert 0.09 <= about(span)["talkfold.wait.seconds"] < 5


async def test_a_stop_decides_nothing(store: SessionStore, traces: Traces) -> None:
    async def stop(session_id: str, run: Any) -> None:
        await run.stop()

    span = await answered(store, traces, stop)
    assert (wait_of(span), status(span)) == (("approval", None), FINE)


@pytest.mark.parametrize("is_error", [False, True])
async def test_a_client_answers(store: SessionStore, traces: Traces, is_error: bool) -> None:
    async def result(session_id: str, run: Any) -> None:
        await anyio.sleep(0.05)
        output = {"content": [{"type": "text", "text": "card 4242"}], "isError": is_error}
        await give_result(store, session_id, "c1", output)

    page = ClientTools([ToolDescriptor("fill_in", "Fills in.", {"type": "object"})])
    span = await answered(store, traces, result, agent=Agent(calls(("c1", "fill_in", {}))), box=page)
    assert wait_of(span) == ("client", "answered")
    assert status(span) == (failed("tool_error") if is_error else FINE)
    assert 0.05 <= about(span)["talkfold.wait.seconds"] < 5


# ---- content ------------------------------------------------------------------------------------------------------


async def speaks(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
    """Says the secret wherever an agent can say something, and ends twice."""
    yield MessageStart("m")
    yield TextDelta("m", "secret text")
    call = ToolCall("m", "c1", "pay", {"amount": "secret input"})
    yield call
    yield tool_outcome("c1", await request.call_tool(call))
    yield RunError("secret error")
    yield TextDelta("m", "after it")


@tool(name="pay", confirm=lambda given: "secret prompt")
async def pay_badly(amount: str) -> str:
    raise ValueError("secret failure")


@pytest.mark.parametrize("capture", [False, True])
async def test_content_is_said_only_when_it_is_wanted(store: SessionStore, traces: Traces, capture: bool) -> None:
    session = await store.create()
    async with start_run(
        store,
        session.id,
        Agent(speaks),
        text="secret question",
        tools=Toolbox(pay_badly),
        settings=traces.settings(capture_content=capture),
    ) as run:
        with anyio.fail_after(5):
            while await parked_call(store, session.id) is None:  # noqa: ASYNC110
                await anyio.sleep(0.002)
        await approve(store, session.id, "c1", {"amount": "secret input"})
        await run.wait()
    said = set(re.findall(r"secret \w+", everything(traces.ended())))
    assert said == ({"secret error", "secret failure", "secret prompt"} if capture else set())
    own, call = traces.ended()
    assert status(own) == failed("agent_error", "secret error" if capture else None)
    text = "Error [failed] pay: ValueError: secret failure"
    assert status(call) == failed("failed", text if capture else None)
    (fault,) = own.events
    assert (fault.name, dict(fault.attributes or {}).get("talkfold.fault.text") is not None) == (
        "talkfold.fault",
        capture,
    )


# ---- with and without an SDK --------------------------------------------------------------------------------------


async def test_spans_that_are_not_sampled_change_nothing(store: SessionStore) -> None:
    traces = Traces(sampler=ALWAYS_OFF)
    session = await store.create()
    async with start_run(
        store, session.id, Agent(ADDS), text="go", tools=Toolbox(add), settings=traces.settings()
    ) as run:
        assert (await run.wait()).part == Finish("stop")
    assert traces.ended() == []
    meta = (await whole_log(store, session.id))[0].meta
    assert meta is not None
    assert re.fullmatch("[0-9a-f]{32} [0-9a-f]{16}", f"{meta['trace']} {meta['span']}")


async def test_without_an_sdk_nothing_is_noted(store: SessionStore) -> None:
    session = await store.create()
    settings = RunSettings(observe=OpenTelemetry(trace.NoOpTracerProvider()))
    async with start_run(store, session.id, Agent(ADDS), text="go", tools=Toolbox(add), settings=settings) as run:
        assert (await run.wait()).part == Finish("stop")
    assert (await whole_log(store, session.id))[0].meta is None


def test_live_runs_do_not_load_opentelemetry() -> None:
    done = python("import sys, talkfold.runs; print([name for name in sys.modules if 'opentelemetry' in name])")
    assert (done.stdout, done.returncode) == ("[]\n", 0)


def test_without_the_extra_the_error_says_what_to_install() -> None:
    done = python("import sys; sys.modules['opentelemetry'] = None; import talkfold.runs.tracing")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "ImportError: talkfold.runs.tracing needs the OpenTelemetry API: pip install 'talkfold[otel]'\n"
    )
