"""``approve``, ``deny``: a call of a live run that waits for a person gets its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter
from msgspec import UNSET, UnsetType

from .. import runs
from ..codec import decode_json
from ..errors import CallNotWaiting
from ..model import Json
from ..runs import ParkedCall
from ..store.protocol import Session, SessionStore
from .asking import agreed
from .opening import find, opened
from .options import Form, SessionId, Where
from .output import document, json_bytes, say
from .wording import clock

__all__ = ("approve", "deny")

_Call: TypeAlias = Annotated[
    str | None, Parameter(name="CALL", help="The id of the call. May be left out: at most one call waits.")
]
_Yes: TypeAlias = Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask.")]
_Input: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--input",
        help="The call's input as you saw it, as JSON: the answer counts only for a call with this input. "
        "Nothing is asked then.",
    ),
]
_Reason: TypeAlias = Annotated[str | None, Parameter(help="Why, for the log; after a no the agent reads it too.")]
_By: TypeAlias = Annotated[str | None, Parameter(help="Who answers, for the log.")]

_Decision: TypeAlias = Literal["approved", "denied"]
_ANSWERS: dict[_Decision, tuple[str, Callable[..., Awaitable[int]]]] = {
    "approved": ("Let it run?", runs.approve),
    "denied": ("Refuse it?", runs.deny),
}


async def approve(
    session: SessionId,
    call: _Call = None,
    /,
    *,
    yes: _Yes = False,
    input_: _Input = None,
    reason: _Reason = None,
    by: _By = None,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Let a call run that waits for a person.

    Shows the call and asks; where there is no terminal, say --yes or --input. The answer reaches exactly the call that
    was shown, once: when it was answered meanwhile, or its time is over, nothing is logged and the exit code is 4.
    """
    await _answer("approved", session, call, yes, input_, reason, by, where, form)


async def deny(
    session: SessionId,
    call: _Call = None,
    /,
    *,
    yes: _Yes = False,
    input_: _Input = None,
    reason: _Reason = None,
    by: _By = None,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Refuse a call that waits for a person.

    The call ends as cancelled, and the agent goes on and reads the reason. All else is as with `talkfold approve`.
    """
    await _answer("denied", session, call, yes, input_, reason, by, where, form)


async def _answer(
    decision: _Decision,
    given: str,
    call: str | None,
    yes: bool,
    seen: str | None,
    reason: str | None,
    by: str | None,
    where: Where,
    form: Form,
) -> None:
    question, answer = _ANSWERS[decision]
    wanted: Json | UnsetType = UNSET if seen is None else decode_json(seen, "input")
    async with opened(where) as store:
        session = await find(store, given, where)
        parked = await _parked(store, session, call)
        say(*_shown(session, parked))
        if wanted is UNSET and not yes and not agreed(question, "--yes", "say it, or say what you saw with --input"):
            say("Nothing was answered; the call still waits.")
            return
        number = await answer(
            store,
            session.id,
            parked.waiting.call_id,
            parked.input if wanted is UNSET else wanted,
            owner=session.owner,
            by=by,
            reason=reason,
        )
    if form.json:
        document(_json(session, parked, decision, number))
    else:
        say(f"{parked.waiting.name} is {decision} (action {number}).")


async def _parked(store: SessionStore, session: Session, call: str | None) -> ParkedCall:
    """The call that waits for a person. Raises CallNotWaiting when there is none, or it is another."""
    parked = await runs.parked_call(store, session.id, owner=session.owner)
    named = "a call" if call is None else f"call {call!r}"
    if parked is None:
        raise CallNotWaiting(session.id, named, "no call waits")
    waiting = parked.waiting
    if call is not None and call != waiting.call_id:
        raise CallNotWaiting(session.id, named, f"{waiting.call_id!r} ({waiting.name}) is the one that waits")
    if waiting.kind != "approval":
        raise CallNotWaiting(session.id, f"call {waiting.call_id!r}", "it waits for the result from a client")
    return parked


def _shown(session: Session, parked: ParkedCall) -> list[str]:
    waiting = parked.waiting
    until = "" if waiting.expires is None else f", until {clock(waiting.expires)} UTC"
    within = "" if waiting.within is None else f", inside call {waiting.within}"
    lines = [
        f"{session.id}: call {waiting.call_id} waits for a yes or no{within}{until}.",
        f"  {waiting.name} {json_bytes(parked.input).decode('utf-8', 'replace')}",
    ]
    return lines if waiting.prompt is None else [*lines, f"  {waiting.prompt}"]


def _json(session: Session, parked: ParkedCall, decision: _Decision, number: int) -> dict[str, Any]:
    waiting = parked.waiting
    return {
        "id": session.id,
        "call": waiting.call_id,
        "name": waiting.name,
        "input": parked.input,
        "decision": decision,
        "number": number,
    }
