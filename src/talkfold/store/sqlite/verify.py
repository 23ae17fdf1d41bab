"""Proof of one session: walk its log from the first action and compare everything that is kept beside it."""

from __future__ import annotations

import sqlite3
import sys
from operator import is_
from typing import TypeAlias

from ...codec import decode_actions, decode_json, encode_state
from ...errors import StoreDamaged, TalkfoldError
from ...fold import Draft
from ...log import chain_row, chain_start
from ...model import AgentMessage, SessionState, SessionStatus
from ..entries import next_status, request_of, turning
from ..noted import Noted
from ..protocol import CheckReport, Problem, ProblemCode
from .lease_rows import waiting_from
from .reading import unreadable
from .snapshots import FOLD_VERSION
from .transaction import find_session

__all__ = ("Walk",)

_PAGE = 5_000
_PART = 1_000
_MOST_PROBLEMS = 100
_KEYS = 1_000

_Row: TypeAlias = "tuple[int, int, bytes | None, bytes | None, bytes | None, bytes, bytes | None]"
"""An action as it is stored: number, time, run, actor, meta, body, hash."""


class Walk:
    """A walk over one log, a page at a time, so that no read transaction stays open for long."""

    def __init__(self, session_id: str, owner: str | None, since: bytes | None = None) -> None:
        self.session_id = session_id
        self.owner = owner
        self.problems: list[Problem] = []
        self._draft = Draft()
        self._bases: dict[int, tuple[AgentMessage, ...]] = {}  # the messages at those that later ones build on
        self._last_use: dict[int, int] = {}  # of a snapshot as a base, by its number
        self._status: SessionStatus = "idle"
        self._turns = 0
        self._size = 0
        self._link = chain_start(session_id)
        self._noted = Noted(since, self._link)
        self._number = 0
        self._proven = 0  # the chain is known to be right up to here
        self._snapshots = 0
        self._keys_after: str | None = None  # the log is read; these idempotency keys are compared with it
        self._whole = True  # every body so far could be read, so the fold is known

    def _problem(self, code: ProblemCode, number: int, text: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(code, number, text))

    def _broken(self, number: int) -> str:
        first = self._proven + 1
        which = f"action {number}" if first >= number else f"one of the actions {first} to {number}"
        return f"{which} is not what was written there"

    def page(self, connection: sqlite3.Connection) -> bool:
        """Check one more page; False when the end was reached. Raises SessionNotFound, SessionErased."""
        key = find_session(connection, self.session_id, self.owner)
        if self._keys_after is not None:
            return self._check_keys(connection, key, self._keys_after)
        rows = connection.execute(
            "SELECT number, time, CAST(run AS BLOB), CAST(actor AS BLOB), meta, body, hash FROM action"
            " WHERE session = ? AND number > ? ORDER BY number LIMIT ?",
            (key, self._number, _PAGE),
        )
        found = 0
        while part := rows.fetchmany(_PART):
            found += len(part)
            self._read(connection, key, part)
        if found == _PAGE:
            return True
        self._compare_end(connection, key)
        if not self._whole or self.problems:
            return False  # what is beside a broken log cannot be compared with it
        self._keys_after = ""
        return True

    def _read(self, connection: sqlite3.Connection, key: int, rows: list[_Row]) -> None:
        """Walk the chain along these rows, then fold them: few enough that both find them in the processor's cache."""
        link, last, size, before = self._link, self._number, self._size, self._number
        since = self._noted.digest
        for number, time, run, actor, meta, body, stored in rows:
            if number != last + 1:
                missing = f"{last + 1} to {number - 1}" if number > last + 2 else f"{number - 1}"
                self._problem("gap", number, f"the actions {missing} are missing before {number}")
            link = chain_row(link, number, time, run, actor, meta, body)
            if link == since:
                self._noted.found(number)
            if stored is not None:
                if link != stored:
                    self._noted.broken(number)
                    self._problem("chain", number, self._broken(number))
                    link = stored
                self._proven = number
            last = number
            size += len(body)
        self._fold(connection, key, [row[5] for row in rows], before)
        self._link, self._number, self._size = link, last, size

    def _fold(self, connection: sqlite3.Connection, key: int, bodies: list[bytes], before: int) -> None:
        """Fold this page, stopping at every snapshot in it."""
        if not self._whole:
            return
        try:
            actions = decode_actions(bodies)
        except TalkfoldError as error:
            number, reason = unreadable(enumerate(bodies, before + 1)) or (before + 1, error)
            self._problem("undecodable", number, f"action {number} cannot be read: {reason}")
            self._whole = False
            return
        for action in turning(actions):
            self._status, self._turns = next_status(self._status, self._turns, action)
        if not before:
            self._last_use = dict(
                connection.execute(
                    "SELECT base, max(number) FROM snapshot WHERE session = ? AND fold = ? GROUP BY base",
                    (key, FOLD_VERSION),
                ).fetchall()
            )
        snapshots = connection.execute(
            "SELECT number, base, keep, size, state FROM snapshot"
            " WHERE session = ? AND number > ? AND number <= ? AND fold = ? ORDER BY number",
            (key, before, before + len(bodies), FOLD_VERSION),
        ).fetchall()
        done, through = 0, self._size
        for number, base, keep, size, stored in snapshots:
            self._draft.feed(actions[done : number - before])
            through += sum(map(len, bodies[done : number - before]))
            done = number - before
            self._compare(number, base, keep, stored)
            if size != through:
                text = f"the snapshot at {number} says that the log has {size:,} bytes there; it has {through:,}"
                self._problem("snapshot", number, text)
        self._draft.feed(actions[done:])

    def _compare(self, number: int, base: int, keep: int, stored: bytes) -> None:
        """A snapshot says which messages it shares with its base, and has the others: both must be so.

        One whose base was dropped is never read, so there is nothing to compare.
        """
        if base and base < number and base not in self._bases:
            return
        self._snapshots += 1
        state, shared = self._draft.frozen(), self._bases.get(base, ())
        same = len(shared) >= keep and all(map(is_, shared[:keep], state.messages[:keep]))
        rest = SessionState(state.messages[keep:], state.status, state.error)
        if not same or stored != encode_state(rest, max_bytes=sys.maxsize, max_depth=sys.maxsize):
            self._problem("snapshot", number, f"the snapshot at {number} is not what the log folds to there")
        if number in self._last_use:
            self._bases[number] = state.messages
        if self._last_use.get(base, 0) <= number:
            self._bases.pop(base, None)

    def _compare_end(self, connection: sqlite3.Connection, key: int) -> None:
        row = connection.execute(
            "SELECT number, hash, CAST(status AS BLOB), turns, size FROM head WHERE session = ?", (key,)
        ).fetchone()
        if row is None:
            raise StoreDamaged(f"nothing says where the log of session {self.session_id!r} ends")
        number, stored, status, turns, size = row
        end = self._number
        if number != end:
            self._problem("head", end, f"the log ends at {end}; {number} was written: its end is missing")
        elif stored != self._link:
            self._problem("head", end, f"the digest of action {end} is not the one noted when it was written")
        (metadata,) = connection.execute("SELECT metadata FROM session WHERE key = ?", (key,)).fetchone()
        try:
            if metadata is not None:
                decode_json(metadata)
        except TalkfoldError as error:
            self._problem("metadata", end, f"the session's metadata cannot be read: {error}")
        if not self._whole or self.problems:
            return
        folded = self._draft.frozen().status
        if not status == folded.encode() == self._status.encode():
            listed = status.decode(errors="replace")
            self._problem("status", end, f"the session is listed as {listed}; its log folds to {folded}")
        elif turns != self._turns:
            self._problem("status", end, f"the session is listed with {turns} user messages; its log has {self._turns}")
        if size != self._size:
            self._problem("size", end, f"the log is listed with {size:,} bytes; it has {self._size:,}")
        for (stray,) in connection.execute(
            "SELECT number FROM snapshot WHERE session = ? AND number NOT BETWEEN 1 AND ?", (key, end)
        ):
            self._problem("snapshot", end, f"there is a snapshot at {stray}, and no such action")
        for name, first, last in connection.execute(
            "SELECT key, first, last FROM append_key WHERE session = ?", (key,)
        ):
            if not 0 < first <= last <= end:
                self._problem("key", end, f"the idempotency key {name!r} points to {first} to {last}")
        self._compare_lease(connection, key, end)

    def _compare_lease(self, connection: sqlite3.Connection, key: int, end: int) -> None:
        """Nothing in the log says who holds a lease; but a call that it waits for must be in the log."""
        row = connection.execute("SELECT waiting FROM lease WHERE session = ?", (key,)).fetchone()
        if row is None or row[0] is None:
            return
        waiting = waiting_from(row[0])
        if waiting is None:
            self._problem("lease", end, "what the session's run waits for cannot be read; stop the run")
        elif not 1 <= waiting.number <= end:
            text = f"the session's run waits for the call of action {waiting.number}, which is not there; stop the run"
            self._problem("lease", end, text)

    def _check_keys(self, connection: sqlite3.Connection, key: int, after: str) -> bool:
        """Compare some idempotency keys with the actions that were appended by them."""
        rows = connection.execute(
            "SELECT key, first, last, request FROM append_key WHERE session = ? AND key > ? ORDER BY key LIMIT ?",
            (key, after, _KEYS),
        ).fetchall()
        for name, first, last, request in rows:
            bodies = connection.execute(
                "SELECT body FROM action WHERE session = ? AND number BETWEEN ? AND ? ORDER BY number",
                (key, first, last),
            )
            if request != request_of(body for (body,) in bodies):
                text = f"the idempotency key {name!r} is not of the actions {first} to {last}, which it points to"
                self._problem("key", first, text)
        if rows:
            self._keys_after = rows[-1][0]
        return len(rows) == _KEYS

    def report(self) -> CheckReport:
        problem = self._noted.problem(self._number)
        problems = (*self.problems, problem) if problem else tuple(self.problems)
        return CheckReport(self.session_id, self._number, self._link, self._snapshots, problems, self._noted.proven_to)
