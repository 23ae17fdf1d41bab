"""What all agents of one run share: its log, its Stop, its caller, its observer, and the calls that are open in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio

from ..actions import AgentStreamPart, Part, RunError, SessionAction, ToolCall, ToolError, ToolResult
from ..errors import TalkfoldError
from ..model import Json
from .events import AgentFault, AgentFaultCode, Observe
from .finished import FinishedCalls
from .journal import Journal
from .outbox import Outbox
from .parking import ParkedCalls
from .signal import AbortController, AbortSignal

__all__ = ("MadeCall", "RunContext")

_log = logging.getLogger(__name__)
_SHORT = 300


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
        self.parked: ParkedCalls = ParkedCalls(self)

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
