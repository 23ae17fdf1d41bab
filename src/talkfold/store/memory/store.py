"""A store in memory: for tests and for programs that keep nothing. Passes the same contract as the others.

Every call runs without waiting, so calls never interleave; waiting is only for followers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice

from ...codec import encode_json
from ...errors import (
    CursorAhead,
    InvalidCursor,
    KeyReused,
    LeaseLost,
    SessionNotFound,
    VersionConflict,
)
from ...fold import fold
from ...log import Loggable, LoggedAction, chain_link, chain_start
from ...model import EMPTY_SESSION, Json, SessionStatus
from ...redaction import Redaction
from ..arguments import (
    MOST_ACTIONS,
    MOST_SESSIONS,
    check_digest,
    check_expected,
    check_filters,
    check_limit,
    check_name,
    check_number,
    check_owner,
    check_retention,
    check_title,
    run_of,
)
from ..entries import Batch, encode_metadata, prepare
from ..lease import Hold
from ..noted import Noted
from ..protocol import (
    ABSENT,
    ANY,
    EXISTS,
    Appended,
    CheckReport,
    ExpectedVersion,
    OpenedSession,
    Page,
    Problem,
    Session,
    StateAt,
    Tombstone,
)
from ..redacting import redacted_metadata, redacted_title
from ..retention import Expired, Retention, latest
from .leases import held
from .records import Record
from .texts import Found
from .tokens import MemoryTokens

__all__ = ("MemoryStore",)

_MOST_MISSING = 1_000


class MemoryStore(MemoryTokens):
    """Sessions in this process only. Implements ``SessionStore``, whose docstrings are the contract."""

    def __init__(
        self,
        *,
        metadata_keys: Collection[str],
        redaction: Redaction | None,
        clock: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(clock, redaction)
        self._metadata_keys = frozenset(metadata_keys)
        self._new_id = new_id

    async def create(
        self,
        session_id: str | None = None,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        actions: Sequence[Loggable] = (),
    ) -> Session:
        check_name("session_id", session_id)
        check_name("owner", owner)
        check_title(title)
        encode_metadata("metadata", metadata)
        encoded = encode_metadata("metadata", redacted_metadata(self.redaction, metadata))
        title = redacted_title(self.redaction, title)
        batch = prepare(actions, redaction=self.redaction) if actions else None
        record = self._add(self._new_id() if session_id is None else session_id, owner)
        record.title, record.metadata = title, encoded
        if batch is not None:
            self._log(record, batch)
        return record.row(self._clock())

    async def get(self, session_id: str, *, owner: str | None = None) -> Session:
        return self._find(session_id, owner).row(self._clock())

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
        self._refuse_closed()
        check_name("owner", owner)
        check_filters(status, metadata, self._metadata_keys)
        check_title(title)
        check_limit(limit, MOST_SESSIONS)
        before = len(self._in_order) if cursor is None else _serial_of(cursor)

        def wanted(record: Record) -> bool:
            if record.tombstone is not None or record.serial >= before:
                return False
            if owner is not None and record.owner != owner:
                return False
            if status is not None and record.current().status != status:
                return False
            if title is not None and (record.title is None or _lowered(title) not in _lowered(record.title)):
                return False
            held = record.held()
            return all(
                key not in held if value is None else key in held and encode_json(held[key]) == encode_json(value)
                for key, value in (metadata or {}).items()
            )

        page = list(islice(filter(wanted, reversed(self._in_order)), limit + 1))
        now = self._clock()
        more = f"m{page[limit - 1].serial:x}" if len(page) > limit else None
        return Page(tuple(record.row(now) for record in page[:limit]), more)

    async def update(
        self,
        session_id: str,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Session:
        check_title(title)
        encode_metadata("metadata", metadata)
        metadata, title = redacted_metadata(self.redaction, metadata), redacted_title(self.redaction, title)
        record = self._find(session_id, owner)
        if metadata is not None:
            kept = {key: value for key, value in {**record.held(), **metadata}.items() if value is not None}
            record.metadata = encode_metadata("metadata", kept) if kept else None
        if title is not None:
            record.title = title
        return record.row(self._clock())

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
        check_name("key", key)
        check_expected(expected)
        batch = prepare(actions, run=run_of(hold, run), actor=actor, meta=meta, redaction=self.redaction)
        try:
            record = self._find(session_id, owner)
        except SessionNotFound:
            if expected is not ANY and expected is not ABSENT:
                raise
            if hold is not None:
                raise LeaseLost(session_id, hold.run) from None
            record = self._add(session_id, owner)
        else:
            if key is not None and key in record.keys:
                answer, request = record.keys[key]
                if request != batch.request():
                    raise KeyReused(session_id, key)
                return Appended(answer.first, answer.last, repeated=True)
            if hold is not None:
                held(record, hold)
            actual = len(record.log)
            if expected is ABSENT:
                raise VersionConflict(session_id, "absent", actual)
            if isinstance(expected, int) and expected != actual:
                raise VersionConflict(session_id, expected, actual, record.log[expected:][:_MOST_MISSING])
        appended = self._log(record, batch, hold)
        if key is not None:
            record.keys[key] = (appended, batch.request())
        return appended

    async def read(
        self, session_id: str, *, after: int = 0, limit: int = 1000, owner: str | None = None
    ) -> tuple[LoggedAction, ...]:
        check_number("after", after)
        check_limit(limit, MOST_ACTIONS)
        record = self._find(session_id, owner)
        if after > len(record.log):
            raise CursorAhead(session_id, after, len(record.log))
        return tuple(record.log[after : after + limit])

    async def state(self, session_id: str, *, at: int | None = None, owner: str | None = None) -> StateAt:
        if at is not None:
            check_number("at", at)
        record = self._find(session_id, owner)
        if at is None or at == len(record.log):
            return StateAt(len(record.log), record.current())
        if at > len(record.log):
            raise CursorAhead(session_id, at, len(record.log))
        return StateAt(at, fold([row.action for row in record.log[:at]]))

    async def open_session(self, session_id: str, *, owner: str | None = None, cause: str = "reload") -> OpenedSession:
        record = self._find(session_id, owner)
        now = self._clock()
        settled = record.living(now) is None and self._settle(record, now, cause)
        return OpenedSession(record.row(now), record.current(), settled)

    async def fork(
        self,
        session_id: str,
        *,
        at: int | None = None,
        new_id: str | None = None,
        owner: str | None = None,
        title: str | None = None,
    ) -> Session:
        check_name("new_id", new_id)
        check_title(title)
        if at is not None:
            check_number("at", at)
        source = self._find(session_id, owner)
        at = len(source.log) if at is None else at
        if at > len(source.log):
            raise CursorAhead(session_id, at, len(source.log))
        record = self._add(self._new_id() if new_id is None else new_id, source.owner)
        record.title = source.title if title is None else redacted_title(self.redaction, title)
        record.metadata = source.metadata
        record.forked_from, record.forked_at = source.id, at
        rows = [(r.time, r.run, r.actor, encode_metadata("meta", r.meta), r.body) for r in source.log[:at]]
        self._log(record, Batch(rows, (), sum(len(row[-1]) for row in rows)))
        return record.row(self._clock())

    async def erase(self, session_id: str, *, owner: str | None = None, by: str | None = None) -> Tombstone:
        check_name("by", by)
        record = self._find(session_id, owner)
        record.tombstone = Tombstone(record.id, self._clock(), len(record.log), record.owner, by)
        record.log.clear()
        record.keys.clear()
        record.lease = None
        record.title = record.metadata = record.forked_from = record.forked_at = None
        record.state, record.folded = EMPTY_SESSION, 0
        record.found = Found()
        record.grown.set()
        record.tell(-1)
        return record.tombstone

    async def erase_owner(self, owner: str, *, by: str | None = None) -> tuple[Tombstone, ...]:
        check_owner(owner)
        check_name("by", by)
        self._refuse_closed()
        theirs = [record for record in self._in_order if record.owner == owner and record.tombstone is None]
        return tuple([await self.erase(record.id, owner=owner, by=by) for record in theirs])

    async def retain(self, rule: Retention, *, by: str | None = None, dry_run: bool = True) -> tuple[Expired, ...]:
        check_retention(rule)
        check_name("by", by)
        self._refuse_closed()
        now = self._clock()
        due = [record for record in self._in_order if record.tombstone is None and _is_due(record.row(now), rule, now)]
        picked = tuple([_expired(record.row(now)) for record in due])
        if not dry_run:
            for record in due:
                await self.erase(record.id, owner=record.owner, by=by)
        return picked

    async def subscribe(
        self, session_id: str, *, after: int = 0, owner: str | None = None
    ) -> AsyncGenerator[LoggedAction]:
        check_number("after", after)
        record = self._find(session_id, owner)
        while True:
            grown = record.grown
            page = await self.read(session_id, after=after, owner=owner)
            if not page:
                await grown.wait()
            for logged in page:
                yield logged
                after = logged.number

    @asynccontextmanager
    async def watch(
        self, session_id: str, told: Callable[[int], object], *, owner: str | None = None
    ) -> AsyncGenerator[int]:
        record, name = self._find(session_id, owner), object()
        record.watchers[name] = told
        try:
            yield len(record.log)
        finally:
            record.watchers.pop(name, None)

    async def check(self, session_id: str, *, owner: str | None = None, since: bytes | None = None) -> CheckReport:
        check_digest("since", since)
        record = self._find(session_id, owner)
        problems: list[Problem] = []
        link = chain_start(record.id)
        noted = Noted(since, link)
        for number, row in enumerate(record.log, start=1):
            link = chain_link(link, number, row.time, row.run, row.actor, encode_metadata("meta", row.meta), row.body)
            if link == since:
                noted.found(number)
            if row.hash is not None and link != row.hash:
                noted.broken(number)
                problems.append(Problem("chain", number, f"action {number} is not what was written there"))
                link = row.hash
        missed = noted.problem(len(record.log))
        if missed is not None:
            problems.append(missed)
        return CheckReport(record.id, len(record.log), record.digest, 0, tuple(problems), noted.proven_to)


def _is_due(session: Session, rule: Retention, now: int) -> bool:
    return (
        session.updated <= latest(rule, now)
        and session.lease is None
        and rule.owner in (None, session.owner)
        and (not rule.statuses or session.status in rule.statuses)
    )


def _expired(session: Session) -> Expired:
    return Expired(session.id, session.status, session.number, session.size, session.updated, session.owner)


def _lowered(text: str) -> str:
    """Lower case of ASCII letters only, as SQLite's ``lower`` does it."""
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def _serial_of(cursor: str) -> int:
    if re.fullmatch(r"m(0|[1-9a-f][0-9a-f]{0,14})", cursor):
        return int(cursor[1:], 16)
    raise InvalidCursor(cursor)
