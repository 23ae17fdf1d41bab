"""The calls of one agent: each in the log before its tool runs, and its outcome there before the agent goes on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import TypeAlias

import anyio
from anyio import CancelScope
from msgspec.structs import replace

from ..actions import Part, ToolCall, ToolError, ToolResult
from ..calls import CANCELLED_MARK
from ..codec.values import same_json
from ..model import DELEGATE_PREFIX, UNSET, Json, ToolCallState
from .adapter import ToolCallRequest, ToolDescriptor
from .context import MadeCall, RunContext
from .events import CallEnded, CallProgress, CallStarted, begin, told
from .guard import error_text
from .output import ToolOutput, error_output, output_of, tool_outcome
from .subagents import SubAgent, delegate_descriptor
from .tool import ToolContext, ToolProgress
from .tools import Toolbox

__all__ = ("Calling", "Delegation")

_log = logging.getLogger(__name__)

Delegation: TypeAlias = Callable[[SubAgent, MadeCall], Awaitable[ToolOutput]]
"""How a delegate call is carried out: the sub-agent's whole run. Raises only what the log raised, and cancellation."""


class Calling:
    """What an agent of a run may call, and what it called.

    ``around`` are the delegate calls that this agent is nested in, outermost first.
    """

    def __init__(
        self,
        run: RunContext,
        toolbox: Toolbox,
        agents: Sequence[SubAgent],
        around: tuple[MadeCall, ...],
        delegation: Delegation,
    ) -> None:
        self._run = run
        self._toolbox = toolbox
        self._agents = agents
        self._around = around
        self._delegation = delegation
        self._agents_around = tuple(call.logged.name[len(DELEGATE_PREFIX) :] for call in around)
        self._within = around[-1].logged.id if around else None
        self._made: dict[str, list[MadeCall]] = {}
        self._one_at_a_time = anyio.Lock()
        self.message_id: str | None = None  # the agent's newest message
        self.over: bool = False  # the agent has said its end: no tool runs for it any more

    def descriptors(self) -> tuple[ToolDescriptor, ...]:
        """The agent's tools right now, sub-agents first."""
        if len(self._around) >= self._run.max_depth:
            return self._toolbox.descriptors()
        return (*map(delegate_descriptor, self._agents), *self._toolbox.descriptors())

    # ---- what the agent yields ---------------------------------------------------------------------------

    async def said(self, part: ToolCall) -> None:
        """The agent yielded a call: it is durable when this returns."""
        if any(call.begun and call.outcome is None for call in self._made.get(part.id, ())):
            await self._run.journal.flush()  # call_tool came first, and has put it down
        else:
            await self._log_call(part)

    async def _log_call(self, part: ToolCall, *, begun: bool = False) -> MadeCall | None:
        # A copy: what runs, and what a person agreed to, is what the log shows, whatever the agent does to its own.
        own = replace(part, input=deepcopy(part.input), provider_metadata=deepcopy(part.provider_metadata))
        call = MadeCall(part, self._with_own_id(own), self._within, begun=begun)
        self._made.setdefault(part.id, []).append(call)  # before anything is awaited: it may be there twice else
        number: int | None = None
        try:
            with CancelScope(shield=True):
                number = await self._run.commit(Part(call.logged, self._within))
        finally:
            if number is None:
                self._forget(call)
            else:
                call.path = (*(outer.number for outer in self._around), number)
                self._run.open[number] = call
            call.settled.set()
        return None if number is None else call

    def _with_own_id(self, part: ToolCall) -> ToolCall:
        """``within`` names a delegate call by its id alone, and means the newest as they stand in the conversation,
        which need not be the last one made. So no two of a run have the same."""
        taken = self._run.delegates
        if not part.name.startswith(DELEGATE_PREFIX):
            return part
        if part.id not in taken:
            taken.add(part.id)
            return part
        number = 2
        while f"{part.id}-{number}" in taken:
            number += 1
        taken.add(f"{part.id}-{number}")
        return replace(part, id=f"{part.id}-{number}")

    async def ended(self, part: ToolResult | ToolError) -> None:
        """The agent yielded an outcome: it is durable when this returns. What the run has logged is not repeated."""
        calls = self._made.get(part.id)
        call = next((each for each in reversed(calls or ()) if each.outcome is None), calls[-1] if calls else None)
        if call is None:
            if not self._run.stopping:  # else: the call itself came after Stop
                self._run.fault("unknown-call", f"an outcome for {part.id!r}, which is no call of this agent")
                await self._run.commit(Part(part, self._within))
            return
        if self._run.journal.failure is not None:
            return  # what it was told then is not what its tool did
        outcome = replace(part, id=call.logged.id)
        if isinstance(call.outcome, ToolResult) and isinstance(outcome, ToolError):
            self._run.fault("changed-outcome", f"the call {part.id!r} has a result, and the agent says that it failed")
            outcome = call.outcome
        if outcome != call.outcome and not (self._run.stopping and _is_cancelled(outcome)):
            call.given_up = call.outcome is None
            await self._log_outcome(call, outcome, {"changed": True} if call.outcome is not None else None)
        self._forget(call)

    async def _log_outcome(
        self, call: MadeCall, outcome: ToolResult | ToolError, meta: dict[str, Json] | None = None
    ) -> None:
        call.outcome = outcome
        self._run.open.pop(call.number, None)
        await self._run.commit(Part(outcome, self._within), meta)

    def _forget(self, call: MadeCall) -> None:
        calls = self._made.get(call.said.id, [])
        if call in calls:
            calls.remove(call)
        if not calls:
            self._made.pop(call.said.id, None)

    def left_open(self) -> list[MadeCall]:
        """The calls that have no outcome, oldest first."""
        return [call for calls in self._made.values() for call in calls if call.outcome is None]

    def close(self) -> None:
        """The agent is over: its calls are no longer open, and it makes no more."""
        self.over = True
        for calls in self._made.values():
            for call in calls:
                if call.path:  # else: it is just being logged
                    self._run.open.pop(call.number, None)

    # ---- what the agent has done ----------------------------------------------------------------------------

    async def call_tool(self, request: ToolCallRequest) -> ToolOutput:
        """Make a call, when all earlier ones are over. Never raises; what the log cannot hold becomes ``failed``."""
        async with self._one_at_a_time:
            try:
                return await self._called(request)
            except Exception as error:
                if error is self._run.journal.failure:
                    return error_output("unavailable", f"{request.name}: the run lost its log ({error})")
                _log.exception("run %s: the call %r could not be made", self._run.run_id, request.id)
                return error_output("failed", f"{request.name}: {error_text(error)}")

    async def _called(self, request: ToolCallRequest) -> ToolOutput:
        if self._run.stopping:
            return _stopped(self._run, request.name)
        if self.over:
            return error_output("cancelled", f"{request.name}: the agent has ended its turn")
        said = next((each for each in reversed(self._made.get(request.id, ())) if not each.begun), None)
        call = said or await self._unsaid(request)
        if isinstance(call, ToolOutput):
            return call
        call.begun = True
        await call.settled.wait()
        if not call.path:
            return error_output("invalid_input", f"{request.name}: the call {request.id!r} cannot be stored")
        if call.logged.name != request.name or not same_json(call.logged.input, request.input):
            self._run.fault("changed-call", f"the call {request.id!r} was made with other arguments than it has")
            text = f"{request.name}: the call {request.id!r} has another name or input in the log"
            return await self._keep(call, error_output("invalid_input", text))
        return await self._keep(call, await self._observed(call))

    async def _unsaid(self, request: ToolCallRequest) -> MadeCall | ToolOutput:
        """A call that the agent did not yield: logged here, so that no tool ever runs without its call."""
        done = self._made.get(request.id)
        if done:
            return error_output("failed", f"{request.name}: the call {request.id!r} has been made already")
        self._run.fault("unsaid-call", f"call_tool came before the tool-call part of {request.id!r}")
        if self.message_id is None:
            return error_output("failed", f"{request.name}: there is no message that makes this call")
        part = ToolCall(self.message_id, request.id, request.name, request.input)
        call = await self._log_call(part, begun=True)
        return call or error_output("invalid_input", f"{request.name}: the input cannot be stored")

    async def _keep(self, call: MadeCall, output: ToolOutput) -> ToolOutput:
        """Log the output as the call's outcome, unless it has one; what a tool did is told even on the way out, and
        even where the agent had given the call up meanwhile."""
        outcome = tool_outcome(call.logged.id, output)
        late = call.given_up and isinstance(outcome, ToolResult)
        if (call.outcome is None or late) and not (self._run.stopping and _is_cancelled(outcome)):
            with CancelScope(shield=True):
                await self._log_outcome(call, outcome, {"reused": True} if call.reused else None)
        return output

    async def _observed(self, call: MadeCall) -> ToolOutput:
        run, part = self._run, call.logged
        observation = told(run.observe, CallStarted(run.run_id, part.id, part.name, call.number, call.within))
        begun = anyio.current_time()
        state: ToolCallState = "cancelled"
        error: str | None = None
        try:
            with begin(observation):
                output = await self._make(call)
            outcome = call.outcome or tool_outcome(part.id, output)
            error = outcome.error if isinstance(outcome, ToolError) else None
            state = "done" if error is None else "cancelled" if error.startswith(CANCELLED_MARK) else "error"
            return output
        finally:
            seconds = anyio.current_time() - begun
            told(run.observe, CallEnded(run.run_id, part.id, part.name, state, seconds, call.within, error))

    async def _make(self, call: MadeCall) -> ToolOutput:
        run, part = self._run, call.logged
        request = ToolCallRequest(part.id, part.name, part.input)
        done = run.finished.take(self._agents_around, part.name, part.input)
        if done is not None:
            call.reused = True
            return _output_of(done.output, done.error)
        agent = next((agent for agent in self._agents if agent.call_name == part.name), None)
        if agent is not None:
            return await self._delegation(agent, call)
        prompt = self._toolbox.confirmation(request)
        if prompt is not None:
            answer = await run.parked.answer_to(call, "approval", prompt, run.approval_seconds)
            if answer is None or call.outcome is not None:
                return _answered(run, call)
        source = self._toolbox.parking(request)
        if source is not None:
            await run.parked.answer_to(call, "client", None, source.patience(request))
            return _answered(run, call)

        def progress(progress: ToolProgress) -> None:
            told(run.observe, CallProgress(run.run_id, progress))

        return await self._toolbox.call(request, ToolContext(part.id, run.signal, progress))


def _answered(run: RunContext, call: MadeCall) -> ToolOutput:
    """The output of a call that somebody outside ended, or Stop."""
    outcome = call.outcome
    if outcome is None:
        return _stopped(run, call.logged.name)
    return _output_of(outcome.output, None) if isinstance(outcome, ToolResult) else _output_of(UNSET, outcome.error)


def _output_of(output: Json, error: str | None) -> ToolOutput:
    """What the agent gets for an outcome that is in the log."""
    if error is None:
        return output_of(output)
    return ToolOutput({"content": [{"type": "text", "text": error}], "isError": True})


def _stopped(run: RunContext, name: str) -> ToolOutput:
    return error_output("cancelled", f"{name}: stopped ({run.signal.reason})")


def _is_cancelled(outcome: ToolResult | ToolError) -> bool:
    return isinstance(outcome, ToolError) and outcome.error.startswith(CANCELLED_MARK)
