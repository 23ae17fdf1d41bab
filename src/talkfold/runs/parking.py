"""Calls of a run that wait for somebody outside: parked in the log and in the lease, and ended by one answer.

An answer is an action in the log like any other, written by whoever gives it (``answers.py``). The run reads it there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

import anyio
from anyio import CancelScope, get_cancelled_exc_class

from ..actions import Part, SessionAction, ToolError, ToolPhase, ToolResult
from ..errors import CallNotWaiting
from ..log import LoggedAction
from ..model import Json
from ..store.lease import Waiting, WaitKind
from .events import CallAnswered, CallParked, Decision, told
from .output import ToolErrorCode, error_output, tool_outcome

if TYPE_CHECKING:
    from .context import MadeCall, RunContext

__all__ = ("ParkedCalls",)

_DECISIONS = get_args(Decision)
_FOR: dict[WaitKind, str] = {"approval": "approval", "client": "result"}
_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Wait:
    call: MadeCall
    kind: WaitKind
    over: anyio.Event = field(default_factory=anyio.Event)
    answer: SessionAction | None = None
    decision: Decision = "answered"

    def takes(self, action: SessionAction) -> bool:
        """Whether this is an answer: a yes to an approval, or an outcome of that very call."""
        call = self.call.logged
        if type(action) is ToolPhase:
            return self.kind == "approval" and action == ToolPhase(call.name, "running")
        outcome = _outcome_in(action)
        if outcome is None or type(action) is not Part:
            return False
        return (outcome.id, action.within) == (call.id, self.call.within)


class ParkedCalls:
    """What a run waits for. One call at a time: an agent makes one at a time, and waits for its sub-agents."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._waits: dict[int, _Wait] = {}

    async def answer_to(
        self, call: MadeCall, kind: WaitKind, prompt: str | None, seconds: float | None
    ) -> SessionAction | None:
        """Park a call until somebody outside answers, for so many seconds at most; the answer as it is in the log.

        It is a ``toolPhase`` (go on), or the part that ends the call: the client's result, a person's no, or, when
        nobody answered in time, ``Error [timeout]``. ``None`` when the run must end meanwhile. Raises what the log
        raised.
        """
        run = self._run
        expires = None if seconds is None else run.clock() + round(seconds * 1000)
        waiting = Waiting(call.number, call.logged.id, call.logged.name, kind, prompt, expires, call.within)
        wait = self._waits[call.number] = _Wait(call, kind)
        unsubscribe = run.signal.subscribe(wait.over.set)
        try:
            phase = self._phase(call, prompt) if kind == "approval" else []
            await run.journal.park(phase, waiting, {"call": call.number})
            for action in phase:
                run.outbox.put(action)
            told(run.observe, CallParked(run.run_id, waiting))
            _log.info("run %s waits for the %s of call %r (%s)", run.run_id, _FOR[kind], waiting.call_id, waiting.name)
            begun = anyio.current_time()
            with anyio.move_on_after(seconds):
                await wait.over.wait()
            if not wait.over.is_set():
                await self._end(wait, "timeout", f"nobody answered within {seconds or 0:g} s", "expired")
                await wait.over.wait()  # where somebody was quicker, the answer is on its way here, or a Stop is
            if wait.answer is not None:
                told(run.observe, CallAnswered(run.run_id, waiting, wait.decision, anyio.current_time() - begun))
            return wait.answer
        except get_cancelled_exc_class():
            if wait.answer is None and not run.stopping:
                with CancelScope(shield=True):  # the agent no longer waits for its call: then nobody may answer it
                    await self._end(wait, "cancelled", "the agent gave the call up", "given-up")
            raise
        finally:
            unsubscribe()
            del self._waits[call.number]

    def _phase(self, call: MadeCall, prompt: str | None) -> list[ToolPhase]:
        """What shows that the call waits. It is matched by name, newest first: where it would show on another call,
        it is left out."""
        name = call.logged.name
        newer = (other for other in self._run.open.values() if other.logged.name == name and other.path > call.path)
        return [] if any(newer) else [ToolPhase(name, "awaiting-confirmation", prompt)]

    async def _end(self, wait: _Wait, code: ToolErrorCode, why: str, decision: str) -> None:
        """End the wait oneself, unless it has ended already."""
        call = wait.call
        ended = tool_outcome(call.logged.id, error_output(code, f"{call.logged.name}: {why}"))
        action = Part(ended, call.within)
        try:
            await self._run.journal.answer(action, call.number, {"decision": decision})
        except CallNotWaiting:
            return
        self._answered(wait, action, decision)

    def _answered(self, wait: _Wait, action: SessionAction, decision: Json) -> None:
        if wait.answer is not None:
            return
        wait.call.outcome = _outcome_in(action)
        if wait.call.outcome is not None:
            self._run.open.pop(wait.call.number, None)
        wait.answer = action
        if decision in _DECISIONS:
            wait.decision = decision
        self._run.outbox.put(action)
        wait.over.set()

    def heard(self, row: LoggedAction) -> bool:
        """Take a row that somebody else logged as the answer to a parked call, if it is one."""
        meta = row.meta or {}
        number: Json = meta.get("answers")
        wait = self._waits.get(number) if type(number) is int else None
        if wait is None or row.run != self._run.run_id or not wait.takes(row.action):
            return False
        self._answered(wait, row.action, meta.get("decision"))
        return True


def _outcome_in(action: SessionAction) -> ToolResult | ToolError | None:
    part = action.part if type(action) is Part else None
    return part if isinstance(part, ToolResult | ToolError) else None
