"""What a run tells while it goes on, for whoever observes it: traces, metrics, a progress display.

The log is the truth about a conversation; events are the same run seen by a clock. Each ``…Started`` has its
``…Ended``, whatever happens in between, and they nest: calls in agents, a sub-agent's run in its delegate call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ..model import ErrorCode, Json, ToolCallState
from ..store.entries import encode_metadata
from ..store.lease import Waiting
from .tool import ToolProgress

__all__ = (
    "AgentEnded",
    "AgentFault",
    "AgentFaultCode",
    "AgentStarted",
    "CallAnswered",
    "CallEnded",
    "CallParked",
    "CallProgress",
    "CallStarted",
    "Decision",
    "EndReason",
    "Observation",
    "Observe",
    "RunCause",
    "RunEnded",
    "RunEvent",
    "RunStarted",
    "begin",
    "told",
)

_log = logging.getLogger(__name__)

RunCause: TypeAlias = Literal["agent", "stop", "cancelled", "raised", "lease-lost", "store", "refused"]
"""Why a run ended: by what its agent said, by a stop that anybody logged, because its caller was cancelled or raised,
because its lease was lost, or because the store failed. Refused: it never began."""

EndReason: TypeAlias = Literal["stop", "max-steps", "aborted", "error"]
"""How an agent's turn ended: the reason of its ``finish``, or its error."""

Decision: TypeAlias = Literal["approved", "denied", "answered", "expired"]
"""How a call that waited was answered: by a person's yes or no, by the client's result, or by nobody in time."""

AgentFaultCode: TypeAlias = Literal[
    "agent-raised",
    "no-end",
    "part-after-end",
    "not-a-part",
    "unstorable-part",
    "open-call",
    "unsaid-call",
    "changed-call",
    "changed-outcome",
    "unknown-call",
    "unknown-message",
]
"""What an adapter did against its contract: it raised · ended without ``finish`` or ``error`` · went on after it ·
yielded something else than a part · or one that no log takes · ended while a call was open · had a call made that it
had not yielded · or yielded with other arguments · called a call failed that had a result (which stays) · gave an
outcome to a call that it never made · said something in a message that it had not begun (the run begins it)."""


class AgentFault(Struct, frozen=True, rename="camel"):
    """Something that an adapter did against its contract, how often, and the first time in words."""

    code: AgentFaultCode
    count: int
    text: str


class RunStarted(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A run is about to take its session. ``action``: a new message, or the last turn again."""

    session_id: str
    run: str
    adapter_id: str
    action: Literal["send", "retry"]
    owner: str | None = None


class RunEnded(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A run is over. ``reason`` is its terminal part's, ``error`` when that is an error; ``None``: it was refused, or
    wrote no end. ``parts`` counts what its agent yielded at the top level."""

    session_id: str
    run: str
    cause: RunCause
    reason: EndReason | None
    seconds: float
    parts: int
    error: str | None = None
    error_code: ErrorCode | None = None
    faults: tuple[AgentFault, ...] = ()


class AgentStarted(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An agent begins: the run's own (``depth`` 0), or a sub-agent behind the delegate call ``within``."""

    run: str
    agent_id: str
    adapter_id: str
    depth: int
    within: str | None = None


class AgentEnded(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An agent is done; ``reason`` is how it ended itself. What was logged for the run may be another end: an agent
    that took too long after Stop was ``aborted``, whatever it said later."""

    run: str
    agent_id: str
    reason: EndReason
    depth: int
    within: str | None = None
    error: str | None = None


class CallStarted(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A call is about to be made; ``number`` is that of its action in the log."""

    run: str
    call_id: str
    name: str
    number: int
    within: str | None = None


class CallParked(Struct, frozen=True, rename="camel"):
    """A call waits for somebody outside."""

    run: str
    waiting: Waiting


class CallAnswered(Struct, frozen=True, rename="camel"):
    """The call that waited was answered, after so many seconds; none of this when the run ended meanwhile."""

    run: str
    waiting: Waiting
    decision: Decision
    seconds: float


class CallProgress(Struct, frozen=True, rename="camel"):
    """A tool tells how far it is. Told in the thread that the tool runs in."""

    run: str
    progress: ToolProgress


class CallEnded(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A call is over, after so many seconds; ``state`` is the state that its outcome gives it."""

    run: str
    call_id: str
    name: str
    state: ToolCallState
    seconds: float
    within: str | None = None
    error: str | None = None


RunEvent: TypeAlias = (
    RunStarted
    | RunEnded
    | AgentStarted
    | AgentEnded
    | CallStarted
    | CallParked
    | CallAnswered
    | CallProgress
    | CallEnded
)


@runtime_checkable
class Observation(Protocol):
    """What an observer may return for a ``…Started``: entered around the work itself, in the task that does it, so
    that what the work starts (a request of a tool, say) finds it in its context variables."""

    @property
    def meta(self) -> Mapping[str, Json]:
        """What to note in the ``meta`` of a run's first action (a trace's id); may be empty. Looked at for
        ``RunStarted`` only; what no log takes is left out."""
        ...

    def around(self) -> AbstractContextManager[object]:
        """A context manager for the work; asked for once for each task that does some of it. It is left without an
        exception, whatever the work raised: how the work ended is the ``…Ended``'s to say."""
        ...


Observe: TypeAlias = Callable[[RunEvent], Observation | object]
"""A run's observer: called with every event, in order, in the task that does the work; must not wait. ``CallProgress``
alone may come from another thread. What it raises is logged and changes nothing."""


def told(observe: Observe | None, event: RunEvent) -> Observation | None:
    """Tell an observer, if there is one; never raises."""
    if observe is None:
        return None
    try:
        answer = observe(event)
        if not isinstance(answer, Observation):
            return None
        return _Told(_storable(answer, event.run) if type(event) is RunStarted else {}, answer.around)
    except Exception:
        _log.exception("an observer of run %s raised", event.run)
        return None


def _storable(observation: Observation, run: str) -> Mapping[str, Json]:
    """What an observation wants noted, if a log takes it: a run is not refused for what its observer says."""
    try:
        meta = dict(observation.meta)
        encode_metadata("meta", meta)
    except Exception:
        _log.exception("what an observer of run %s wants noted cannot be", run)
        return {}
    return meta


class _Told(Struct, frozen=True):
    meta: Mapping[str, Json]
    around: Callable[[], AbstractContextManager[object]]


def begin(observation: Observation | None) -> AbstractContextManager[object]:
    """The context of some work under an observation. One that fails is logged, and the work goes on without it."""
    if observation is None:
        return nullcontext()
    try:
        return _Guarded(observation.around())
    except Exception:
        _log.exception("an observation cannot be made")
        return nullcontext()


class _Guarded(AbstractContextManager[None]):
    def __init__(self, inner: AbstractContextManager[object]) -> None:
        self._inner = inner
        self._entered = False

    def __enter__(self) -> None:
        try:
            self._inner.__enter__()
            self._entered = True
        except Exception:
            _log.exception("an observation cannot be entered")

    def __exit__(self, *raised: object) -> None:
        if self._entered:
            try:
                self._inner.__exit__(None, None, None)
            except Exception:
                _log.exception("an observation cannot be left")
