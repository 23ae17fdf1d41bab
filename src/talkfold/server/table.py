"""Everything that is served, as one table."""

from __future__ import annotations

from typing import Final

from ..audit import Timings
from ..errors import (
    CallNotWaiting,
    CursorAhead,
    InvalidCursor,
    KeyReused,
    MetadataKeyNotAllowed,
    NothingToRetry,
    RunInProgress,
    SessionExists,
    VersionConflict,
)
from ..protocols.documents import PageDocument, SessionDocument, TombstoneDocument
from . import about, auditing, log, running, sessions, streaming
from .agents import Begin
from .endpoint import ACTIONS, Endpoint, Reply
from .refusals import NoSuchAgent, TooManyStreams

__all__ = ("ENDPOINTS",)

_SESSION: Final = "/v1/sessions/{session}"

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    # ---- sessions ----
    Endpoint(
        method="GET",
        path="/v1/sessions",
        handler=sessions.list_sessions,
        scope="read",
        query=sessions.Listing,
        replies=(Reply(200, PageDocument, "A page of sessions."),),
        errors=(InvalidCursor, MetadataKeyNotAllowed),
    ),
    Endpoint(
        method="POST",
        path="/v1/sessions",
        handler=sessions.create_session,
        scope="write",
        body=sessions.NewSession,
        replies=(Reply(201, SessionDocument, "The new session."),),
        errors=(SessionExists,),
    ),
    Endpoint(
        method="PUT",
        path=_SESSION,
        handler=sessions.put_session,
        scope="write",
        body=sessions.NewNamed,
        optional_body=True,
        replies=(
            Reply(201, SessionDocument, "The new session."),
            Reply(200, SessionDocument, "It was there, and was not touched."),
        ),
    ),
    Endpoint(
        method="GET",
        path=_SESSION,
        handler=sessions.get_session,
        scope="read",
        replies=(Reply(200, SessionDocument, "The session."),),
    ),
    Endpoint(
        method="PATCH",
        path=_SESSION,
        handler=sessions.change_session,
        scope="write",
        body=sessions.Change,
        replies=(Reply(200, SessionDocument, "The session as it is now."),),
    ),
    Endpoint(
        method="DELETE",
        path=_SESSION,
        handler=sessions.erase_session,
        scope="write",
        replies=(Reply(200, TombstoneDocument, "What is left."),),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/fork",
        handler=sessions.fork_session,
        scope="write",
        body=sessions.ForkOf,
        optional_body=True,
        replies=(Reply(201, SessionDocument, "The copy."),),
        errors=(SessionExists, CursorAhead),
    ),
    # ---- the log ----
    Endpoint(
        method="POST",
        path=f"{_SESSION}/actions",
        handler=log.append_actions,
        scope="write",
        body=ACTIONS,
        headers=("If-Match", "If-None-Match", "Idempotency-Key"),
        replies=(Reply(201, log.AppendedDocument, "They are durable."),),
        errors=(VersionConflict, KeyReused, RunInProgress),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/actions",
        handler=log.read_actions,
        scope="read",
        query=log.Reading,
        replies=(Reply(200, log.PageOfActions, "A page of actions."), Reply(200, log.NDJSON, "One a line.")),
        errors=(CursorAhead,),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/actions/stream",
        handler=streaming.stream_actions,
        scope="read",
        query=streaming.Following,
        headers=("Last-Event-ID",),
        replies=(Reply(200, streaming.EVENT_STREAM, "Events: action, caught-up, closing, problem."),),
        errors=(CursorAhead, TooManyStreams),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/state",
        handler=log.get_state,
        scope="read",
        query=log.At,
        headers=("If-None-Match",),
        replies=(Reply(200, log.StateDocument, "The state."), Reply(304, None, "The caller has it.")),
        errors=(CursorAhead,),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/steps/{{number}}",
        handler=log.get_step,
        scope="read",
        replies=(Reply(200, log.StepDocument, "The step."),),
        errors=(CursorAhead,),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/diff",
        handler=log.get_diff,
        scope="read",
        query=log.Between,
        replies=(Reply(200, log.DiffDocument, "The difference."),),
        errors=(CursorAhead,),
    ),
    # ---- live runs ----
    Endpoint(
        method="POST",
        path=f"{_SESSION}/runs",
        handler=running.begin_run,
        scope="run",
        body=Begin,
        replies=(Reply(202, running.BegunDocument, "It runs."),),
        errors=(RunInProgress, NothingToRetry, NoSuchAgent),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/stop",
        handler=running.stop_session,
        scope="run",
        body=running.StopReason,
        optional_body=True,
        replies=(Reply(200, running.StoppedDocument, "It is logged, if there was anything to stop."),),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/settle",
        handler=running.settle_session,
        scope="run",
        replies=(Reply(200, running.SettledDocument, "It is in order."),),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/retry",
        handler=running.get_retry,
        scope="read",
        query=running.Retrying,
        replies=(Reply(200, running.RetryDocument, "The plan."),),
        errors=(CursorAhead,),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/retry",
        handler=running.log_retry,
        scope="run",
        query=running.RetryForm,
        headers=("If-Match", "Idempotency-Key"),
        replies=(Reply(201, running.RetryDocument, "It is logged; this is what to send."),),
        errors=(VersionConflict, KeyReused, RunInProgress, NothingToRetry),
    ),
    # ---- parked calls ----
    Endpoint(
        method="GET",
        path=f"{_SESSION}/calls/waiting",
        handler=running.get_waiting,
        scope="read",
        replies=(Reply(200, running.ParkedDocument, "The call, or nothing."),),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/calls/{{call}}/approve",
        handler=running.approve_call,
        scope="write",
        body=running.Answer,
        replies=(Reply(200, running.AnsweredDocument, "It runs."),),
        errors=(CallNotWaiting,),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/calls/{{call}}/deny",
        handler=running.deny_call,
        scope="write",
        body=running.Answer,
        replies=(Reply(200, running.AnsweredDocument, "It is refused."),),
        errors=(CallNotWaiting,),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/calls/{{call}}/result",
        handler=running.give_call_result,
        scope="write",
        body=running.Result,
        replies=(Reply(200, running.AnsweredDocument, "The run goes on with it."),),
        errors=(CallNotWaiting,),
    ),
    # ---- audit ----
    Endpoint(
        method="GET",
        path=f"{_SESSION}/findings",
        handler=auditing.get_findings,
        scope="read",
        replies=(Reply(200, auditing.FindingsDocument, "The findings."),),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/lanes",
        handler=auditing.get_lanes,
        scope="read",
        replies=(Reply(200, auditing.LanesDocument, "The lanes."),),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/stats",
        handler=auditing.get_stats,
        scope="read",
        replies=(Reply(200, Timings, "The times and the usage."),),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/blame",
        handler=auditing.get_blame,
        scope="read",
        query=auditing.Blaming,
        replies=(Reply(200, auditing.BlameDocument, "The actions."),),
        errors=(CursorAhead,),
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/check",
        handler=auditing.get_check,
        scope="read",
        query=auditing.Checking,
        replies=(Reply(200, auditing.CheckDocument, "The proof, or what is wrong."),),
    ),
    # ---- the server ----
    Endpoint(
        method="GET",
        path="/healthz",
        handler=about.get_health,
        scope=None,
        replies=(Reply(200, about.HealthDocument, "It lives."),),
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        handler=about.get_readiness,
        scope=None,
        replies=(Reply(200, about.HealthDocument, "It is ready."), Reply(503, about.HealthDocument, "It is not.")),
    ),
    Endpoint(
        method="GET",
        path="/v1/version",
        handler=about.get_version,
        scope=None,
        replies=(Reply(200, about.VersionDocument, "The version."),),
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        handler=about.get_openapi,
        scope=None,
        replies=(Reply(200, "application/json", "The document."),),
    ),
)
