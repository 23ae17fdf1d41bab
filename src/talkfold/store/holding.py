"""What a lease means, the same for every store: when it ends, when it is renewed, what ends a wait.

Pure functions; each store keeps the lease in its own way and asks here.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from ..actions import Reset, Retry, Send, SessionAction, Stop
from ..errors import CallNotWaiting
from ..log import SETTLER
from ..model import Json, SessionState
from ..reducer import session_reducer
from .entries import Batch, prepare
from .lease import Hold, Lease

__all__ = (
    "TAKES_OVER",
    "answer_meta",
    "ends_wait",
    "lease_end",
    "needed_stop",
    "refuse_answer",
    "renewal_due",
    "takes_over",
    "this_process",
)

TAKES_OVER: frozenset[type[SessionAction]] = frozenset({Send, Retry, Reset})
"""The actions that begin another turn, or leave nothing of this one. While a run lives nobody logs them beside it; a
dead run loses its lease by them, so that it does not write on into another's turn when it wakes up."""


def this_process() -> str:
    """Who holds the leases of this process, for people: host and process id."""
    return f"{socket.gethostname()}, process {os.getpid()}"


def lease_end(now: int, hold: Hold) -> int:
    """When a lease ends that is renewed now, in milliseconds since 1970."""
    return now + max(1, round(hold.seconds * 1000))


def renewal_due(now: int, expires: int, hold: Hold) -> bool:
    """Whether a third of the lease is over: from then on a write renews it on the way."""
    return 3 * (expires - now) < 2000 * hold.seconds


def ends_wait(batch: Batch) -> bool:
    """Whether a parked call no longer waits after these actions."""
    return any(type(action) is Stop or type(action) in TAKES_OVER for action in batch.turning)


def takes_over(batch: Batch) -> bool:
    """Whether these actions take the session from the run that has its lease."""
    return any(type(action) in TAKES_OVER for action in batch.turning)


def refuse_answer(session_id: str, number: int, living: Lease | None, now: int | None) -> None:
    """Raise CallNotWaiting unless the call of this action waits. ``living`` is the lease of a living run, or of the
    one that answers its own call; ``now`` is ``None`` for that one, whom no time binds."""
    waiting = None if living is None else living.waiting
    named = waiting is not None and waiting.number == number
    call = f"call {waiting.call_id!r}" if waiting is not None and named else f"the call of action {number}"
    if living is None:
        raise CallNotWaiting(session_id, call, "no living run owns the session")
    if waiting is None:
        raise CallNotWaiting(session_id, call, f"run {living.run!r} waits for nobody")
    if not named:
        reason = f"run {living.run!r} waits for call {waiting.call_id!r} of action {waiting.number}"
        raise CallNotWaiting(session_id, call, reason)
    if now is not None and waiting.expires is not None and now >= waiting.expires:
        raise CallNotWaiting(session_id, call, "its time is over")


def answer_meta(meta: Mapping[str, Json] | None, number: int) -> dict[str, Json]:
    """The envelope of an answer: it says which action's call it answers, so that the run knows it as one."""
    return {**(meta or {}), "answers": number}


def needed_stop(state: SessionState, *, run: str | None, cause: str) -> Batch | None:
    """The one ``stop`` that a dead run's session needs, under that run's id: it was left streaming or with open
    calls. ``None``: it was left in order."""
    stopped = session_reducer(state, Stop())
    if state.status != "streaming" and stopped.messages is state.messages:
        return None
    meta: dict[str, Json] = {"cause": cause}
    return prepare([Stop()], run=run, actor=SETTLER, meta=meta)
