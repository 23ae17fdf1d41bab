"""The calls of the SQLite store about who runs a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from ...actions import Retry, Send
from ...log import Loggable
from ...model import Json
from ..arguments import check_first, check_hold, check_number
from ..entries import prepare
from ..holding import answer_meta
from ..lease import Hold, Lease, Started, Waiting
from ..protocol import OpenedSession
from ..redacting import redacted_waiting
from . import leases
from .calls import check_target
from .search_calls import SearchCalls

__all__ = ("LeaseCalls",)


class LeaseCalls(SearchCalls):
    """Implements ``Leases`` and ``open_session``, whose docstrings are the contract."""

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
        check_target(session_id, owner)
        check_first(action)
        check_hold(hold)
        batch = prepare([action], run=hold.run, actor=actor, meta=meta, redaction=self.redaction)
        await self.state(session_id, owner=owner)  # a long log is folded here, not while others wait to write
        return await self._write(
            partial(
                leases.start,
                session_id=session_id,
                owner=owner,
                action=cast("Send | Retry", batch.turning[0]),  # as it is logged: the state is folded with it
                batch=batch,
                hold=hold,
                warm=self._warm,
            )
        )

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
        check_target(session_id, owner)
        check_hold(hold)
        batch = prepare(actions, run=hold.run, meta=meta, redaction=self.redaction) if actions else None
        noted = redacted_waiting(self.redaction, waiting)
        return await self._write(
            partial(leases.park, session_id=session_id, owner=owner, batch=batch, hold=hold, waiting=noted)
        )

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
        check_target(session_id, owner)
        check_number("number", number)
        if hold is not None:
            check_hold(hold)
        batch = prepare(actions, actor=actor, meta=answer_meta(meta, number), redaction=self.redaction)
        return await self._write(
            partial(leases.answer, session_id=session_id, owner=owner, batch=batch, number=number, hold=hold)
        )

    async def renew(self, session_id: str, *, hold: Hold, owner: str | None = None) -> Lease:
        check_target(session_id, owner)
        check_hold(hold)
        return await self._write(partial(leases.renew, session_id=session_id, owner=owner, hold=hold))

    async def release(
        self,
        session_id: str,
        actions: Sequence[Loggable] = (),
        *,
        hold: Hold,
        owner: str | None = None,
        meta: Mapping[str, Json] | None = None,
    ) -> int:
        check_target(session_id, owner)
        check_hold(hold)
        batch = prepare(actions, run=hold.run, meta=meta, redaction=self.redaction) if actions else None
        return await self._write(partial(leases.release, session_id=session_id, owner=owner, batch=batch, hold=hold))

    async def open_session(self, session_id: str, *, owner: str | None = None, cause: str = "reload") -> OpenedSession:
        check_target(session_id, owner)
        session, state, settled = await self._write(
            partial(leases.settle, session_id=session_id, owner=owner, cause=cause, warm=self._warm)
        )
        return OpenedSession(session, state, settled)
