"""The tasks of a run, and how it ends: whatever happens, once, with a well-formed log and the lease given back."""

from __future__ import annotations

import logging

import anyio
from anyio import CancelScope, get_cancelled_exc_class
from anyio.abc import TaskGroup
from msgspec import Struct, to_builtins

from ..actions import Finish, Part, Retry, RunError, Send, Stop
from ..errors import LeaseLost, SessionErased, StoreBusy, StoreClosed, TalkfoldError
from ..log import Entry, Loggable, LoggedAction
from ..model import Json
from ..store.lease import Hold, Started
from ..store.protocol import SessionStore
from .context import RunContext
from .events import AgentFault, Observation, RunCause, begin
from .finished import FinishedCalls
from .journal import Journal
from .turn import Ending, Turn

__all__ = ("Conductor", "RunEnding")

_log = logging.getLogger(__name__)

_LAST_SECONDS = 1.0
"""How long an agent that was cancelled may still take. One that catches its cancellation is left to itself after that:
it can write nothing any more."""


class RunEnding(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a run ended. ``part`` is the terminal part that it logged as action ``number``; both are ``None`` when it
    could log none."""

    cause: RunCause
    part: Finish | RunError | None = None
    number: int | None = None
    faults: tuple[AgentFault, ...] = ()


class Conductor:
    """Plays one turn into one session, from the first part to the end."""

    def __init__(
        self,
        store: SessionStore,
        session_id: str,
        *,
        owner: str | None,
        hold: Hold,
        number: int,
        context: RunContext,
        turn: Turn,
        grace: float,
    ) -> None:
        self._store = store
        self._session_id = session_id
        self._owner = owner
        self._hold = hold
        self._context = context
        self._turn = turn
        self._grace = grace
        self._scope = CancelScope()
        self._renewing = CancelScope()
        self._writing = CancelScope(shield=True)  # what is cancelled around the run may still have something to log
        self._cause: RunCause | None = None
        self._played = anyio.Event()
        self._said: Ending | None = None
        self._tasks: TaskGroup | None = None
        self.ending: RunEnding | None = None
        self.over: anyio.Event = anyio.Event()
        context.journal = Journal(
            store,
            session_id,
            owner=owner,
            hold=hold,
            number=number,
            heard=self._heard,
            refused=context.refused,
        )

    @property
    def failure(self) -> Exception | None:
        """Why the run could write no more, if so."""
        return self._context.journal.failure

    async def conduct(self, started: Started, action: Send | Retry, observation: Observation | None) -> None:
        """Play the turn that this action began to its end. Raises only cancellation."""
        _log.info("run %s started in session %s", self._hold.run, self._session_id)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._write)
                tasks.start_soon(self._renew)
                tasks.start_soon(self._play, started, action, observation)
                try:
                    await self._played.wait()
                except get_cancelled_exc_class():
                    self.end_now("cancelled")
                    with anyio.move_on_after(_LAST_SECONDS, shield=True):
                        await self._played.wait()
                    raise
                finally:
                    try:
                        with CancelScope(shield=True):
                            await self._close()
                    finally:
                        self._context.journal.let_go()
                        self._end()  # for all but an agent that does not let itself be cancelled
                        self._writing.cancel()
                        tasks.cancel_scope.cancel()
        finally:
            self._end()

    def _end(self) -> None:
        self._context.outbox.end()
        self.over.set()

    async def drained(self) -> None:
        """Wait for the end; nobody reads what the run hands out any more."""
        self._context.outbox.unwanted()
        await self.over.wait()

    # ---- the tasks -----------------------------------------------------------------------------------------

    async def _play(self, started: Started, action: Send | Retry, observation: Observation | None) -> None:
        try:
            with self._scope, begin(observation):
                if isinstance(action, Retry):
                    before = await self._store.state(self._session_id, at=started.number - 1, owner=self._owner)
                    self._context.finished = FinishedCalls(before.state.messages, self._store.redaction)
                self._said = await self._turn.play(started.state.messages)
        except Exception as error:
            if not isinstance(error, TalkfoldError):
                _log.exception("run %s: this is a fault of talkfold's own", self._hold.run)
            self._context.journal.fail(error)
        finally:
            self._played.set()

    async def _write(self) -> None:
        with self._writing:
            await self._context.journal.work()
        if self.failure is not None:
            self.end_now("lease-lost" if isinstance(self.failure, LeaseLost) else "store")

    async def _renew(self) -> None:
        with self._renewing:
            while True:
                await anyio.sleep(self._hold.seconds / 3)
                try:
                    await self._store.renew(self._session_id, hold=self._hold, owner=self._owner)
                except (LeaseLost, SessionErased, StoreClosed) as error:
                    self._context.journal.fail(error)
                    return
                except TalkfoldError as error:
                    _log.warning("run %s could not renew its lease yet: %s", self._hold.run, error)

    def _heard(self, row: LoggedAction) -> None:
        if self._context.parked.heard(row):
            return
        self._context.outbox.put(row.action)
        if type(row.action) is Stop:
            self._end_soon("stop")

    # ---- the end ---------------------------------------------------------------------------------------------

    def _end_soon(self, cause: RunCause) -> None:
        """Tell the agent to end, and cancel it when it does not."""
        if self._cause is None:
            _log.info("run %s: somebody logged a %s; its agent is told to end", self._hold.run, cause)
            self._cause = cause
            self._context.outbox.hurry()
            self._context.controller.abort(cause)
            self._scope.deadline = min(self._scope.deadline, anyio.current_time() + self._grace)
            self._give_up_after(self._grace + _LAST_SECONDS)

    def end_now(self, cause: RunCause) -> None:
        """Tell the agent to end and cancel it at once."""
        self._cause = self._cause or cause
        self._context.outbox.hurry()
        self._context.controller.abort(cause)
        self._scope.cancel()
        self._give_up_after(_LAST_SECONDS)

    def _give_up_after(self, seconds: float) -> None:
        async def give_up() -> None:
            await anyio.sleep(seconds)
            if not self._played.is_set():
                _log.error("run %s: the agent catches its cancellation; it is left to itself", self._hold.run)
                self._played.set()

        if self._tasks is not None and not self._played.is_set():
            self._tasks.start_soon(give_up)

    async def _close(self) -> None:
        context = self._context
        self._renewing.cancel()  # its word would come after the lease is given back
        cause = self._cause or "agent"
        context.journal.weed()
        end = self._said.part if self._said else Finish("aborted")
        if None in context.broken and not context.stopping:
            end = context.broken[None]
        self._context.controller.abort(cause)  # whatever still runs: nothing more is logged for it
        rows = self._turn.closing(end)
        faults = tuple(context.faults.values())
        try:
            number = await context.journal.release(_with_meta(rows, self._meta(cause, faults)))
        except Exception as error:
            context.journal.fail(error)
            context.journal.let_go()
            lost = isinstance(error, LeaseLost)
            level = logging.WARNING if lost else logging.ERROR
            _log.log(
                level, "run %s ended in session %s and could not say so: %s", self._hold.run, self._session_id, error
            )
            self.ending = RunEnding("lease-lost" if lost else "store", faults=faults)
            if not lost:
                await self._last_try(error)
            return
        for row in rows:
            context.outbox.put(row)
        self.ending = RunEnding(cause, end, number, faults)
        _log.info("run %s ended in session %s: %s", self._hold.run, self._session_id, cause)

    def _meta(self, cause: RunCause, faults: tuple[AgentFault, ...]) -> dict[str, Json]:
        meta: dict[str, Json] = {} if cause == "agent" else {"cause": cause}
        if faults:
            meta["faults"] = to_builtins(list(faults))
        if self._context.dropped:
            meta["dropped"] = self._context.dropped
        return meta

    async def _last_try(self, error: Exception) -> None:
        """The store failed. Where it is only the one write that it refused, the session still gets its end."""
        end = RunError(f"The run could not store what happened: {error}"[:500])
        last = Entry(Part(end), meta={"cause": "store"})
        for rows in ([*self._context.journal.left, last], [last]):
            try:
                number = await self._store.release(self._session_id, rows, hold=self._hold, owner=self._owner)
            except TalkfoldError as again:
                why = again
                if isinstance(again, StoreBusy):
                    break  # each try waits as long as the store was told to
            else:
                assert self.ending is not None
                self.ending = RunEnding("store", end, number, self.ending.faults)
                return
        _log.error("run %s leaves its session open, until its lease is over: %s", self._hold.run, why)


def _with_meta(rows: list[Part], meta: dict[str, Json]) -> list[Loggable]:
    return [*rows[:-1], Entry(rows[-1], meta=meta)] if rows and meta else list(rows)
