"""Where logs are kept: one protocol, and the stores that implement it."""

from __future__ import annotations

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

__all__ = (
    "ABSENT",
    "ANY",
    "EXISTS",
    "Appended",
    "CheckReport",
    "Expected",
    "ExpectedVersion",
    "OpenedSession",
    "Page",
    "Problem",
    "ProblemCode",
    "Session",
    "SessionStore",
    "StateAt",
    "Tombstone",
    "open_store",
)
