"""Who runs a session: one lease a session, held by a run while its process lives.

A lease is a row with an end. The run renews it long before; a process that froze or that lost its database no longer
does. A run *lives* while its lease is not over and its process is there (a store that can tell sees a killed one at
once). After that anybody may settle the session and run it anew; until somebody does, the lease is still the run's
own, and its next write or renewal makes it live again. A run writes *by* its lease: every append of it checks, inside
the write transaction, that the lease is still its own. So a process that wakes up late writes nothing more, whatever
it believes.

A call that waits for somebody outside (a person's approval, a result from a web page) is noted in the lease. Whoever
answers it names the number of the call's own action in the log. A number is never used twice, so an answer can reach
no other call and no other arguments; and the answer ends the wait in its own transaction, so there is only one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ..actions import Retry, Send
from ..log import Loggable
from ..model import Json, SessionState

__all__ = ("LEASE_SECONDS", "Hold", "Lease", "Leases", "Started", "WaitKind", "Waiting")

LEASE_SECONDS = 15.0
"""How long a lease lasts without being renewed, unless the run says otherwise."""

WaitKind: TypeAlias = Literal["approval", "client"]
"""What a parked call waits for: a person's yes or no, or the result from a connected client."""


class Waiting(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A call that is parked until somebody outside the run answers.

    ``number`` is that of its ``tool-call`` action in the log. ``expires`` (milliseconds since 1970, UTC): from then on
    no answer is taken; ``None``: it waits as long as the run lives. ``within`` is the delegate call around it.
    """

    number: int
    call_id: str
    name: str
    kind: WaitKind
    prompt: str | None = None
    expires: int | None = None
    within: str | None = None


class Lease(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Who runs a session. Times are milliseconds since 1970 (UTC).

    ``run`` is the run's id, ``holder`` names its process for people ("host, process 12"). From ``expires`` on it is
    over. ``waiting`` is the call it is parked on.
    """

    run: str
    holder: str
    since: int
    expires: int
    waiting: Waiting | None = None


class Hold(Struct, frozen=True):
    """What a run writes by: its id, and for how many seconds (more than 0, up to 31 days) each renewal is good."""

    run: str
    seconds: float = LEASE_SECONDS


class Started(Struct, frozen=True):
    """A run that begins: the state that its first action made, and that action's number.

    ``settled``: a run that died had left the session open, and this call logged the ``stop`` that it needed.
    """

    number: int
    state: SessionState
    settled: bool


class Leases(Protocol):
    """The part of a store that live runs use."""

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
        """Take the session's lease and log the run's first action under the run's id, in one transaction.

        A session that a dead run left open is settled first, as ``open_session`` does it. Raises RunInProgress when
        a living run holds the lease, be it this very one; NothingToRetry for a ``retry`` without a user message, and
        then nothing is settled either; otherwise what ``append`` raises.
        """
        ...

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
        """Log actions of the run and note the call that it waits for; returns the newest number.

        There may be no actions. After a ``stop`` nothing waits any more, and nothing is noted. The lease is renewed; a
        call that waited before no longer does. Raises LeaseLost, InvalidArgument for the number of no action, and what
        ``append`` raises.
        """
        ...

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
        """Log the answer to the parked call whose action has this number, under the run's id, and end the wait.

        Its ``meta`` says ``{"answers": number}`` besides. A ``toolPhase`` running is a yes; an outcome of that call
        ends it; the run takes nothing else for an answer.

        There is at least one action. Returns the newest number. Of several answers the first is taken. Raises
        CallNotWaiting when that call does not wait (any more), its time is over, or its run is dead; the wait of a
        run that was only slow goes on with its next renewal. Raises what ``append`` raises.

        With ``hold`` it is the run itself that ends the wait, whenever it likes: because nobody answered in time.
        """
        ...

    async def renew(self, session_id: str, *, hold: Hold, owner: str | None = None) -> Lease:
        """Keep the lease for ``hold.seconds`` from now on. Raises LeaseLost; SessionNotFound, SessionErased."""
        ...

    async def release(
        self,
        session_id: str,
        actions: Sequence[Loggable] = (),
        *,
        hold: Hold,
        owner: str | None = None,
        meta: Mapping[str, Json] | None = None,
    ) -> int:
        """Log the run's last actions and give the lease back, in one transaction; returns the newest number.

        There may be no actions. Raises LeaseLost when it is no longer this run's: then nothing is logged. Raises what
        ``append`` raises, and then the lease is kept.
        """
        ...
