"""What the tests of live runs have in common: adapters that are plain functions, and what a log must be at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio

from talkfold import AgentStreamPart, Finish, MessageStart, TextDelta, ToolCall, ToolPart, fold
from talkfold.actions import Part, SessionAction
from talkfold.calls import calls_newest_first, is_open
from talkfold.log import LoggedAction
from talkfold.model import AgentMessage, SessionState
from talkfold.runs import AgentRunRequest, tool_outcome
from talkfold.store import SessionStore

Play = Callable[[AgentRunRequest], AsyncIterator[AgentStreamPart]]


class Agent:
    """An adapter whose ``run`` is a function; keeps the requests that it got."""

    def __init__(self, play: Play, agent_id: str = "agent") -> None:
        self.id = agent_id
        self.label = agent_id.title()
        self.play = play
        self.requests: list[AgentRunRequest] = []

    def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        self.requests.append(request)
        return self.play(request)


async def says(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
    """Says two words."""
    yield MessageStart("m")
    yield TextDelta("m", "Hello ")
    yield TextDelta("m", "there.")
    yield Finish("stop")


def calls(*wanted: tuple[str, str, Any], message: str = "m", finish: str = "stop") -> Play:
    """An agent that makes these calls (id, name, input) one after the other and says what came back."""

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart(message)
        for call_id, name, given in wanted:
            call = ToolCall(message, call_id, name, given)
            yield call
            output = await request.call_tool(call)
            yield tool_outcome(call_id, output)
            yield TextDelta(message, f"[{output.text}]")
        yield Finish(finish)  # type: ignore[arg-type]

    return play


async def whole_log(store: SessionStore, session_id: str) -> list[LoggedAction]:
    """Every action, in order."""
    rows: list[LoggedAction] = []
    while page := await store.read(session_id, after=len(rows)):
        rows += page
    return rows


def parts(rows: list[LoggedAction]) -> list[AgentStreamPart]:
    """The parts of the top level."""
    return [row.action.part for row in rows if isinstance(row.action, Part) and row.action.within is None]


def actions(rows: list[LoggedAction]) -> list[SessionAction]:
    return [row.action for row in rows]


def all_calls(messages: tuple[AgentMessage, ...]) -> list[ToolPart]:
    """The calls of every depth."""
    found: list[ToolPart] = []
    for _, _, call in calls_newest_first(messages):
        found.append(call)
        if call.agent is not None:
            found += all_calls(call.agent.messages)
    return found


async def at_rest(store: SessionStore, session_id: str) -> SessionState:
    """The state of a session in which nothing runs: checked for all that must hold then."""
    session = await store.get(session_id)
    state = (await store.state(session_id)).state
    assert session.lease is None
    assert state.status == session.status != "streaming"
    assert not [call for call in all_calls(state.messages) if is_open(call)]
    assert fold(actions(await whole_log(store, session_id))) == state
    assert not (await store.check(session_id)).problems
    return state


async def until(condition: Callable[[], object], seconds: float = 5) -> None:
    """Wait until something has become true."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.001)
