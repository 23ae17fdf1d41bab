"""Two things at the same moment: an answer and its time's end, a Stop and anything, a call said and made at once.

Each round draws its moments anew, from a seed that the failing assertion names.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest
from run_world import Agent, actions, at_rest, parts, whole_log

from talkfold import (
    AgentStreamPart,
    CallNotWaiting,
    Finish,
    LeaseLost,
    MessageStart,
    Part,
    Reasoning,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPart,
    ToolResult,
)
from talkfold.runs import (
    AgentRunRequest,
    RunSettings,
    Toolbox,
    ToolCallRequest,
    WebAgent,
    approve,
    deny,
    parked_call,
    start_run,
    stop_run,
    tool,
    tool_outcome,
)
from talkfold.store import SessionStore, open_store

pytestmark = pytest.mark.anyio

ROUNDS, AT_ONCE = 6, 20


@tool(confirm="Sure?")
def pay() -> str:
    return "paid"


async def act() -> str:
    await anyio.sleep(0.003)
    return "acted"


def worker(rng: random.Random) -> Agent:
    """Makes three calls of either tool and says a word before each."""
    names = [rng.choice(["pay", "act"]) for _ in range(3)]

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        for number, name in enumerate(names):
            yield TextDelta("m", "x")
            call = ToolCall("m", f"c{number}", name, {})
            yield call
            yield tool_outcome(call.id, await request.call_tool(call))
            if request.signal.aborted:
                yield Finish("aborted")
                return
        yield Finish("stop")

    return Agent(play)


async def meddle(store: SessionStore, session_id: str, rng: random.Random) -> None:
    """Stop the run, or answer its calls about when their time is over; or only look on."""
    what = rng.choice([None, "stop", approve, deny])
    await anyio.sleep(rng.random() * 0.05)
    if what == "stop":
        await stop_run(store, session_id)
    elif callable(what):
        for _ in range(20):
            found = await parked_call(store, session_id)
            if found is not None:
                await anyio.sleep(0.018 + rng.random() * 0.006)
                try:
                    await what(store, session_id, found.waiting.call_id, found.input)
                except CallNotWaiting:
                    pass
            await anyio.sleep(0.002)


async def one(store: SessionStore, seed: str) -> None:
    rng = random.Random(seed)
    session = await store.create()
    settings = RunSettings(approval_seconds=0.02, grace_seconds=0.3)
    cut = rng.random() * 0.1 if rng.random() < 0.3 else 10.0
    with anyio.fail_after(15):
        async with anyio.create_task_group() as group:
            group.start_soon(meddle, store, session.id, rng)
            with anyio.move_on_after(cut):
                async with start_run(
                    store, session.id, worker(rng), text="x", tools=Toolbox(pay, act), settings=settings
                ) as run:
                    await run.wait()
    await at_rest(store, session.id)
    rows = await whole_log(store, session.id)
    ended = [part.id for part in parts(rows) if isinstance(part, ToolResult | ToolError)]
    assert len(ended) == len(set(ended)), seed
    own = [row.action for row in rows if row.run is not None]
    if own:
        assert isinstance(own[-1], Part), seed
        assert isinstance(own[-1].part, Finish), seed


async def test_whoever_comes_first_the_run_ends_and_the_session_is_at_rest(store: SessionStore) -> None:
    for number in range(ROUNDS):
        async with anyio.create_task_group() as group:
            for each in range(AT_ONCE):
                group.start_soon(one, store, f"{number}.{each}")


async def test_a_run_that_ends_while_its_lease_is_renewed_has_ended_well(store: SessionStore) -> None:
    async def short(store: SessionStore, seconds: float) -> None:
        async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            yield MessageStart("m")
            await anyio.sleep(seconds)
            yield Finish("stop")

        session = await store.create()
        settings = RunSettings(lease_seconds=0.15)
        async with start_run(store, session.id, Agent(play), text="x", settings=settings) as run:
            ending = await run.wait()
        assert ending.part == Finish("stop")

    rng = random.Random(1)
    for _ in range(4):
        async with anyio.create_task_group() as group:
            for _ in range(40):
                group.start_soon(short, store, 0.025 + rng.random() * 0.045)


@pytest.mark.parametrize("steps", range(8))
async def test_a_call_that_is_made_while_it_is_said_is_logged_and_made_once(store: SessionStore, steps: int) -> None:
    """A worker makes the call by itself, while the generator yields it."""
    made: list[int] = []

    async def count() -> str:
        made.append(1)
        return "counted"

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        call = ToolCall("m", "c", "count", {})
        yield MessageStart("m")
        async with anyio.create_task_group() as group:
            group.start_soon(request.call_tool, call)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            yield call
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(count)) as run:
        await run.wait()
    await at_rest(store, session.id)
    kinds = [type(part) for part in parts(await whole_log(store, session.id))]
    assert (made, kinds.count(ToolCall), kinds.count(ToolResult)) == ([1], 1, 1)


@pytest.mark.parametrize("steps", range(8))
async def test_an_unsaid_call_that_is_cancelled_is_never_left_open(store: SessionStore, steps: int) -> None:
    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        async with anyio.create_task_group() as group:
            group.start_soon(request.call_tool, ToolCallRequest("c", "act", {}))
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(act)) as run:
        await run.wait()
    await at_rest(store, session.id)


async def test_a_parked_call_that_its_agent_gives_up_cannot_be_answered(store: SessionStore) -> None:
    gave_up = anyio.Event()
    go_on = anyio.Event()

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        call = ToolCall("m", "c", "pay", {})
        yield call
        with anyio.move_on_after(0.05):
            await request.call_tool(call)
        gave_up.set()
        await go_on.wait()
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(pay)) as run:
        await gave_up.wait()
        with pytest.raises(CallNotWaiting):
            await approve(store, session.id, "c", {})
        go_on.set()
        await run.wait()
    state = await at_rest(store, session.id)
    (call,) = [part for part in state.messages[1].parts if isinstance(part, ToolPart)]
    assert (call.state, call.error) == ("cancelled", "Error [cancelled] pay: the agent gave the call up")


async def test_what_a_tool_did_is_kept_though_its_agent_gave_the_call_up(store: SessionStore) -> None:
    let_go = anyio.Event()

    async def slow() -> str:
        with anyio.CancelScope(shield=True):
            await let_go.wait()
        return "done after all"

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        call = ToolCall("m", "c", "slow", {})
        yield call
        async with anyio.create_task_group() as group:
            group.start_soon(request.call_tool, call)
            await anyio.sleep(0.02)
            yield ToolError("c", "Error [timeout] slow: I wait no longer")
            let_go.set()
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(slow)) as run:
        await run.wait()
    state = await at_rest(store, session.id)
    (call,) = [part for part in state.messages[1].parts if isinstance(part, ToolPart)]
    assert call.state == "done"


@pytest.mark.parametrize("meta", [None, {"answers": 3}, {"answers": 3, "decision": "approved"}])
async def test_a_row_that_only_says_it_is_an_answer_is_none(store: SessionStore, meta: dict[str, int] | None) -> None:
    paid: list[int] = []

    @tool(confirm="Sure?", name="pay")
    def paying() -> str:
        paid.append(1)
        return "paid"

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        call = ToolCall("m", "c", "pay", {})
        yield call
        yield tool_outcome("c", await request.call_tool(call))
        yield Finish("stop")

    session = await store.create()
    settings = RunSettings(approval_seconds=0.3)
    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(paying), settings=settings) as run:
        while await parked_call(store, session.id) is None:  # noqa: ASYNC110 - it is the store that says so
            await anyio.sleep(0.001)
        await store.append(session.id, [Part(TextDelta("m", "hi"))], run=run.id, meta=meta)
        await run.wait()
    assert paid == []
    assert Part(TextDelta("m", "hi")) in actions(await whole_log(store, session.id))
    await at_rest(store, session.id)


async def test_a_lease_lost_at_the_commit_of_a_call_is_raised_as_it_is(store: SessionStore) -> None:
    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        # Somebody else takes the session in this very moment: its time is over, and nobody renewed.
        await anyio.sleep(0.01)
        with anyio.CancelScope(shield=True):
            time.sleep(0.15)  # noqa: ASYNC251 - the whole process stands still
            await store.open_session(request.agent.id if request.agent else "")
        call = ToolCall("m", "c", "act", {})
        yield call
        yield tool_outcome("c", await request.call_tool(call))
        yield Finish("stop")

    session = await store.create()
    settings = RunSettings(lease_seconds=0.1)

    async def caller() -> None:
        agent = WebAgent(session.id)
        async with start_run(
            store, session.id, Agent(play), text="go", agent=agent, tools=Toolbox(act), settings=settings
        ) as run:
            await run.wait()

    with pytest.raises(LeaseLost):
        await caller()
    state = await at_rest(store, session.id)
    assert [part for message in state.messages for part in message.parts if isinstance(part, ToolPart)] == []


class TestNativeCancellation:
    """What asyncio cancels by itself, no scope of anyio holds back."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_a_time_limit_around_a_call_loses_no_result(self) -> None:
        async def slow() -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            return "paid"

        async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            yield MessageStart("m")
            call = ToolCall("m", "c", "slow", {})
            yield call
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await request.call_tool(call)
            yield ToolError("c", "Error [timeout] too slow for me")
            yield Finish("stop")

        async with open_store("memory:") as store:
            session = await store.create()
            async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(slow)) as run:
                await run.wait()
            state = await at_rest(store, session.id)
            (call,) = [part for part in state.messages[1].parts if isinstance(part, ToolPart)]
            assert (call.state, call.output) == ("done", {"content": [{"type": "text", "text": "paid"}]})
            assert run.ending is not None
            assert [fault.code for fault in run.ending.faults] == ["changed-outcome"]


@pytest.mark.parametrize(
    "raised", [SystemExit(3), GeneratorExit(), KeyboardInterrupt()], ids=lambda e: type(e).__name__
)
async def test_what_ends_the_block_comes_out_in_no_group(store: SessionStore, raised: BaseException) -> None:
    session = await store.create()

    async def hang(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        await anyio.sleep(60)

    caught: BaseException | None = None
    try:
        async with start_run(store, session.id, Agent(hang), text="go"):
            await anyio.sleep(0.01)
            raise raised
    except BaseException as error:
        caught = error
    assert caught is raised
    await at_rest(store, session.id)


async def test_large_parts_hold_the_agent_back_like_many_small_ones(store: SessionStore) -> None:
    made = 0

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        nonlocal made
        yield MessageStart("m")
        for _ in range(60):
            made += 1
            yield Reasoning("m", "x", {"signature": "s" * 200_000})
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go") as run:
        async for _ in run:
            break
        for _ in range(100):
            await anyio.sleep(0.001)
        assert made < 20
    assert made == 60
