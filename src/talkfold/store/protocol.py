"""What every store does. The contract in ``talkfold.testing`` checks it; docstrings here are its text.

*Owners.* Session ids are unique per owner. Every call takes ``owner``; where it is given, only that owner's
sessions exist: a foreign id answers exactly like an unknown one, for reading, appending and creating alike.
``owner=None`` is the trusted side (an operator, a single-user program): it reaches every session. Where several
have the same id, it means the one without an owner; if there is none such, AmbiguousSession asks for the owner.

*Numbers.* An action's number is given inside the write transaction: 1, 2, 3 … without gaps. ``at`` and
``after`` are such numbers; 0 is the empty session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ..log import Loggable, LoggedAction
from ..model import Json, SessionState, SessionStatus
from ..redaction import Redaction
from .lease import Hold, Lease, Leases
from .retention import Expired, Retention
from .search.answer import Indexing, SearchPage
from .search.texts import SearchKind
from .tokens import Tokens

__all__ = (
    "ABSENT",
    "ANY",
    "EXISTS",
    "Appended",
    "CheckReport",
    "Expected",
    "ExpectedVersion",
    "OpenedSession",
    "Page",
    "Problem",
    "ProblemCode",
    "Session",
    "SessionStore",
    "StateAt",
    "Tombstone",
)


class Expected(Enum):
    """What an append expects of the session when it does not name a number."""

    ANY = "any"  # there or not; created when it is not
    ABSENT = "absent"  # not there; created
    EXISTS = "exists"  # there, at whatever number


ANY = Expected.ANY
ABSENT = Expected.ABSENT
EXISTS = Expected.EXISTS

ExpectedVersion: TypeAlias = int | Expected
"""A number means: the session exists and its newest action has exactly this number (0: it has none)."""


class Session(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A session's row: everything but its log. Times are milliseconds since 1970 (UTC).

    ``number`` is the newest action's number, ``digest`` its hash (of an empty log: the chain's start) and
    ``size`` the bytes of the log's bodies. ``updated`` is the time of the newest append. ``lease`` says which living
    run owns the session; a dead one's is not shown.
    """

    id: str
    status: SessionStatus
    number: int
    digest: bytes
    size: int
    created: int
    updated: int
    owner: str | None = None
    title: str | None = None
    metadata: dict[str, Json] | None = None
    forked_from: str | None = None
    forked_at: int | None = None
    lease: Lease | None = None


class Appended(Struct, frozen=True, rename="camel"):
    """The numbers of the first and last action of an append. ``repeated``: the key had been used before for the
    same actions, this is the first answer again, and nothing was written."""

    first: int
    last: int
    repeated: bool = False


class StateAt(Struct, frozen=True, rename="camel"):
    """A conversation's state, and the number of the last action folded into it."""

    number: int
    state: SessionState


class OpenedSession(Struct, frozen=True, rename="camel"):
    """A session opened for running. ``settled``: this very call logged the ``stop`` that a dead run needed."""

    session: Session
    state: SessionState
    settled: bool


class Page(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Some sessions, newest first, and the cursor of the next page (``None``: this was the last)."""

    sessions: tuple[Session, ...]
    next: str | None = None


class Tombstone(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is left of an erased session: no content, only that there was one."""

    id: str
    at: int
    number: int
    owner: str | None = None
    by: str | None = None


ProblemCode: TypeAlias = Literal[
    "gap", "chain", "head", "undecodable", "snapshot", "status", "size", "key", "metadata", "lease", "since"
]


class Problem(Struct, frozen=True, rename="camel"):
    """Something that ``check`` found. ``number`` is the action where it shows; ``text`` says what and what to do."""

    code: ProblemCode
    number: int
    text: str


class CheckReport(Struct, frozen=True, rename="camel"):
    """Proof of a session: its log walked from the first action. Good when ``problems`` is empty.

    ``digest`` is the hash of the newest action, and with it of all of them: noted elsewhere and given as ``since`` to
    a later check, it proves that nobody wrote that part of the log anew. ``since`` is then the number up to which the
    log is what was noted (0: it was empty); ``None`` when nothing was given, or there is a problem with that.
    """

    session_id: str
    number: int
    digest: bytes
    snapshots: int
    problems: tuple[Problem, ...]
    since: int | None = None


class SessionStore(Leases, Tokens, Protocol):
    """A place for sessions. Open one with ``talkfold.open_store``."""

    @property
    def redaction(self) -> Redaction | None:
        """What is taken out of all that is written here: actions, ``meta``, titles, metadata, questions to a person.

        An action out of which something was taken says in its ``meta``, as ``redacted``, in how many places.
        """
        ...

    async def create(
        self,
        session_id: str | None = None,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        actions: Sequence[Loggable] = (),
    ) -> Session:
        """Make a session; without an id, under a new random one.

        It is empty, or has these actions as its first: session and log in one transaction, so an import that dies
        leaves the whole conversation or nothing. Raises SessionExists, SessionErased, and what ``append`` does.
        """
        ...

    async def get(self, session_id: str, *, owner: str | None = None) -> Session:
        """The session's row. Raises SessionNotFound, SessionErased, AmbiguousSession."""
        ...

    async def list(
        self,
        *,
        owner: str | None = None,
        status: SessionStatus | None = None,
        title: str | None = None,
        metadata: Mapping[str, str | int | float | bool | None] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page:
        """Sessions by creation, newest first: stable while pages are read, whatever is written meanwhile.

        ``title`` finds a text anywhere in the title (ASCII case ignored, no wildcards). ``metadata`` compares
        top-level keys, which must be in the store's allow-list (else MetadataKeyNotAllowed). ``limit`` is 1 to
        1,000. Raises InvalidCursor, InvalidArgument.
        """
        ...

    async def update(
        self,
        session_id: str,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Session:
        """Rename, or set metadata keys (a value ``None`` removes the key). What is ``None`` stays as it is."""
        ...

    async def append(
        self,
        session_id: str,
        actions: Sequence[Loggable],
        *,
        expected: ExpectedVersion = EXISTS,
        key: str | None = None,
        owner: str | None = None,
        run: str | None = None,
        actor: str | None = None,
        meta: Mapping[str, Json] | None = None,
        hold: Hold | None = None,
    ) -> Appended:
        """Log actions: all of them in one transaction, or none.

        When this returns they are durable. ``key`` makes the call safe to repeat after an unknown outcome (a
        crash or a cancellation between commit and answer): the same key with the same actions gives the first
        answer again, before ``expected`` is looked at; with other actions it raises KeyReused. A cancelled call may
        or may not have been written; it is never half-written.

        With ``hold`` a run writes by its lease, under its id (another ``run`` is refused): the lease is renewed on the
        way when more than a third of it is over, and LeaseLost says that it is not this run's. That is looked at after
        the key and before ``expected``, and makes no session. Without ``hold`` anybody writes while a run lives: so a
        ``stop`` reaches it, and ends the wait of a parked call. But a ``send``, ``retry`` or ``reset`` would begin
        another turn beside it: RunInProgress. A dead run, settled or not, loses its lease by them.

        Raises VersionConflict, SessionNotFound, SessionErased, InvalidJson, InvalidAction, NotJsonValue,
        TooDeep, TooLarge, InvalidArgument (no actions), LeaseLost, RunInProgress.
        """
        ...

    async def read(
        self, session_id: str, *, after: int = 0, limit: int = 1000, owner: str | None = None
    ) -> tuple[LoggedAction, ...]:
        """Up to ``limit`` (1 to 10,000) actions after a number, in order. Raises SessionNotFound, CursorAhead."""
        ...

    async def state(self, session_id: str, *, at: int | None = None, owner: str | None = None) -> StateAt:
        """The state at the head, or after the action ``at``. Changes nothing. Raises SessionNotFound, CursorAhead."""
        ...

    async def open_session(self, session_id: str, *, owner: str | None = None, cause: str = "reload") -> OpenedSession:
        """Open for running: a session left streaming, or with open calls, is settled by one logged ``stop`` with
        ``{"cause": cause}`` in its ``meta``; once, however many processes open it together.

        While a living run owns the session, nothing is settled: follow it (the session's ``lease`` says so). The
        ``stop`` for a dead run is logged under that run's id. Its lease is gone then, needed or not: it writes nothing
        more.
        """
        ...

    async def fork(
        self,
        session_id: str,
        *,
        at: int | None = None,
        new_id: str | None = None,
        owner: str | None = None,
        title: str | None = None,
    ) -> Session:
        """A new session of the same owner whose log is a copy of this one's through ``at`` (the head by default).

        It has no run: a copy of a log that ends in the middle is settled when it is opened.
        """
        ...

    async def erase(self, session_id: str, *, owner: str | None = None, by: str | None = None) -> Tombstone:
        """Remove the whole session physically, its lease as well, leaving a tombstone. Its id is never used again.

        When this returns, no byte of it is left. Only where a reader of an older moment, or a full disk, is in the way,
        traces stay in the file until that is over; a warning says so, and whoever opens the store next goes on.
        """
        ...

    async def erase_owner(self, owner: str, *, by: str | None = None) -> tuple[Tombstone, ...]:
        """Erase all of an owner's sessions in one transaction, those that a living run owns as well.

        Gives what is left of them, oldest first; those that were erased before are not among them, so calling again
        gives nothing. Raises InvalidArgument.
        """
        ...

    async def retain(self, rule: Retention, *, by: str | None = None, dry_run: bool = True) -> tuple[Expired, ...]:
        """Erase the sessions that a rule is over for; a dry run only says which. Gives them, oldest first.

        Whole sessions only, and never one that a living run owns. Each is looked at again in the transaction that
        erases it: what was written to meanwhile stays. Many are erased in several transactions, so that others who
        write need not wait for all of them; a call that is cancelled or fails has erased some. Raises InvalidArgument.
        """
        ...

    def subscribe(self, session_id: str, *, after: int = 0, owner: str | None = None) -> AsyncIterator[LoggedAction]:
        """Every action after a number: first what is there, then what comes, from any process; no gap, no repeat.

        Goes on until the iterator is closed or the store is (StoreClosed). One whose wait was cancelled has ended:
        subscribe again after the last number that was seen. Raises CursorAhead, SessionErased.
        """
        ...

    def watch(
        self, session_id: str, told: Callable[[int], object], *, owner: str | None = None
    ) -> AbstractAsyncContextManager[int]:
        """Call ``told``, in the event loop, after every commit that moved the session's end, from any process.

        It gets the newest number (-1, once and last: the session is erased, or the store closed), at least once after
        the last of several commits, never an older one, and must not wait or raise. The context is entered with the
        number at which watching began. Raises SessionNotFound, SessionErased.
        """
        ...

    async def search(
        self,
        query: str,
        *,
        owner: str | None = None,
        session_id: str | None = None,
        kinds: Collection[SearchKind] = (),
        limit: int = 20,
        cursor: str | None = None,
        told: Indexing | None = None,
    ) -> SearchPage:
        """The texts that have all of the query: those of the newest session first, in a session the newest first.

        A query is words, ``"phrases"`` and ``beginnings*``; case and accents do not count, and nothing else has a
        meaning. All of it must be in one text: a message, a stream of text deltas (also where it cuts a word in two; a
        long one is several texts), a call with its input, an outcome, an error, a question. What a reset or a retry
        dropped is still in the log, and found. ``kinds`` narrows; ``limit`` is 1 to 200.

        Every append that returned before the call is searched. What the index lacks is put there first; ``told`` hears
        how far that is. Raises SearchIsOff, SessionNotFound, SessionErased, InvalidCursor, InvalidArgument.
        """
        ...

    async def set_search(self, on: bool, *, told: Indexing | None = None) -> None:
        """Switch search on or off, for this database and everybody who uses it, until somebody switches it again.

        Off removes the index, and ``search`` raises SearchIsOff; on makes the index anew. Where it is so already, it
        does nothing.
        """
        ...

    async def check(self, session_id: str, *, owner: str | None = None, since: bytes | None = None) -> CheckReport:
        """Walk the log from its first action: numbers, chain, every body, every snapshot against the fold.

        ``since`` is a digest that was noted before, of 32 bytes: the report says up to where the log is still what it
        was then, or has the problem ``since``. Raises InvalidArgument, SessionNotFound, SessionErased.
        """
        ...
