"""Answering a parked call, from any process: a person's yes or no, or the result from a connected client.

An answer says which call it means: by its id, and by the input that whoever answers has seen. Ids are reused by
providers, pages show old states; so both are compared with the call that waits *now*, and the answer is then bound to
that call's number in the log. It reaches that very call with those very arguments, once, or CallNotWaiting is raised
and nothing is logged.
"""

from __future__ import annotations

from typing import cast

from msgspec import UNSET, Struct, UnsetType

from ..actions import Part, ToolCall, ToolPhase
from ..errors import CallNotWaiting
from ..json_values import is_list, is_object
from ..model import Json
from ..redaction.values import redact_value
from ..store.lease import Waiting, WaitKind
from ..store.protocol import SessionStore
from .output import error_output, output_of, tool_outcome

__all__ = ("ParkedCall", "approve", "deny", "give_result", "parked_call")


class ParkedCall(Struct, frozen=True, rename="camel"):
    """The call that a session's run waits for, and the input that it would run with."""

    waiting: Waiting
    input: Json


async def parked_call(store: SessionStore, session_id: str, *, owner: str | None = None) -> ParkedCall | None:
    """The call that waits for somebody outside; ``None`` when none does. Raises SessionNotFound, SessionErased."""
    lease = (await store.get(session_id, owner=owner)).lease
    if lease is None or lease.waiting is None:
        return None
    number = lease.waiting.number
    (row,) = await store.read(session_id, after=number - 1, limit=1, owner=owner)
    part = cast("Part", row.action).part
    return ParkedCall(lease.waiting, cast("ToolCall", part).input)


async def approve(
    store: SessionStore,
    session_id: str,
    call_id: str,
    input: Json,  # noqa: A002 - the name that it has everywhere
    *,
    owner: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> int:
    """Let the parked call run. ``input`` is what the person saw; ``by`` (who) and ``reason`` are kept in the log.

    Returns the answer's number in the log. Raises CallNotWaiting when that call with that input waits for no approval.
    """
    parked = await _the_call(store, session_id, owner, call_id, input, "approval")
    meta = _meta("approved", reason)
    running = ToolPhase(parked.waiting.name, "running")
    return await store.answer(session_id, [running], number=parked.waiting.number, owner=owner, actor=by, meta=meta)


async def deny(
    store: SessionStore,
    session_id: str,
    call_id: str,
    input: Json,  # noqa: A002
    *,
    owner: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> int:
    """Refuse the parked call: it ends as cancelled, and the agent reads ``reason``. All else is as in ``approve``."""
    parked = await _the_call(store, session_id, owner, call_id, input, "approval")
    waiting = parked.waiting
    why = f"{waiting.name}: the person declined this call"
    declined = error_output("cancelled", f"{why}: {reason}" if reason else why)
    refused = Part(tool_outcome(waiting.call_id, declined), waiting.within)
    meta = _meta("denied", reason)
    return await store.answer(session_id, [refused], number=waiting.number, owner=owner, actor=by, meta=meta)


async def give_result(
    store: SessionStore,
    session_id: str,
    call_id: str,
    output: object,
    *,
    input: Json | UnsetType = UNSET,  # noqa: A002
    owner: str | None = None,
    by: str | None = None,
) -> int:
    """Post the result of a call that a client made. ``output`` is an MCP result or what ``output_of`` makes one of;
    with ``isError`` the call has failed. A client that may be late (it was away, ids may be reused) names the
    ``input`` as well.

    Returns the result's number in the log. Raises CallNotWaiting; NotJsonValue, TooDeep, TooLarge.
    """
    result = output_of(output)
    parked = await _the_call(store, session_id, owner, call_id, input, "client")
    waiting = parked.waiting
    outcome = Part(tool_outcome(waiting.call_id, result), waiting.within)
    return await store.answer(session_id, [outcome], number=waiting.number, owner=owner, actor=by)


async def _the_call(
    store: SessionStore, session_id: str, owner: str | None, call_id: str, given: Json, kind: WaitKind
) -> ParkedCall:
    parked = await parked_call(store, session_id, owner=owner)
    named = f"call {call_id!r}"
    if parked is None:
        raise CallNotWaiting(session_id, named, "no call waits")
    waiting = parked.waiting
    if waiting.call_id != call_id:
        raise CallNotWaiting(session_id, named, f"{waiting.call_id!r} ({waiting.name}) is the one that waits")
    if waiting.kind != kind:
        wanted = "a person's approval" if waiting.kind == "approval" else "the result from a client"
        raise CallNotWaiting(session_id, named, f"it waits for {wanted}")
    if given is not UNSET and not _equal(_as_logged(store, given), parked.input):
        raise CallNotWaiting(session_id, named, "its input is another than the one that was seen")
    return parked


def _as_logged(store: SessionStore, given: Json) -> Json:
    """An input as the log has it: whoever saw it in the run's own process saw it whole."""
    return given if store.redaction is None else redact_value(store.redaction, given)


def _meta(decision: str, reason: str | None) -> dict[str, Json]:
    meta: dict[str, Json] = {"decision": decision}
    return meta if reason is None else {**meta, "reason": reason}


def _equal(one: Json, other: Json) -> bool:
    """Whether two JSON values say the same: a browser sends ``1.0`` back as ``1`` and may reorder keys."""
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)
