"""A live run: an adapter's parts played into a session's log, by a lease, until the agent or somebody else ends it.

```python
async with start_run(store, session.id, adapter, text="Add two mugs", tools=Toolbox(add_to_cart)) as run:
    async for part in run:
        ...
```

A run is three tasks: one plays the agent, one writes the log and hears what others write into it, one renews the lease.
Stop is not told to the run: it is logged, by any process, and the run reads it there.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Generic, Literal, Self, TypeVar, cast

import anyio
from anyio import CancelScope, get_cancelled_exc_class
from msgspec import Struct

from ..actions import AgentStreamPart, Finish, Part, Retry, RunError, Send, SessionAction, Stop
from ..errors import (
    InvalidArgument,
    LeaseLost,
    RunInProgress,
    SessionErased,
    SessionNotFound,
    TalkfoldError,
    VersionConflict,
)
from ..log import Entry
from ..model import Json
from ..store.lease import LEASE_SECONDS, Hold, Lease, Started
from ..store.protocol import SessionStore
from .active import running_adapter
from .adapter import AgentAdapter, WebAgent
from .conductor import Conductor, RunEnding
from .context import RunContext
from .events import Observation, Observe, RunCause, RunEnded, RunStarted, told
from .subagents import MAX_DEPTH, SubAgent, delegates
from .tools import Toolbox
from .turn import Turn, reason_of

__all__ = ("Run", "RunSettings", "retry_run", "start_run", "stop_run")

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.05
_TRIES = 20
_NEVER_BEGUN = Entry(Part(Finish("aborted")), meta={"cause": "cancelled"})


def _new_run_id() -> str:
    return secrets.token_hex(4)  # it stands in every row: short, and a session has few runs


def _now() -> int:
    return time.time_ns() // 1_000_000


_LEAST: dict[str, float] = {  # the least that each number of the settings may be
    "lease_seconds": 0.1,
    "grace_seconds": 0,
    "approval_seconds": 0,
    "patience_seconds": 0,
    "max_depth": 0,
}


class RunSettings(Struct, frozen=True, kw_only=True):
    """How a run behaves; all times are in seconds.

    - ``lease_seconds``: how long the session stays the run's without being renewed. A process that is frozen for
      longer loses it. At least 0.1.
    - ``grace_seconds``: how long the agent may take to end by itself after Stop, before it is cancelled.
    - ``approval_seconds``: how long a call waits for a person's yes or no; ``None``: as long as the run lives.
    - ``patience_seconds``: how long to wait for a run that was stopped but has not ended yet, before RunInProgress.
    - ``max_depth``: how deep sub-agents may nest.
    - ``observe``: is called with every ``RunEvent``.
    - ``new_run_id``, ``clock``: where ids of runs and the time (milliseconds since 1970, UTC) come from.

    Raises InvalidArgument for a number that is too small, or no number.
    """

    lease_seconds: float = LEASE_SECONDS
    grace_seconds: float = 5.0
    approval_seconds: float | None = 900.0
    patience_seconds: float = 10.0
    max_depth: int = MAX_DEPTH
    observe: Observe | None = None
    new_run_id: Callable[[], str] = _new_run_id
    clock: Callable[[], int] = _now

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value: object = getattr(self, name)
            if name == "approval_seconds" and value is None:
                continue
            if not isinstance(value, int | float) or not least <= value < inf:
                raise InvalidArgument(name, f"{value} is not {least:g} or more")


_DEFAULTS = RunSettings()


class Run:
    """A run that goes on. Iterate it for the parts of its agent, or ``actions()`` for all that is logged."""

    def __init__(
        self,
        store: SessionStore,
        session_id: str,
        owner: str | None,
        started: Started,
        context: RunContext,
        conductor: Conductor,
    ) -> None:
        self.id: str = context.run_id
        self.session_id: str = session_id
        self.started: Started = started
        self._store = store
        self._owner = owner
        self._outbox = context.outbox
        self._conductor = conductor

    @property
    def ending(self) -> RunEnding | None:
        """How it ended; ``None`` while it goes on."""
        return self._conductor.ending

    def __aiter__(self) -> AsyncIterator[AgentStreamPart]:
        """The parts of the run's own agent, as they are logged, text at once. A reader that falls behind holds the
        agent back; whoever stops reading says so by leaving the ``async with`` block, or by ``wait``."""
        return _Reader(self._outbox.take, _own_part)

    def actions(self) -> AsyncIterator[SessionAction]:
        """Everything that the session gets while the run lives: parts of all depths, phases of calls, what others
        log. Instead of iterating the run, not beside it."""
        return _Reader(self._outbox.take, _itself)

    async def wait(self) -> RunEnding:
        """Wait for the end without reading (any more). Raises what the run raises at its end: LeaseLost when it lost
        the session, or what the store raised when it could write no more."""
        await self._conductor.drained()
        if self._conductor.failure is not None:
            raise self._conductor.failure
        assert self.ending is not None
        return self.ending

    async def stop(self, *, actor: str | None = None, reason: str | None = None) -> None:
        """Log a ``stop``; the run hears it like everybody's. Nothing is logged when it is over."""
        if self.ending is not None:
            return
        await stop_run(self._store, self.session_id, owner=self._owner, actor=actor, reason=reason)


async def stop_run(
    store: SessionStore,
    session_id: str,
    *,
    owner: str | None = None,
    actor: str | None = None,
    reason: str | None = None,
) -> Lease | None:
    """Stop whatever runs in a session, from any process: one logged ``stop``, which its run reads.

    Returns the lease of the run that hears it; ``None`` when none lives. Nothing is logged when there is nothing to
    stop. Raises SessionNotFound, SessionErased.
    """
    meta: dict[str, Json] | None = None if reason is None else {"reason": reason}
    log = partial(store.append, session_id, [Stop()], owner=owner, actor=actor, meta=meta)
    for _ in range(_TRIES):  # a run that ends just now needs no stop; one that writes without a pause still gets it
        session = await store.get(session_id, owner=owner)
        if session.status != "streaming":
            return session.lease
        try:
            await log(expected=session.number)
        except VersionConflict:
            continue
        return session.lease
    await log()
    return (await store.get(session_id, owner=owner)).lease


class _Reader(Generic[_T]):
    """Reads what is handed out. No generator: one that is left half-way would need closing."""

    def __init__(
        self, take: Callable[[], Awaitable[SessionAction | None]], read: Callable[[SessionAction], _T | None]
    ) -> None:
        self._take = take
        self._read = read

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _T:
        while (action := await self._take()) is not None:
            if (wanted := self._read(action)) is not None:
                return wanted
        raise StopAsyncIteration


def _own_part(action: SessionAction) -> AgentStreamPart | None:
    return action.part if type(action) is Part and action.within is None else None


def _itself(action: SessionAction) -> SessionAction:
    return action


class _Launch(Struct, frozen=True):
    """What a run is started with, whatever its first action is."""

    store: SessionStore
    session_id: str
    adapter: AgentAdapter
    tools: Toolbox | None
    agents: Sequence[SubAgent]
    agent: WebAgent | None
    owner: str | None
    actor: str | None
    meta: Mapping[str, Json] | None
    interrupt: bool
    settings: RunSettings


@asynccontextmanager
async def start_run(
    store: SessionStore,
    session_id: str,
    adapter: AgentAdapter,
    *,
    text: str,
    message_id: str | None = None,
    tools: Toolbox | None = None,
    agents: Sequence[SubAgent] = (),
    agent: WebAgent | None = None,
    owner: str | None = None,
    actor: str | None = None,
    meta: Mapping[str, Json] | None = None,
    interrupt: bool = False,
    settings: RunSettings = _DEFAULTS,
) -> AsyncGenerator[Run]:
    """Log ``send`` and run the agent on the conversation. The block ends when the run has ended.

    - ``message_id``: the user message's id; made from the run's when it is not given.
    - ``tools`` and ``agents``: what the agent may call; both are read anew whenever the agent asks.
    - ``actor`` and ``meta`` go into the envelope of the ``send``.
    - ``interrupt``: a run that is in progress is stopped first. Without it, RunInProgress says whose it is.

    When the block is left by an exception, or its task is cancelled, the run ends at once: what its tools did is
    logged, and ``finish`` with the reason ``aborted``. Whatever the adapter does, the log ends well; how it misbehaved
    stands in the ``meta`` of the last action and in ``run.ending``.

    An agent or an async tool that cannot be cancelled (it shields itself, or waits for a thread that ends in its own
    time) cannot keep the session, which is given back after the grace time and a second; but the block, whose task it
    is, ends only when it does. A sync tool is left to itself.

    Raises RunInProgress; SessionNotFound, SessionErased; InvalidArgument. At the end of the block: LeaseLost when the
    process stood still for longer than its lease (then nothing more was logged), and what the store raised when it
    could write no more.
    """
    launch = _Launch(store, session_id, adapter, tools, agents, agent, owner, actor, meta, interrupt, settings)
    if not text:
        raise InvalidArgument("text", "it is empty: nothing is said")
    run_id = settings.new_run_id()
    send = Send(f"user-{run_id}" if message_id is None else message_id, text)
    async with _running(launch, run_id, send) as run:
        yield run


@asynccontextmanager
async def retry_run(
    store: SessionStore,
    session_id: str,
    adapter: AgentAdapter,
    *,
    tools: Toolbox | None = None,
    agents: Sequence[SubAgent] = (),
    agent: WebAgent | None = None,
    owner: str | None = None,
    actor: str | None = None,
    meta: Mapping[str, Json] | None = None,
    interrupt: bool = False,
    settings: RunSettings = _DEFAULTS,
) -> AsyncGenerator[Run]:
    """Log ``retry`` and run the agent on what can be resumed: finished calls stay, the model goes on after them.

    A delegate call that did not finish is dropped with all that its sub-agent did; but a call that the sub-agent had
    finished (``retry_plan(messages).at_risk``), and makes again with the same input, is not run again: it gets the
    outcome that it had, logged with ``{"reused": true}``. All else is as in ``start_run``; raises NothingToRetry
    besides.
    """
    launch = _Launch(store, session_id, adapter, tools, agents, agent, owner, actor, meta, interrupt, settings)
    async with _running(launch, settings.new_run_id(), Retry()) as run:
        yield run


def _refuse(adapter: object, tools: object, agents: object) -> None:
    """Whatever is not what it should be is told before anything is logged. Callers may be untyped."""
    if isinstance(adapter, type):
        raise InvalidArgument("adapter", f"an object is needed, not the class: write {adapter.__name__}()")
    if not isinstance(getattr(adapter, "id", None), str) or not callable(getattr(adapter, "run", None)):
        raise InvalidArgument("adapter", f"an AgentAdapter has id and run(request); a {type(adapter).__name__} has not")
    if tools is not None and not isinstance(tools, Toolbox):
        raise InvalidArgument("tools", f"a Toolbox is needed, not a {type(tools).__name__}: write Toolbox(tool, …)")
    if not isinstance(agents, Sequence) or not all(type(each) is SubAgent for each in cast("Sequence[object]", agents)):
        raise InvalidArgument("agents", "a list of SubAgent is needed")


@asynccontextmanager
async def _running(launch: _Launch, run_id: str, action: Send | Retry) -> AsyncGenerator[Run]:
    _refuse(launch.adapter, launch.tools, launch.agents)
    delegates(launch.agents)  # two of one name are refused before anything is logged
    settings, observe = launch.settings, launch.settings.observe
    context = RunContext(
        run_id,
        clock=settings.clock,
        approval_seconds=settings.approval_seconds,
        max_depth=settings.max_depth,
        observe=observe,
    )
    turn = Turn(context, launch.adapter, toolbox=launch.tools or Toolbox(), agents=launch.agents, agent=launch.agent)
    kind: Literal["send", "retry"] = "send" if isinstance(action, Send) else "retry"
    begun = anyio.current_time()
    observation = told(observe, RunStarted(launch.session_id, run_id, launch.adapter.id, kind, launch.owner))
    conductor: Conductor | None = None
    cause: RunCause = "refused"
    try:
        hold = Hold(run_id, settings.lease_seconds)
        started = await _take_session(launch, action, hold, observation)
        conductor = Conductor(
            launch.store,
            launch.session_id,
            owner=launch.owner,
            hold=hold,
            number=started.number,
            context=context,
            turn=turn,
            grace=settings.grace_seconds,
        )
        with running_adapter(launch.adapter):
            async with _conducted(conductor, started, action, observation):
                yield Run(launch.store, launch.session_id, launch.owner, started, context, conductor)
    except get_cancelled_exc_class():
        cause = "cancelled"
        raise
    finally:
        ending = conductor.ending if conductor else None
        part = ending.part if ending else None
        told(
            observe,
            RunEnded(
                launch.session_id,
                run_id,
                ending.cause if ending else cause,
                None if part is None else reason_of(part),
                anyio.current_time() - begun,
                turn.parts,
                part.error if isinstance(part, RunError) else None,
                part.code if isinstance(part, RunError) else None,
                tuple(context.faults.values()),
            ),
        )


@asynccontextmanager
async def _conducted(
    conductor: Conductor, started: Started, action: Send | Retry, observation: Observation | None
) -> AsyncGenerator[None]:
    """The tasks of a run around the caller's block. What the caller raises comes out as it is, in no group."""
    raised: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(conductor.conduct, started, action, observation)
        try:
            yield
            await conductor.drained()
        except BaseException as error:
            conductor.end_now("raised" if isinstance(error, Exception) else "cancelled")
            with CancelScope(shield=True):
                await conductor.drained()
            if isinstance(error, get_cancelled_exc_class()):
                raise
            raised = error
    if raised is not None:
        raise raised
    if conductor.failure is not None:
        raise conductor.failure


async def _take_session(launch: _Launch, action: Send | Retry, hold: Hold, observation: Observation | None) -> Started:
    store, session_id, owner = launch.store, launch.session_id, launch.owner
    meta = {**(launch.meta or {}), **(observation.meta if observation else {})} or None
    until = anyio.current_time() + launch.settings.patience_seconds
    while True:
        try:
            return await store.start(session_id, action, hold=hold, owner=owner, actor=launch.actor, meta=meta)
        except RunInProgress:
            # One that was stopped ends by itself: it is only tidying up.
            stopped = (await store.get(session_id, owner=owner)).status != "streaming"
            if not (stopped or launch.interrupt) or anyio.current_time() > until:
                raise
            if not stopped:
                await stop_run(store, session_id, owner=owner, actor=launch.actor, reason="a new run interrupts it")
            await anyio.sleep(_LOOK_SECONDS)
        except get_cancelled_exc_class():
            # Whether it was started nobody knows any more: what is asked for after it will.
            with CancelScope(shield=True):
                try:
                    await store.release(session_id, [_NEVER_BEGUN], hold=hold, owner=owner)
                except (LeaseLost, SessionErased, SessionNotFound):
                    pass  # it was not
                except TalkfoldError as error:
                    _log.error("run %s may have left its session open, until its lease is over: %s", hold.run, error)
            raise
