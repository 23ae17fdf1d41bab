"""What all agents of one run share: its log, its Stop, its caller, its observer, and the calls that are open in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import get_args

import anyio
from anyio import CancelScope, get_cancelled_exc_class

from ..actions import AgentStreamPart, Part, RunError, SessionAction, ToolCall, ToolError, ToolPhase, ToolResult
from ..calls import CANCELLED_MARK
from ..errors import CallNotWaiting, TalkfoldError
from ..log import LoggedAction
from ..model import Json
from ..store.lease import Waiting, WaitKind
from .events import AgentFault, AgentFaultCode, CallAnswered, CallParked, Decision, Observe, told
from .finished import FinishedCalls
from .journal import Journal
from .outbox import Outbox
from .signal import AbortController, AbortSignal

__all__ = ("MadeCall", "RunContext", "ends_call")

_log = logging.getLogger(__name__)
_SHORT = 300
_DECISIONS = get_args(Decision)


@dataclass(eq=False, slots=True)
class MadeCall:
    """A call that an agent of this run made. ``said`` is its part as the agent yielded it, ``logged`` as it is in the
    log; ``path`` are the numbers of the delegate calls around it and its own, so that paths are in the order in which
    the fold finds calls; ``outcome`` is the part that ended it, once it is on its way into the log. ``begun``: it is
    being made, or was; ``given_up``: the agent ended it before its tool did; ``reused``: an older run had made it;
    ``settled`` is set when it is in the log (``path`` is known), or when no log takes it."""

    said: ToolCall
    logged: ToolCall
    within: str | None
    path: tuple[int, ...] = ()
    begun: bool = False
    given_up: bool = False
    reused: bool = False
    outcome: ToolResult | ToolError | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)

    @property
    def number(self) -> int:
        """The number of its action in the log."""
        return self.path[-1]


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
        outcome = ends_call(action)
        if outcome is None or type(action) is not Part:
            return False
        return (outcome.id, action.within) == (call.id, self.call.within)


class RunContext:
    """One run's common ground. Agents of all depths write through it, and hear through it what others logged."""

    def __init__(
        self,
        run_id: str,
        *,
        clock: Callable[[], int],
        approval_seconds: float | None,
        max_depth: int,
        observe: Observe | None,
    ) -> None:
        self.run_id = run_id
        self.clock = clock
        self.approval_seconds = approval_seconds
        self.max_depth = max_depth
        self.observe = observe
        self.journal: Journal  # set when the session is taken: until then there is nothing to write into
        self.outbox: Outbox = Outbox()
        self.controller: AbortController = AbortController()
        self.faults: dict[AgentFaultCode, AgentFault] = {}
        self.broken: dict[str | None, RunError] = {}  # by ``within``: the turns whose agent yielded what no log takes
        self.dropped = 0
        self.open: dict[int, MadeCall] = {}
        self.delegates: set[str] = set()  # ids of delegate calls, of all depths
        self.finished: FinishedCalls = FinishedCalls()
        self._waits: dict[int, _Wait] = {}

    @property
    def signal(self) -> AbortSignal:
        """Aborted when the run must end."""
        return self.controller.signal

    @property
    def stopping(self) -> bool:
        """Whether the run must end: from then on only what has really happened is logged."""
        return self.controller.signal.aborted

    # ---- writing ---------------------------------------------------------------------------------------

    async def say(self, part: AgentStreamPart, within: str | None) -> None:
        """Log a part that need not be durable before what follows, and hand it out at once."""
        action = Part(part, within)
        self.journal.put(action)
        self.outbox.put(action)
        if self.journal.crowded:
            await self.journal.room()
        if self.outbox.crowded:
            await self.outbox.room()

    async def commit(self, action: SessionAction, meta: Mapping[str, Json] | None = None) -> int | None:
        """Log an action and hand it out when it is durable; its number, or ``None`` when no log takes it."""
        number = await self.journal.commit(action, meta)
        if number is not None:
            self.outbox.put(action)
            if self.outbox.crowded and not self.stopping:
                await self.outbox.room()
        return number

    def fault(self, code: AgentFaultCode, text: str) -> None:
        """Note what an adapter did against its contract."""
        known = self.faults.get(code)
        if known is None:
            _log.warning("run %s: %s", self.run_id, text)
        self.faults[code] = AgentFault(code, known.count + 1 if known else 1, known.text if known else text[:_SHORT])

    def refused(self, action: SessionAction, error: TalkfoldError) -> None:
        """An action of this run that no log takes."""
        kind = type(action.part).__name__ if type(action) is Part else type(action).__name__
        self.fault("unstorable-part", f"a {kind} cannot be stored: {error}")
        within = action.within if type(action) is Part else None
        self.broken.setdefault(within, RunError(f"The agent yielded a {kind} that cannot be stored: {error}"[:_SHORT]))

    # ---- waiting for somebody outside --------------------------------------------------------------------

    async def answer_to(
        self, call: MadeCall, kind: WaitKind, prompt: str | None, seconds: float | None
    ) -> SessionAction | None:
        """Park a call until somebody outside answers; the answer as it is in the log.

        It is a ``toolPhase`` (go on), or the part that ends the call: the client's result, a person's no, or, when
        nobody answered in time, ``Error [timeout]``. ``None`` when the run must end meanwhile.
        """
        number, name = call.number, call.logged.name
        expires = None if seconds is None else self.clock() + round(seconds * 1000)
        waiting = Waiting(number, call.logged.id, name, kind, prompt, expires, call.within)
        wait = self._waits[number] = _Wait(call, kind)
        unsubscribe = self.signal.subscribe(wait.over.set)
        try:
            phase = [ToolPhase(name, "awaiting-confirmation", prompt)] if kind == "approval" else []
            if phase and any(other.path > call.path for other in self._open_of(name)):
                phase = []  # the phase is matched by name, newest first: it would show on another call
            await self.journal.park(phase, waiting, {"call": number})
            for action in phase:
                self.outbox.put(action)
            told(self.observe, CallParked(self.run_id, waiting))
            begun = anyio.current_time()
            with anyio.move_on_after(seconds):
                await wait.over.wait()
            if not wait.over.is_set():
                await self._expire(call, seconds or 0)
                await wait.over.wait()
            if wait.answer is not None:
                waited = anyio.current_time() - begun
                told(self.observe, CallAnswered(self.run_id, waiting, wait.decision, waited))
            return wait.answer
        except get_cancelled_exc_class():
            with CancelScope(shield=True):
                await self._give_up(call, wait)
            raise
        finally:
            unsubscribe()
            del self._waits[number]

    async def _give_up(self, call: MadeCall, wait: _Wait) -> None:
        """The agent no longer waits for its call: then nobody may answer it."""
        if wait.answer is not None or self.stopping:
            return
        text = f"{CANCELLED_MARK} {call.logged.name}: the agent gave the call up"
        given_up = Part(ToolError(call.logged.id, text), call.within)
        try:
            await self.journal.answer(given_up, call.number, {"decision": "given-up"})
        except Exception:
            return  # it was answered, or the run is over: then it waits no more either
        self._answered(call.number, given_up, None)

    async def _expire(self, call: MadeCall, seconds: float) -> None:
        text = f"Error [timeout] {call.logged.name}: nobody answered within {seconds:g} s"
        late = Part(ToolError(call.logged.id, text), call.within)
        try:
            await self.journal.answer(late, call.number, {"decision": "expired"})
        except CallNotWaiting:
            return  # somebody was quicker: the answer is on its way here, or a Stop is
        self._answered(call.number, late, "expired")

    def _open_of(self, name: str) -> list[MadeCall]:
        return [call for call in self.open.values() if call.logged.name == name]

    def _answered(self, number: int, action: SessionAction, decision: Json) -> None:
        wait = self._waits.get(number)
        if wait is None or wait.answer is not None:
            return
        wait.call.outcome = ends_call(action)
        if wait.call.outcome is not None:
            self.open.pop(number, None)
        wait.answer = action
        if decision in _DECISIONS:
            wait.decision = decision
        self.outbox.put(action)
        wait.over.set()

    def heard_answer(self, row: LoggedAction) -> bool:
        """Take a row that somebody else logged as the answer to a parked call, if it is one."""
        number: Json = None if row.meta is None else row.meta.get("answers")
        wait = self._waits.get(number) if type(number) is int else None
        if wait is None or row.run != self.run_id or not wait.takes(row.action):
            return False
        self._answered(number, row.action, row.meta and row.meta.get("decision"))
        return True


def ends_call(action: SessionAction) -> ToolResult | ToolError | None:
    """The outcome in an action, if it is one."""
    part = action.part if type(action) is Part else None
    return part if isinstance(part, ToolResult | ToolError) else None
