"""Where logs are kept: one protocol, and the stores that implement it."""

from __future__ import annotations

from .lease import LEASE_SECONDS, Hold, Lease, Leases, Started, Waiting, WaitKind
from .opening import open_store
from .protocol import (
    ABSENT,
    ANY,
    EXISTS,
    Appended,
    CheckReport,
    Expected,
    ExpectedVersion,
    OpenedSession,
    Page,
    Problem,
    ProblemCode,
    Session,
    SessionStore,
    StateAt,
    Tombstone,
)
from .retention import Expired, Retention
from .search.answer import SearchHit, SearchPage
from .search.texts import SearchKind
from .token_secret import new_secret
from .tokens import Token, Tokens, TokenScope, secret_digest

__all__ = (
    "ABSENT",
    "ANY",
    "EXISTS",
    "LEASE_SECONDS",
    "Appended",
    "CheckReport",
    "Expected",
    "ExpectedVersion",
    "Expired",
    "Hold",
    "Lease",
    "Leases",
    "OpenedSession",
    "Page",
    "Problem",
    "ProblemCode",
    "Retention",
    "SearchHit",
    "SearchKind",
    "SearchPage",
    "Session",
    "SessionStore",
    "Started",
    "StateAt",
    "Token",
    "TokenScope",
    "Tokens",
    "Tombstone",
    "WaitKind",
    "Waiting",
    "new_secret",
    "open_store",
    "secret_digest",
)
