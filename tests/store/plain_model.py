"""What a store is, as plainly as it can be said: sessions in the order of their creation, each a list of bodies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from talkfold.actions import SessionAction
from talkfold.codec import decode_action
from talkfold.errors import (
    AmbiguousSession,
    KeyReused,
    SessionErased,
    SessionExists,
    SessionNotFound,
    VersionConflict,
)
from talkfold.model import EMPTY_SESSION, SessionState
from talkfold.reducer import session_reducer
from talkfold.store import ABSENT, ANY, Appended, ExpectedVersion


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
        self, session_id: str, owner: str | None, bodies: list[bytes], expected: ExpectedVersion, key: str | None
    ) -> Appended:
        try:
            session = self.find(session_id, owner)
        except SessionNotFound:
            if expected is not ANY and expected is not ABSENT:
                raise
            session = self.add(session_id, owner)
        else:
            if key in session.keys:
                asked, answer = session.keys[key]
                if asked != bodies:
                    raise KeyReused(session_id, key)
                return Appended(answer.first, answer.last, repeated=True)
            if expected is ABSENT or (isinstance(expected, int) and expected != len(session.log)):
                raise VersionConflict(session_id, expected, len(session.log))
        appended = Appended(len(session.log) + 1, len(session.log) + len(bodies))
        session.log += bodies
        if key is not None:
            session.keys[key] = (bodies, appended)
        return appended
