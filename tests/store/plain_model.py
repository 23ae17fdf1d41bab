"""What a store is, as plainly as it can be said: sessions in the order of their creation, each a list of bodies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from talkfold.actions import Reset, Retry, Send, SessionAction, Stop
from talkfold.codec import decode_action, encode_action
from talkfold.errors import (
    AmbiguousSession,
    CallNotWaiting,
    InvalidArgument,
    KeyReused,
    LeaseLost,
    NothingToRetry,
    RunInProgress,
    SessionErased,
    SessionExists,
    SessionNotFound,
    VersionConflict,
)
from talkfold.model import EMPTY_SESSION, SessionState
from talkfold.reducer import session_reducer
from talkfold.store import ABSENT, ANY, Appended, ExpectedVersion, Hold, Lease
from talkfold.testing.store_contract.samples import has_open_calls


@dataclass
class Run:
    """Who runs a session: until when, parked on the call of which action, and whether its process is there."""

    id: str
    since: int
    expires: int
    waiting: int | None = None
    there: bool = True


@dataclass
class Modelled:
    """One session, as plainly as it can be said."""

    id: str
    owner: str | None
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=list)
    keys: dict[str, tuple[list[bytes], Appended]] = field(default_factory=dict)
    erased: bool = False
    run: Run | None = None

    def living(self, now: int) -> Run | None:
        return self.run if self.run is not None and self.run.there and now < self.run.expires else None

    def held(self, run: str) -> Run:
        if self.run is None or self.run.id != run:
            raise LeaseLost(self.id, run)
        return self.run

    def settle(self, now: int) -> bool:
        """Whether a stop was due: unless a run lives, the session is left neither streaming nor with open calls."""
        if self.living(now) is not None:
            return False
        self.run = None
        state = self.state()
        due = state.status == "streaming" or has_open_calls(state)
        if due:
            self.log.append(encode_action(Stop()))
        return due

    def actions(self, at: int | None = None) -> list[SessionAction]:
        return [decode_action(body) for body in self.log[:at]]

    def state(self, at: int | None = None) -> SessionState:
        state = EMPTY_SESSION
        for action in self.actions(at):
            state = session_reducer(state, action)
        return state


class Model:
    """Sessions in the order of their creation."""

    def __init__(self) -> None:
        self.sessions: list[Modelled] = []
        self.now = 0

    def find(self, session_id: str, owner: str | None) -> Modelled:
        found = [s for s in self.sessions if s.id == session_id and (owner is None or s.owner == owner)]
        living = [s for s in found if not s.erased]
        if not found:
            raise SessionNotFound(session_id)
        if not living:
            raise SessionErased(session_id, 0, None)
        living = [s for s in living if s.owner is None] or living
        if len(living) > 1:
            raise AmbiguousSession(session_id, [s.owner for s in living])
        return living[0]

    def add(self, session_id: str, owner: str | None) -> Modelled:
        for session in self.sessions:
            if (session.id, session.owner) == (session_id, owner):
                raise SessionErased(session_id, 0, None) if session.erased else SessionExists(session_id)
        self.sessions.append(Modelled(session_id, owner))
        return self.sessions[-1]

    def append(
        self,
        session_id: str,
        owner: str | None,
        bodies: list[bytes],
        expected: ExpectedVersion,
        key: str | None,
        hold: Hold | None = None,
    ) -> Appended:
        try:
            session = self.find(session_id, owner)
        except SessionNotFound:
            if expected is not ANY and expected is not ABSENT:
                raise
            if hold is not None:
                raise LeaseLost(session_id, hold.run) from None
            session = self.add(session_id, owner)
        else:
            if key in session.keys:
                asked, answer = session.keys[key]
                if asked != bodies:
                    raise KeyReused(session_id, key)
                return Appended(answer.first, answer.last, repeated=True)
            if hold is not None:
                session.held(hold.run)
            if expected is ABSENT or (isinstance(expected, int) and expected != len(session.log)):
                raise VersionConflict(session_id, expected, len(session.log))
        appended = Appended(len(session.log) + 1, len(session.log) + len(bodies))
        kinds = {type(decode_action(body)) for body in bodies}
        if hold is None and kinds & {Send, Retry, Reset}:
            if session.living(self.now) is not None:
                raise RunInProgress(session_id, Lease("", "", 0, 0))
            session.run = None
        session.log += bodies
        run = session.run
        if run is not None:
            if kinds & {Send, Stop, Retry, Reset}:
                run.waiting = None
            if hold is not None:
                term = round(hold.seconds * 1000)
                run.there = True
                run.expires = self.now + term if 3 * (run.expires - self.now) < 2 * term else run.expires
        if key is not None:
            session.keys[key] = (bodies, appended)
        return appended

    def start(self, session_id: str, owner: str | None, action: Send | Retry, hold: Hold) -> tuple[int, bool]:
        """The first action's number, and whether a stop was logged before it."""
        session = self.find(session_id, owner)
        if session.living(self.now) is not None:
            raise RunInProgress(session_id, Lease("", "", 0, 0))
        if isinstance(action, Retry) and not any(message.role == "user" for message in session.state().messages):
            raise NothingToRetry(session_id)
        settled = session.settle(self.now)
        session.log.append(encode_action(action))
        session.run = Run(hold.run, self.now, self.now + round(hold.seconds * 1000))
        return len(session.log), settled

    def keep(self, session_id: str, owner: str | None, hold: Hold, bodies: list[bytes], waiting: int | None) -> int:
        """Renew, or park on the call of an action that is there."""
        session = self.find(session_id, owner)
        run = session.held(hold.run)
        if waiting is not None and not 1 <= waiting <= len(session.log) + len(bodies):
            raise InvalidArgument("waiting", "")
        session.log += bodies
        run.expires, run.there = self.now + round(hold.seconds * 1000), True
        if waiting is not None:
            run.waiting = waiting if session.state().status == "streaming" else None
        return len(session.log)

    def answer(self, session_id: str, owner: str | None, bodies: list[bytes], number: int) -> int:
        session = self.find(session_id, owner)
        run = session.living(self.now)
        if run is None or run.waiting != number:
            raise CallNotWaiting(session_id, "", "")
        session.log += bodies
        run.waiting = None
        return len(session.log)

    def release(self, session_id: str, owner: str | None, bodies: list[bytes], hold: Hold) -> int:
        session = self.find(session_id, owner)
        session.held(hold.run)
        session.log += bodies
        session.run = None
        return len(session.log)
