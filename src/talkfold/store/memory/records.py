"""The sessions in memory: their logs and states, who has which, and who is told when one grows."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from ...codec import decode_action, decode_json
from ...errors import AmbiguousSession, SessionErased, SessionExists, SessionNotFound, StoreClosed
from ...fold import fold
from ...log import LoggedAction, chain_link, chain_start
from ...model import EMPTY_SESSION, Json, SessionState
from ...redaction import Redaction
from ..arguments import check_name
from ..entries import Batch
from ..lease import Lease
from ..protocol import Appended, Session, Tombstone
from .texts import Found

__all__ = ("Record", "Records")

_LOG = logging.getLogger("talkfold.store")


class Record:
    """One session: its log, the state folded so far, and its lease, living or dead."""

    def __init__(self, serial: int, session_id: str, owner: str | None, now: int) -> None:
        self.serial = serial
        self.id = session_id
        self.owner = owner
        self.title: str | None = None
        self.metadata: bytes | None = None
        self.created = now
        self.updated: int = now
        self.forked_from: str | None = None
        self.forked_at: int | None = None
        self.log: list[LoggedAction] = []
        self.digest: bytes = chain_start(session_id)
        self.keys: dict[str, tuple[Appended, bytes]] = {}
        self.size: int = 0
        self.folded: int = 0
        self.state: SessionState = EMPTY_SESSION
        self.lease: Lease | None = None
        self.found: Found = Found()
        self.grown: anyio.Event = anyio.Event()
        self.watchers: dict[object, Callable[[int], object]] = {}
        self.tombstone: Tombstone | None = None

    def current(self) -> SessionState:
        """The state at the end of the log."""
        if self.folded < len(self.log):
            self.state = fold([row.action for row in self.log[self.folded :]], self.state)
            self.folded = len(self.log)
        return self.state

    def held(self) -> dict[str, Json]:
        """The metadata as an object."""
        return {} if self.metadata is None else decode_json(self.metadata)

    def living(self, now: int) -> Lease | None:
        """The lease, if its run lives: the process does, so only the lease's end counts."""
        return self.lease if self.lease is not None and now < self.lease.expires else None

    def row(self, now: int) -> Session:
        """The session's row as readers get it."""
        return Session(
            self.id,
            self.current().status,
            len(self.log),
            self.digest,
            self.size,
            self.created,
            self.updated,
            self.owner,
            self.title,
            None if self.metadata is None else decode_json(self.metadata),
            self.forked_from,
            self.forked_at,
            self.living(now),
        )

    def append(self, batch: Batch, now: int) -> Appended:
        """Put a batch at the end of the log and tell everybody who follows."""
        first = len(self.log) + 1
        link = self.digest
        last = len(self.log) + len(batch.rows)
        for number, (time, run, actor, meta, body) in enumerate(batch.rows, start=first):
            time = now if time is None else time
            link = chain_link(link, number, time, run, actor, meta, body)
            said = None if meta is None else decode_json(meta)
            shown = link if number == last else None
            self.log.append(LoggedAction(number, time, decode_action(body), body, shown, run, actor, said))
        self.digest = link
        self.size += batch.size
        self.updated = now
        self.grown.set()
        self.grown = anyio.Event()
        self.tell(last)
        return Appended(first, last)

    def tell(self, number: int) -> None:
        """Call the watchers; after -1 there is nothing more to tell."""
        for told in tuple(self.watchers.values()):
            try:
                told(number)
            except Exception:
                _LOG.exception("a watcher of session %r failed; the others are told all the same", self.id)
        if number < 0:
            self.watchers.clear()


class Records:
    """All the sessions, by id and owner and in the order of their creation."""

    def __init__(self, clock: Callable[[], int], redaction: Redaction | None) -> None:
        self.redaction: Redaction | None = redaction
        self._records: dict[str, dict[str | None, Record]] = {}
        self._in_order: list[Record] = []
        self._clock = clock
        self._closed = False

    async def close(self) -> None:
        """Wake everybody who follows; they find the store closed."""
        self._closed = True
        for record in self._in_order:
            record.grown.set()
            record.tell(-1)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreClosed

    def _find(self, session_id: str, owner: str | None) -> Record:
        self._refuse_closed()
        check_name("session_id", session_id)
        check_name("owner", owner)
        found = self._records.get(session_id, {})
        matching = [r for r in found.values() if owner is None or r.owner == owner]
        living = [r for r in matching if r.tombstone is None]
        if not matching:
            raise SessionNotFound(session_id)
        living = [r for r in living if r.owner is None] or living  # nobody's session comes first
        if len(living) > 1:
            raise AmbiguousSession(session_id, [r.owner for r in living])
        if not living:
            tombstone = matching[0].tombstone
            assert tombstone is not None
            raise SessionErased(session_id, tombstone.at, tombstone.by)
        return living[0]

    def _add(self, session_id: str, owner: str | None) -> Record:
        self._refuse_closed()
        taken = self._records.setdefault(session_id, {}).get(owner)
        if taken is not None:
            if taken.tombstone is not None:
                raise SessionErased(session_id, taken.tombstone.at, taken.tombstone.by)
            raise SessionExists(session_id)
        record = Record(len(self._in_order), session_id, owner, self._clock())
        self._records[session_id][owner] = record
        self._in_order.append(record)
        return record
