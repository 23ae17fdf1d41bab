"""What runs do to the database by their leases: one function each, run inside a write transaction.

As with the other operations, everything is checked before anything is written.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...actions import Retry, Send, Stop
from ...errors import InvalidArgument, LeaseLost, NothingToRetry, RunInProgress
from ...model import SessionState
from ...reducer import session_reducer
from ..entries import Batch
from ..holding import ends_wait, lease_end, needed_stop, refuse_answer, renewal_due, takes_over, this_process
from ..lease import Hold, Lease, Started, Waiting
from ..protocol import Session
from .lease_rows import NotedLease, drop_lease, put_lease
from .reading import read_state, session_of
from .snapshots import WarmStates
from .transaction import Head, Transaction

__all__ = ("answer", "held", "park", "release", "renew", "settle", "start", "take_over", "touch")


def start(
    tx: Transaction,
    session_id: str,
    owner: str | None,
    action: Send | Retry,
    batch: Batch,
    hold: Hold,
    warm: WarmStates,
) -> Started:
    """Give the session to a new run and log what begins it. A dead run before it is settled first.

    Raises RunInProgress, NothingToRetry.
    """
    head = tx.head(session_id, owner)
    living = tx.moment.living(head.lease)
    if living is not None:
        raise RunInProgress(session_id, living)
    if isinstance(action, Retry) and not head.turns:
        raise NothingToRetry(session_id)
    tx.flush()
    state, settled = _settled(tx, head, "reload", warm)
    lease = Lease(hold.run, this_process(), tx.moment.now, lease_end(tx.moment.now, hold))
    _put(tx, head, _ours(tx, lease))
    tx.log(head, batch)
    return Started(head.number, session_reducer(state, action), settled)


def park(tx: Transaction, session_id: str, owner: str | None, batch: Batch | None, hold: Hold, waiting: Waiting) -> int:
    """Log a call that waits, if it is not logged yet, and note in the lease that it waits; the newest number.

    Nothing waits once the session does not stream any more. Raises LeaseLost, InvalidArgument.
    """
    head = tx.head(session_id, owner)
    lease = held(session_id, head, hold)
    end = head.number + (len(batch.rows) if batch else 0)
    if not 1 <= waiting.number <= end:
        raise InvalidArgument("waiting", f"there is no action {waiting.number}; the newest one is {end}")
    if batch is not None:
        tx.log(head, batch)
    waits = waiting if head.status == "streaming" else None
    _put(tx, head, _ours(tx, replace(lease, waiting=waits, expires=lease_end(tx.moment.now, hold))))
    return head.number


def answer(tx: Transaction, session_id: str, owner: str | None, batch: Batch, number: int, hold: Hold | None) -> int:
    """Log the answer to the call that waits, as an action of its run, and end the wait; the newest number.

    ``hold`` is given when the run itself answers. Raises CallNotWaiting, LeaseLost.
    """
    head = tx.head(session_id, owner)
    noted = head.lease
    if hold is None:
        refuse_answer(session_id, number, tx.moment.living(noted), tx.moment.now)
    else:
        refuse_answer(session_id, number, held(session_id, head, hold), None)
    assert noted is not None
    tx.log(head, batch.under(noted.lease.run))
    _put(tx, head, noted._replace(lease=replace(noted.lease, waiting=None)))
    return head.number


def renew(tx: Transaction, session_id: str, owner: str | None, hold: Hold) -> Lease:
    """The run lives on: its lease ends later. Raises LeaseLost."""
    head = tx.head(session_id, owner)
    lease = replace(held(session_id, head, hold), expires=lease_end(tx.moment.now, hold))
    _put(tx, head, _ours(tx, lease))
    return lease


def release(tx: Transaction, session_id: str, owner: str | None, batch: Batch | None, hold: Hold) -> int:
    """Log a run's last actions, if there are any, and give its lease back; the newest number. Raises LeaseLost."""
    head = tx.head(session_id, owner)
    held(session_id, head, hold)
    if batch is not None:
        tx.log(head, batch)
    _drop(tx, head)
    return head.number


def settle(
    tx: Transaction, session_id: str, owner: str | None, cause: str, warm: WarmStates
) -> tuple[Session, SessionState, bool]:
    """Unless a living run owns the session: take a dead one's lease, and log the one ``stop`` that is needed."""
    head = tx.head(session_id, owner)
    tx.flush()
    if tx.moment.living(head.lease) is not None:
        return session_of(tx.connection, head.key, tx.moment), _state(tx, head, warm), False
    state, settled = _settled(tx, head, cause, warm)
    tx.flush()
    return session_of(tx.connection, head.key, tx.moment), state, settled


def held(session_id: str, head: Head, hold: Hold) -> Lease:
    """The lease that this run holds. One that is over is still its own while nobody took it."""
    if head.lease is None or head.lease.lease.run != hold.run:
        raise LeaseLost(session_id, hold.run)
    return head.lease.lease


def take_over(tx: Transaction, session_id: str, head: Head, batch: Batch) -> None:
    """Before an append by anybody but the run: one that begins another turn is refused while the run lives, and takes
    a dead one's lease."""
    if head.lease is None or not takes_over(batch):
        return
    living = tx.moment.living(head.lease)
    if living is not None:
        raise RunInProgress(session_id, living)
    _drop(tx, head)


def touch(tx: Transaction, head: Head, batch: Batch, hold: Hold | None) -> None:
    """After an append to a session with a lease: end its wait if need be, and renew it when it is time."""
    noted = head.lease
    if noted is None:
        return
    lease, alive = noted
    if lease.waiting is not None and ends_wait(batch):
        lease = replace(lease, waiting=None)
    if hold is not None:
        alive = tx.moment.alive.offset
        if renewal_due(tx.moment.now, lease.expires, hold):
            lease = replace(lease, expires=lease_end(tx.moment.now, hold))
    if lease is not noted.lease or alive != noted.alive:
        _put(tx, head, NotedLease(lease, alive))


def _state(tx: Transaction, head: Head, warm: WarmStates) -> SessionState:
    """The state at the session's end."""
    return read_state(tx.connection, head.key, head.number, warm)


def _settled(tx: Transaction, head: Head, cause: str, warm: WarmStates) -> tuple[SessionState, bool]:
    """The state without a living run, and whether a ``stop`` was logged for it under the dead run's id."""
    state = _state(tx, head, warm)
    run = None if head.lease is None else head.lease.lease.run
    if head.lease is not None:
        _drop(tx, head)
    stop = needed_stop(state, run=run, cause=cause)
    if stop is None:
        return state, False
    tx.log(head, stop)
    return session_reducer(state, Stop()), True


def _put(tx: Transaction, head: Head, noted: NotedLease) -> None:
    """Write a lease, in memory and in its row."""
    head.lease = noted
    put_lease(tx.connection, head.key, noted)


def _ours(tx: Transaction, lease: Lease) -> NotedLease:
    """A lease whose run writes from this process: it is this one that keeps it alive from now on."""
    return NotedLease(lease, tx.moment.alive.offset)


def _drop(tx: Transaction, head: Head) -> None:
    """Take the lease away."""
    head.lease = None
    drop_lease(tx.connection, head.key)
