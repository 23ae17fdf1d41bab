"""What an observer may do and return, and what a run writes into the log of its process."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Any, cast

import anyio
import pytest
from observer import STARTED
from run_world import Agent, at_rest, calls, says, whole_log

from talkfold import (
    AgentStreamPart,
    Finish,
    LeaseLost,
    MessageStart,
    ToolCall,
)
from talkfold.runs import (
    AgentRunRequest,
    Observation,
    RunEvent,
    RunSettings,
    Toolbox,
    start_run,
    tool,
    tool_outcome,
)
from talkfold.store import SessionStore, open_store

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    return a + b


# ---- what an observer may do --------------------------------------------------------------------------------------


async def test_an_observer_that_raises_changes_nothing_and_is_logged(
    store: SessionStore, caplog: pytest.LogCaptureFixture
) -> None:
    def observe(event: RunEvent) -> None:
        raise RuntimeError("no telemetry today")

    session = await store.create()
    agent = Agent(calls(("c1", "add", {"a": 1, "b": 2})))
    async with start_run(
        store, session.id, agent, text="go", tools=Toolbox(add), settings=RunSettings(observe=observe)
    ) as run:
        ending = await run.wait()
    assert (ending.cause, ending.part, ending.faults) == ("agent", Finish("stop"), ())
    state = await at_rest(store, session.id)
    assert state.messages[1].parts[0].state == "done"  # type: ignore[union-attr]
    said = [record for record in caplog.records if record.name == "talkfold.runs.events"]
    assert [(record.levelno, record.getMessage()) for record in said] == [
        (logging.ERROR, f"an observer of run {run.id} raised")
    ] * 6


current: ContextVar[str] = ContextVar("current", default="nothing")


class Seen(AbstractContextManager[None]):
    """An observation that makes its name current."""

    def __init__(self, name: str, meta: Any) -> None:
        self.name = name
        self.meta = meta
        self.left_by: list[object] = []

    def around(self) -> AbstractContextManager[None]:
        return self

    def __enter__(self) -> None:
        self.token = current.set(self.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.left_by.append(error)
        current.reset(self.token)


@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "task"])
async def test_what_an_observer_returns_is_entered_around_the_work(store: SessionStore, is_async: bool) -> None:
    seen: dict[str, str] = {}

    def look() -> None:
        seen["tool"] = current.get()

    async def look_async() -> None:
        seen["tool"] = current.get()

    async def looks(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        seen["agent"] = current.get()
        call = ToolCall("m", "c1", "look", {})
        yield call
        yield tool_outcome("c1", await request.call_tool(call))
        seen["agent, after it"] = current.get()
        yield Finish("stop")

    made: list[Seen] = []

    def observe(event: RunEvent) -> Observation | None:
        if not isinstance(event, STARTED):
            return None
        made.append(Seen(type(event).__name__, {"by": "observer"}))
        return made[-1]

    session = await store.create()
    look_tool = tool(name="look")(look_async) if is_async else tool(name="look")(look)
    async with start_run(
        store,
        session.id,
        Agent(looks),
        text="go",
        tools=Toolbox(look_tool),
        meta={"by": "caller", "page": 1},
        settings=RunSettings(observe=observe),
    ) as run:
        seen["caller"] = current.get()
        await run.wait()
    assert seen == {
        "agent": "AgentStarted",
        "tool": "CallStarted",
        "agent, after it": "AgentStarted",
        "caller": "nothing",
    }
    assert [each.left_by for each in made] == [[None], [None], [None]]
    rows = await whole_log(store, session.id)
    assert rows[0].meta == {"by": "observer", "page": 1}
    assert all(row.meta is None for row in rows[1:])


class Broken:
    """An observation of which one thing does not work."""

    def __init__(self, meta: Callable[[], Any], around: Callable[[], Any]) -> None:
        self._meta = meta
        self._around = around

    @property
    def meta(self) -> Any:
        return self._meta()

    def around(self) -> Any:
        return self._around()


def fails(*_: object) -> Any:
    raise RuntimeError("no")


class Fails(AbstractContextManager[None]):
    def __init__(self, entering: bool) -> None:
        self._entering = entering

    def __enter__(self) -> None:
        if self._entering:
            fails()

    def __exit__(self, *_: object) -> None:
        fails()


@pytest.mark.parametrize(
    ("meta", "around"),
    [
        (fails, nullcontext),
        (lambda: {"span": object()}, nullcontext),
        (lambda: {"ratio": float("nan")}, nullcontext),
        (lambda: 7, nullcontext),
        (dict, fails),
        (dict, lambda: None),
        (dict, lambda: Fails(True)),
        (dict, lambda: Fails(False)),
    ],
    ids=["meta raises", "no JSON", "NaN", "no mapping", "around raises", "no context", "enter raises", "exit raises"],
)
async def test_an_observation_that_fails_changes_nothing_and_is_logged(
    meta: Callable[[], Any], around: Callable[[], Any], store: SessionStore, caplog: pytest.LogCaptureFixture
) -> None:
    session = await store.create()
    agent = Agent(calls(("c1", "add", {"a": 1, "b": 2})))
    settings = RunSettings(observe=lambda event: Broken(meta, around))
    async with start_run(store, session.id, agent, text="go", tools=Toolbox(add), settings=settings) as run:
        ending = await run.wait()
    assert (ending.cause, ending.part) == ("agent", Finish("stop"))
    await at_rest(store, session.id)
    assert (await whole_log(store, session.id))[0].meta is None
    said = [record for record in caplog.records if record.name == "talkfold.runs.events"]
    assert said
    assert {record.levelno for record in said} == {logging.ERROR}


async def test_an_observer_may_return_anything(store: SessionStore) -> None:
    session = await store.create()
    settings = RunSettings(observe=lambda event: cast("object", event.run))
    async with start_run(store, session.id, Agent(says), text="go", settings=settings) as run:
        assert (await run.wait()).part == Finish("stop")
    assert (await whole_log(store, session.id))[0].meta is None


# ---- what the log of the process says -----------------------------------------------------------------------------


def said_by(caplog: pytest.LogCaptureFixture, name: str) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records if record.name == name]


async def test_a_run_is_logged_where_it_starts_and_ends(store: SessionStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "talkfold.runs")
    session = await store.create()
    async with start_run(store, session.id, Agent(says), text="secret") as run:
        pass
    assert said_by(caplog, "talkfold.runs.conductor") == [
        (logging.INFO, f"run {run.id} started in session {session.id}"),
        (logging.INFO, f"run {run.id} ended in session {session.id}: agent"),
    ]
    assert "secret" not in caplog.text


async def test_a_stop_is_logged(store: SessionStore, caplog: pytest.LogCaptureFixture) -> None:
    async def hangs(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        await anyio.sleep(60)

    caplog.set_level(logging.INFO, "talkfold.runs")
    session = await store.create()
    settings = RunSettings(grace_seconds=0.05)
    async with start_run(store, session.id, Agent(hangs), text="go", settings=settings) as run:
        await run.stop()
        await run.wait()
    assert said_by(caplog, "talkfold.runs.conductor") == [
        (logging.INFO, f"run {run.id} started in session {session.id}"),
        (logging.INFO, f"run {run.id}: somebody logged a stop; its agent is told to end"),
        (logging.INFO, f"run {run.id} ended in session {session.id}: stop"),
    ]


async def test_a_lost_lease_is_a_warning_and_a_broken_agent_as_well(
    anyio_backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    now = 1_000_000_000
    async with open_store("memory:", clock=lambda: now) as store:
        session = await store.create()
        inside = anyio.Event()

        async def hangs(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            yield MessageStart("m")
            inside.set()
            await anyio.sleep(60)

        async def raises(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            raise ValueError("lost the thread")
            yield MessageStart("m")

        async def loses() -> str:
            nonlocal now
            async with start_run(store, session.id, Agent(hangs), text="go") as run:
                lost.append(run.id)
                await inside.wait()
                now += 1_000_000
                async with start_run(store, session.id, Agent(raises), text="go"):
                    pass
                raise KeyError

        lost: list[str] = []
        with pytest.raises((KeyError, LeaseLost)):
            await loses()
    warned = [message for level, message in said_by(caplog, "talkfold.runs.conductor") if level == logging.WARNING]
    assert len(warned) == 1
    assert warned[0].startswith(f"run {lost[0]} ended in session {session.id} and could not say so: ")
    assert {level for level, _ in said_by(caplog, "talkfold.runs.turn")} == {logging.WARNING}
