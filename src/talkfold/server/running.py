"""Live runs over HTTP: begun, stopped, settled, and their parked calls answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, to_builtins
from starlette.responses import Response

from ..actions import Retry
from ..codec import encode_messages
from ..errors import InvalidArgument, NothingToRetry
from ..healing import ProviderExport
from ..model import AgentMessage, Json
from ..protocols.anthropic_messages import to_anthropic
from ..protocols.documents import LeaseDocument, SessionDocument, WaitingDocument, lease_document, session_document
from ..protocols.openai_chat import to_openai_chat
from ..protocols.system_prompt import system_prompts
from ..resumable import AtRisk, Dropped, retry_plan
from ..runs import approve, deny, give_result, parked_call, stop_run
from .agents import Begin
from .answers import FOREVER, NEVER, json_reply
from .conditions import expected_version
from .endpoint import Call, Nothing

__all__ = (
    "Answer",
    "AnsweredDocument",
    "BegunDocument",
    "MessageForm",
    "ParkedDocument",
    "Result",
    "RetryDocument",
    "RetryForm",
    "Retrying",
    "SettledDocument",
    "StopReason",
    "StoppedDocument",
    "approve_call",
    "begin_run",
    "deny_call",
    "get_retry",
    "get_waiting",
    "give_call_result",
    "log_retry",
    "settle_session",
    "stop_session",
)

MessageForm = Literal["talkfold", "openai", "anthropic"]


class BegunDocument(Struct, frozen=True, rename="camel"):
    """The run that began, and the number of its first action: follow the log after the one before."""

    run: str
    number: int


class StopReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Why; it is kept in the log."""

    reason: str | None = None


class StoppedDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The run that hears the stop; none, when none lives."""

    lease: LeaseDocument | None = None


class SettledDocument(Struct, frozen=True, rename="camel"):
    """The session, and whether this very request logged the ``stop`` that a dead run needed."""

    session: SessionDocument
    settled: bool


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """A person's decision: ``input`` is what the person saw, so that it reaches no other call."""

    input: Json
    reason: str | None = None


class Result(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a call that a client made: an MCP result, or any JSON. ``input``: the call that is meant had it."""

    output: Json
    input: Json | UnsetType = UNSET


class AnsweredDocument(Struct, frozen=True, rename="camel"):
    """The number of the answer in the log."""

    number: int


class ParkedDocument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The call that the session's run waits for, with the input that it would run with; none, when none waits."""

    waiting: WaitingDocument | None = None
    input: Json | UnsetType = UNSET


class RetryForm(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose form of messages is wanted."""

    form: MessageForm = "talkfold"


class Retrying(RetryForm, frozen=True, forbid_unknown_fields=True):
    """The same, at this number; the newest by default."""

    at: Annotated[int, Meta(ge=0)] | None = None


class RetryDocument(Struct, frozen=True, rename="camel"):
    """What Retry sends, what it drops and why, and the finished calls that it may repeat. ``messages`` are in the form
    that was asked for."""

    number: int
    messages: tuple[AgentMessage, ...]
    dropped: tuple[Dropped, ...]
    at_risk: tuple[AtRisk, ...]


async def begin_run(call: Call[Nothing, Begin]) -> Response:
    """Begin a run of a registered agent: of a new message, or a retry. Follow it at ``/actions/stream``.

    A run that is in progress is told as such (409), with whose it is; ``interrupt`` stops it first.
    """
    begin = call.body
    if begin.retry is (begin.text is not None):
        raise InvalidArgument("text", "a run is of a text, or a retry: one of them")
    run = await call.resources.agents.begin(call.session_id, call.owner, begin, call.caller)
    return json_reply(BegunDocument(run.id, run.started.number), 202, number=run.started.number)


async def stop_session(call: Call[Nothing, StopReason | None]) -> Response:
    """Stop whatever runs in the session, in whatever process: one logged ``stop``."""
    reason = None if call.body is None else call.body.reason
    lease = await stop_run(
        call.resources.store, call.session_id, owner=call.owner, actor=call.caller.name, reason=reason
    )
    return json_reply(StoppedDocument(None if lease is None else lease_document(lease)))


async def settle_session(call: Call[Nothing, None]) -> Response:
    """Bring a session in order that a dead run left open. One that a living run owns is left alone."""
    opened = await call.resources.store.open_session(call.session_id, owner=call.owner)
    document = SettledDocument(session_document(opened.session), opened.settled)
    return json_reply(document, number=opened.session.number)


async def get_waiting(call: Call[Nothing, None]) -> Response:
    """The parked call that waits for a person, or for a client's result."""
    parked = await parked_call(call.resources.store, call.session_id, owner=call.owner)
    if parked is None:
        return json_reply(ParkedDocument())
    lease = (await call.resources.store.get(call.session_id, owner=call.owner)).lease
    waiting = None if lease is None else lease_document(lease).waiting
    return json_reply(ParkedDocument(waiting, parked.input) if waiting is not None else ParkedDocument())


async def approve_call(call: Call[Nothing, Answer]) -> Response:
    """Let a parked call run; once, and only with the input that the person saw."""
    return await _decide(call, approve)


async def deny_call(call: Call[Nothing, Answer]) -> Response:
    """Refuse a parked call; the agent reads the reason."""
    return await _decide(call, deny)


async def _decide(call: Call[Nothing, Answer], decide: Callable[..., Awaitable[int]]) -> Response:
    number = await decide(
        call.resources.store,
        call.session_id,
        call.segment("call"),
        call.body.input,
        owner=call.owner,
        by=call.caller.name,
        reason=call.body.reason,
    )
    return json_reply(AnsweredDocument(number), number=number)


async def give_call_result(call: Call[Nothing, Result]) -> Response:
    """Post the result of a call that a client made."""
    number = await give_result(
        call.resources.store,
        call.session_id,
        call.segment("call"),
        call.body.output,
        input=call.body.input,
        owner=call.owner,
        by=call.caller.name,
    )
    return json_reply(AnsweredDocument(number), number=number)


async def get_retry(call: Call[Retrying, None]) -> Response:
    """What Retry would send at any number, what it drops and why, and what might happen twice. Nothing is changed."""
    then = await call.resources.store.state(call.session_id, at=call.query.at, owner=call.owner)
    keep = NEVER if call.query.at is None else FOREVER
    return json_reply(await _plan(call, then.number, then.state.messages), number=then.number, keep=keep)


async def log_retry(call: Call[RetryForm, None]) -> Response:
    """Log ``retry``, and answer what to send. Whoever runs the agent elsewhere begins its turn with this."""
    store = call.resources.store
    before = await store.state(call.session_id, owner=call.owner)
    if not any(message.role == "user" for message in before.state.messages):
        raise NothingToRetry(call.session_id)
    expected = expected_version(call.headers)
    appended = await store.append(
        call.session_id,
        [Retry()],
        expected=expected,
        key=call.headers.get("idempotency-key"),
        owner=call.owner,
        actor=call.caller.name,
    )
    then = await store.state(call.session_id, at=appended.last - 1, owner=call.owner)
    return json_reply(await _plan(call, appended.last, then.state.messages), 201, number=appended.last)


async def _plan(call: Call[Any, None], number: int, messages: tuple[AgentMessage, ...]) -> dict[str, Json]:
    plan = retry_plan(messages)
    return {
        "number": number,
        **await _messages(call, plan.messages),
        "dropped": to_builtins(plan.dropped),
        "atRisk": to_builtins(plan.at_risk),
    }


async def _messages(call: Call[Any, None], messages: tuple[AgentMessage, ...]) -> dict[str, Json]:
    """The messages in the form that was asked for; a provider's are healed, so that it takes them."""
    export = _PROVIDERS.get(call.query.form)
    if export is None:
        return {"messages": Raw(encode_messages(messages))}
    session = await call.resources.store.get(call.session_id, owner=call.owner)
    exported = export(messages, system=system_prompts(session.metadata))
    return {**exported.request, "healed": to_builtins(exported.healed)}


_PROVIDERS: Mapping[MessageForm, Callable[..., ProviderExport]] = {
    "openai": to_openai_chat,
    "anthropic": to_anthropic,
}
