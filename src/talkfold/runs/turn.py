"""One agent's turn: its adapter's parts into the log, its calls made, its end well-formed whatever it does."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any, TypeAlias, cast

import anyio
from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint
from msgspec import Struct

from ..actions import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Reasoning,
    RunError,
    StepFinish,
    TextDelta,
    ToolCall,
    ToolError,
    ToolResult,
)
from ..codec import encode_action
from ..healing import heal
from ..model import AgentMessage, ErrorCode
from .adapter import AgentAdapter, AgentRunRequest, WebAgent, logged_part
from .calling import Calling
from .context import MadeCall, RunContext
from .events import AgentEnded, AgentStarted, EndReason, begin, told
from .guard import error_text
from .journal import UNSTORABLE
from .output import ToolOutput, error_output, output_of, tool_outcome
from .subagents import SubAgent, briefing
from .tools import Toolbox

__all__ = ("Ending", "Turn", "reason_of")

_log = logging.getLogger(__name__)

_DRAIN_SECONDS = 1.0
"""How long an agent that has said its end may take to come to it."""

_MOST_AFTER_END = 1_000
_BREATH = 128
"""After so many parts without waiting, others get their turn."""

_LONGEST_ERROR = 2_000

_NETWORK = (ConnectionError, TimeoutError)


class Ending(Struct, frozen=True):
    """How a turn ended: its terminal part, and what the agent said last."""

    part: Finish | RunError
    text: str


_Terminal: TypeAlias = Finish | RunError

_STORED_AT_ONCE = frozenset({ToolCall, ToolResult, ToolError, Finish, RunError})
"""The parts after which something is done that must not be done for a part which the log refuses."""


class Turn:
    """An agent at work: the run's own, or a sub-agent behind the last of the delegate calls ``around`` it."""

    def __init__(
        self,
        run: RunContext,
        adapter: AgentAdapter,
        *,
        toolbox: Toolbox,
        agents: Sequence[SubAgent],
        agent: WebAgent | None,
        around: tuple[MadeCall, ...] = (),
    ) -> None:
        self._run = run
        self._adapter = adapter
        self._agent = agent
        self._around = around
        self._within = around[-1].logged.id if around else None
        self._calling = Calling(run, toolbox, agents, around, self._delegate)
        self._text: list[str] = []
        self._messages: set[str] = set()  # the ids of this level's assistant messages
        self._end: _Terminal | None = None
        self.parts: int = 0

    async def play(self, messages: tuple[AgentMessage, ...]) -> Ending:
        """Play the adapter to its end. Raises only what the log raised, and cancellation."""
        run, adapter = self._run, self._adapter
        agent_id = self._agent.id if self._agent else adapter.id
        started = AgentStarted(run.run_id, agent_id, adapter.id, len(self._around), self._within)
        observation = told(run.observe, started)
        end: _Terminal = Finish("aborted")
        if not self._around:
            self._messages.update(message.id for message in messages if message.role == "assistant")
        try:
            with begin(observation):
                request = AgentRunRequest(
                    heal(messages).messages,
                    run.signal,
                    self._calling.descriptors,
                    self._calling.call_tool,
                    self._agent,
                )
                await self._take_all(request)
            self._calling.over = True
            end = self._end or self._without_end()
            if run.stopping and isinstance(end, Finish):
                end = Finish("aborted")  # whatever the agent made of it: its calls were given up
        finally:
            error = end.error if isinstance(end, RunError) else None
            ended = AgentEnded(run.run_id, agent_id, reason_of(end), len(self._around), self._within, error)
            told(run.observe, ended)
        return Ending(end, "".join(self._text))

    def _without_end(self) -> _Terminal:
        if self._within in self._run.broken:
            return self._run.broken.pop(self._within)
        if self._run.stopping:
            return Finish("aborted")
        self._run.fault("no-end", "the agent's parts ended without finish or error")
        return RunError("The agent stopped in the middle of its reply: it ended without saying so.")

    def closing(self, end: _Terminal) -> list[Part]:
        """What is to be logged at the end: an outcome for each call that has none, and the terminal part."""
        rows: list[Part] = []
        if isinstance(end, Finish) and end.reason != "aborted":  # else the terminal part cancels them
            for call in self._calling.left_open():
                self._run.fault("open-call", f"the agent ended without an outcome for its call {call.logged.id!r}")
                why = f"{call.logged.name}: the agent ended its turn without a result of this call"
                rows.append(Part(tool_outcome(call.logged.id, error_output("cancelled", why)), self._within))
        self._calling.close()
        return [*rows, Part(end, self._within)]

    # ---- the adapter's parts -----------------------------------------------------------------------------

    async def _take_all(self, request: AgentRunRequest) -> None:
        try:
            stream: Any = self._adapter.run(request)
            if not hasattr(stream, "__anext__"):
                if hasattr(stream, "close"):
                    stream.close()  # a coroutine that nobody will await
                kind = type(stream).__name__
                raise TypeError(f"run gave a {kind}, which is no async iterator of parts: use yield in it")
        except Exception as error:
            self._raised(error)
            return
        part: Any = None
        async with self._closed_at_end(cast("AsyncIterator[Any]", stream)) as parts:
            while self._end is None and self._within not in self._run.broken:
                try:
                    part = await parts.__anext__()
                except StopAsyncIteration:
                    return
                except BaseException as error:
                    if not self._is_its_own(error):
                        raise
                    self._raised(error)
                    return
                await self._take(part)
                self.parts += 1
                if not self.parts % _BREATH:
                    await checkpoint()
            self._calling.over = True
            if self._end is not None and self._end is part:
                await self._drain(parts)

    @asynccontextmanager
    async def _closed_at_end(self, stream: AsyncIterator[Any]) -> AsyncGenerator[AsyncIterator[Any]]:
        """An async generator is closed where it was read, so that its clean-up runs inside the run and not later."""
        try:
            yield stream
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                try:
                    with anyio.move_on_after(_DRAIN_SECONDS):
                        await close()
                except BaseException as error:
                    if not self._is_its_own(error):
                        raise
                    _log.warning("run %s: the agent raised %s while it was closed", self._run.run_id, error_text(error))

    def _is_its_own(self, error: BaseException) -> bool:
        """Whether the adapter raised it, and not the run that cancels it, its log that fails, or the person."""
        if error is self._run.journal.failure or isinstance(error, KeyboardInterrupt):
            return False
        return not (isinstance(error, get_cancelled_exc_class()) and anyio.current_effective_deadline() == -inf)

    def _raised(self, error: BaseException) -> None:
        if self._run.stopping:  # the usual way to come to an end after Stop
            _log.info("run %s: the agent raised %r after %s", self._run.run_id, error, self._run.signal.reason)
            return
        text = error_text(error)
        self._run.fault("agent-raised", f"the agent raised {text}")
        _log.warning("run %s: the agent raised", self._run.run_id, exc_info=error)
        code: ErrorCode | None = "network" if isinstance(error, _NETWORK) else None
        self._end = RunError(text[:_LONGEST_ERROR], code)

    async def _drain(self, parts: AsyncIterator[Any]) -> None:
        """Let the agent come to its end: what it yields now is only counted."""
        with anyio.move_on_after(_DRAIN_SECONDS):
            for _ in range(_MOST_AFTER_END):
                try:
                    part = await parts.__anext__()
                except StopAsyncIteration:
                    return
                except BaseException as error:
                    if not self._is_its_own(error):
                        raise
                    self._run.fault("agent-raised", f"the agent raised {type(error).__name__} after its end")
                    return
                self._run.fault("part-after-end", f"the agent yielded {type(part).__name__} after its end")

    async def _take(self, part: AgentStreamPart) -> None:
        run = self._run
        kind = type(part)
        if kind is TextDelta or kind is Reasoning or kind is MessageStart or kind is StepFinish:
            if run.stopping:
                run.dropped += 1
                return
            if kind is MessageStart:
                self._calling.message_id = cast("MessageStart", part).message_id
                self._messages.add(cast("MessageStart", part).message_id)
            elif kind is not StepFinish and cast("TextDelta", part).message_id not in self._messages:
                await self._begin(cast("TextDelta", part).message_id)
            if self._around and kind is not StepFinish:
                self._note_text(part)
            await run.say(part, self._within)
        elif kind in _STORED_AT_ONCE:
            part = logged_part(part)
            try:
                encode_action(Part(part))  # nothing is done about a part before it is one that a log takes
            except UNSTORABLE as error:
                run.refused(Part(part, self._within), error)
                return
            if isinstance(part, ToolCall):
                await self._take_call(part)
            elif isinstance(part, ToolResult | ToolError):
                await self._calling.ended(part)
            elif isinstance(part, Finish | RunError):
                self._end = part
        else:
            run.fault("not-a-part", f"the agent yielded a {kind.__name__}, which is no stream part")
            self._end = RunError(f"The agent yielded a {kind.__name__}, which is no stream part.")

    async def _take_call(self, part: ToolCall) -> None:
        if self._run.stopping:
            self._run.dropped += 1
            return
        self._text.clear()
        if part.message_id not in self._messages:
            await self._begin(part.message_id)
        await self._calling.said(part)

    async def _begin(self, message_id: str) -> None:
        """Begin a message that the agent forgot to begin: without it the fold would lose what it says and calls."""
        self._run.fault("unknown-message", f"there is no message {message_id!r}: message-start was forgotten")
        self._messages.add(message_id)
        await self._run.say(MessageStart(message_id), self._within)

    def _note_text(self, part: AgentStreamPart) -> None:
        """A sub-agent's answer is what it says in its last message, after its last call."""
        if isinstance(part, MessageStart):
            self._text.clear()
        elif isinstance(part, TextDelta):
            self._text.append(str(part.delta))  # what is no text will be refused

    # ---- sub-agents --------------------------------------------------------------------------------------

    async def _delegate(self, agent: SubAgent, call: MadeCall) -> ToolOutput:
        run, name = self._run, call.logged.name
        if len(self._around) >= run.max_depth:
            return error_output("unavailable", f"{name}: agents may nest {run.max_depth} deep, no deeper")
        messages = briefing(call.logged.id, call.logged.input)
        if messages is None:
            return error_output("invalid_input", f"{name}: $.task: expected a text that says what to do")
        turn = Turn(
            run,
            agent.adapter,
            toolbox=agent.tools or Toolbox(),
            agents=agent.agents,
            agent=agent.agent,
            around=(*self._around, call),
        )
        run.broken.pop(call.logged.id, None)  # an older call may have had this id
        ending = await turn.play(messages)
        rows = turn.closing(ending.part)
        if not run.stopping:
            for row in rows:
                await run.commit(row)
        late = run.broken.pop(call.logged.id, None)  # only the last commit told of it
        return _delegate_output(name, Ending(late, "") if late else ending)


def _delegate_output(name: str, ending: Ending) -> ToolOutput:
    match ending.part:
        case RunError(error):
            return error_output("failed", f"{name}: {error}")
        case Finish("aborted"):
            return error_output("cancelled", f"{name}: the agent was stopped")
        case Finish("max-steps"):
            return output_of(f"{ending.text}\n(The agent reached its limit of steps and did not finish.)".lstrip())
        case _:
            return output_of(ending.text)


def reason_of(end: Finish | RunError) -> EndReason:
    """A terminal part's reason in one word."""
    return "error" if isinstance(end, RunError) else end.reason
