"""Leases in memory: the part of the store that live runs use. Nothing waits, so nothing comes between two steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ...actions import Retry, Send
from ...errors import InvalidArgument, LeaseLost, NothingToRetry, RunInProgress
from ...log import Loggable
from ...model import Json
from ...resumable import last_kept
from ..arguments import check_first, check_hold, check_number
from ..entries import Batch, prepare
from ..holding import (
    answer_meta,
    ends_wait,
    lease_end,
    needed_stop,
    refuse_answer,
    renewal_due,
    takes_over,
    this_process,
)
from ..lease import Hold, Lease, Started, Waiting
from ..protocol import Appended
from ..redacting import redacted_waiting
from .records import Record, Records

__all__ = ("MemoryLeases", "held")


class MemoryLeases(Records):
    """Implements ``Leases``, whose docstrings are the contract."""

    async def start(
        self,
        session_id: str,
        action: Send | Retry,
        *,
        hold: Hold,
        owner: str | None = None,
        actor: str | None = None,
        meta: Mapping[str, Json] | None = None,
    ) -> Started:
        check_first(action)
        check_hold(hold)
        batch = prepare([action], run=hold.run, actor=actor, meta=meta, redaction=self.redaction)
        record, now = self._find(session_id, owner), self._clock()
        living = record.living(now)
        if living is not None:
            raise RunInProgress(record.id, living)
        if isinstance(action, Retry) and last_kept(record.current().messages) is None:
            raise NothingToRetry(record.id)
        settled = self._settle(record, now, "reload")
        record.lease = Lease(hold.run, this_process(), now, lease_end(now, hold))
        number = record.append(batch, now).last
        return Started(number, record.current(), settled)

    async def park(
        self,
        session_id: str,
        actions: Sequence[Loggable],
        *,
        hold: Hold,
        waiting: Waiting,
        owner: str | None = None,
        meta: Mapping[str, Json] | None = None,
    ) -> int:
        check_hold(hold)
        batch = prepare(actions, run=hold.run, meta=meta, redaction=self.redaction) if actions else None
        record, now = self._find(session_id, owner), self._clock()
        lease = held(record, hold)
        end = len(record.log) + (len(batch.rows) if batch else 0)
        if not 1 <= waiting.number <= end:
            raise InvalidArgument("waiting", f"there is no action {waiting.number}; the newest one is {end}")
        if batch is not None:
            record.append(batch, now)
        waits = redacted_waiting(self.redaction, waiting) if record.current().status == "streaming" else None
        record.lease = replace(lease, waiting=waits, expires=lease_end(now, hold))
        return len(record.log)

    async def answer(
        self,
        session_id: str,
        actions: Sequence[Loggable],
        *,
        number: int,
        owner: str | None = None,
        actor: str | None = None,
        meta: Mapping[str, Json] | None = None,
        hold: Hold | None = None,
    ) -> int:
        check_number("number", number)
        if hold is not None:
            check_hold(hold)
        batch = prepare(actions, actor=actor, meta=answer_meta(meta, number), redaction=self.redaction)
        record, now = self._find(session_id, owner), self._clock()
        lease = record.living(now) if hold is None else held(record, hold)
        refuse_answer(record.id, number, lease, now if hold is None else None)
        assert record.lease is not None
        record.lease = replace(record.lease, waiting=None)
        return record.append(batch.under(record.lease.run), now).last

    async def renew(self, session_id: str, *, hold: Hold, owner: str | None = None) -> Lease:
        check_hold(hold)
        record = self._find(session_id, owner)
        record.lease = replace(held(record, hold), expires=lease_end(self._clock(), hold))
        return record.lease

    async def release(
        self,
        session_id: str,
        actions: Sequence[Loggable] = (),
        *,
        hold: Hold,
        owner: str | None = None,
        meta: Mapping[str, Json] | None = None,
    ) -> int:
        check_hold(hold)
        batch = prepare(actions, run=hold.run, meta=meta, redaction=self.redaction) if actions else None
        record = self._find(session_id, owner)
        held(record, hold)
        record.lease = None
        if batch is not None:
            record.append(batch, self._clock())
        return len(record.log)

    def _log(self, record: Record, batch: Batch, hold: Hold | None = None) -> Appended:
        """Log at the end; with ``hold``, by the lease that ``held`` found. Ends a wait and renews where it must."""
        now, lease = self._clock(), record.lease
        if lease is not None and hold is None and takes_over(batch):
            if record.living(now) is not None:
                raise RunInProgress(record.id, lease)
            record.lease = None
        elif lease is not None:
            if lease.waiting is not None and ends_wait(batch):
                lease = replace(lease, waiting=None)
            if hold is not None and renewal_due(now, lease.expires, hold):
                lease = replace(lease, expires=lease_end(now, hold))
            record.lease = lease
        return record.append(batch, now)

    def _settle(self, record: Record, now: int, cause: str) -> bool:
        """Take a dead run's lease away and log the ``stop`` that it left out. Whether there was one to log."""
        run = None if record.lease is None else record.lease.run
        record.lease = None
        stop = needed_stop(record.current(), run=run, cause=cause)
        if stop is not None:
            record.append(stop, now)
        return stop is not None


def held(record: Record, hold: Hold) -> Lease:
    """The lease that this run holds. One that is over is still its own while nobody took it."""
    if record.lease is None or record.lease.run != hold.run:
        raise LeaseLost(record.id, hold.run)
    return record.lease
