"""Everything that is served, as one table."""

from __future__ import annotations

from typing import Final

from ..errors import (
    CursorAhead,
    InvalidCursor,
    KeyReused,
    MetadataKeyNotAllowed,
    RunInProgress,
    SessionExists,
    VersionConflict,
)
from ..protocols.documents import PageDocument, SessionDocument, TombstoneDocument
from . import log, sessions
from .endpoint import ACTIONS, Endpoint, Reply

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
)
