"""``settle``: sessions that a dead run left open are brought in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from ..errors import InvalidArgument, SessionErased, SessionNotFound
from ..model import Json
from ..store.protocol import OpenedSession, Session, SessionStore
from .opening import all_sessions, find, opened
from .options import Form, SessionId, Where
from .output import Column, document, say, table
from .progress import progress
from .sessions import session_json
from .wording import count, lease_text

__all__ = ("settle",)


class _Settled(NamedTuple):
    """What became of the sessions that were opened."""

    settled: list[Session]
    running: list[Session]
    in_order: int

    @property
    def json(self) -> dict[str, Json]:
        """As the answer."""
        return {
            "settled": [session_json(each) for each in self.settled],
            "running": [session_json(each) for each in self.running],
            "inOrder": self.in_order,
        }


_COLUMNS: Sequence[Column[Session]] = (
    ("id", lambda it: it.id),
    ("result", lambda it: "settled" if it.lease is None else "running"),
    ("actions", lambda it: str(it.number)),
    ("run", lambda it: "-" if it.lease is None else lease_text(it.lease)),
)


async def settle(
    *sessions: SessionId,
    all_: Annotated[bool, Parameter(name="--all", help="Look at every session.")] = False,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Bring sessions in order that a dead run left open.

    A session that was left streaming, or with open calls, gets the one `stop` that it needs. Whatever opens a session
    to run it does this by itself; here it is done for those that nobody opens.

    A session that a living run owns is left alone, and the answer says which run that is.
    """
    if bool(sessions) is all_:
        raise InvalidArgument("ID", "name sessions, or say --all")
    async with opened(where) as store:
        if all_:
            found = [each async for each in all_sessions(store, where)]
        else:
            found = [await find(store, each, where) for each in dict.fromkeys(sessions)]
        result = await _settle(store, found)
    if form.json:
        document(result.json)
        return
    shown = [*result.settled, *result.running]
    if shown:
        table(_COLUMNS, shown, elastic="run", styles={"id": "bold"})
    for session in result.running:
        say(f"{session.id} is running: watch it with `talkfold follow`, end it with `talkfold stop {session.id}`.")
    say(f"{count(len(result.settled), 'session')} settled, {len(result.running)} running, {result.in_order} in order.")


async def _settle(store: SessionStore, sessions: Sequence[Session]) -> _Settled:
    result: list[OpenedSession] = []
    with progress("settling", len(sessions)) as advance:
        for done, session in enumerate(sessions, start=1):
            try:
                result.append(await store.open_session(session.id, owner=session.owner))
            except (SessionErased, SessionNotFound):
                pass  # meanwhile, by somebody else
            advance(done)
    settled = [each.session for each in result if each.settled]
    running = [each.session for each in result if each.session.lease is not None]
    return _Settled(settled, running, len(result) - len(settled) - len(running))
