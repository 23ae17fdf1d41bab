"""How long sessions are kept: a rule, and what it picks. Whole sessions only, so every log that is left is whole."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from ..model import SessionStatus

__all__ = ("Expired", "Retention", "latest")


class Retention(Struct, frozen=True):
    """Which sessions are over: those without an append for as long as ``idle`` or longer.

    ``owner``: only this one's (``None``: everybody's). ``statuses``: only those listed so (none: any status). One that
    a dead run left streaming is listed as streaming until somebody settles it, and counts as that.
    """

    idle: timedelta
    owner: str | None = None
    statuses: tuple[SessionStatus, ...] = ()


class Expired(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A session that a rule picks, without its content. ``size`` is the bytes of its log's bodies, ``updated`` the time
    of its newest append in milliseconds since 1970."""

    id: str
    status: SessionStatus
    number: int
    size: int
    updated: int
    owner: str | None = None


def latest(rule: Retention, now: int) -> int:
    """The newest time at which a session that is over had its last append. Milliseconds since 1970, as ``now`` is."""
    return now - rule.idle // timedelta(milliseconds=1)
