"""Who asks, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct
from starlette.requests import Request

from .refusals import NotAllowed

__all__ = ("ALL_SCOPES", "TRUSTED", "Authenticate", "Caller", "Scope", "allow")

Scope: TypeAlias = Literal["read", "write", "run", "admin"]
"""What a caller may do: read sessions; write, erase and answer in them; start and stop runs; act for every owner."""

ALL_SCOPES: Final[frozenset[Scope]] = frozenset(get_args(Scope))


class Caller(Struct, frozen=True):
    """Who asks. ``name`` goes into the log as the actor.

    ``owner`` bounds the caller: other owners' sessions do not exist for it. ``None`` is the trusted side, which reaches
    every session, and names the owner that it means with ``?owner=``; it needs the scope ``admin``.
    """

    owner: str | None
    scopes: frozenset[Scope] = ALL_SCOPES
    name: str | None = None


TRUSTED: Final = Caller(None)
"""The single user of a server on loopback without tokens."""

Authenticate: TypeAlias = Callable[[Request], Caller | Awaitable[Caller]]
"""From a request to who asks. Raises NotAuthenticated; whatever else it raises is an internal error."""


def allow(caller: Caller, scope: Scope) -> None:
    """Refuse a caller without this scope. Raises NotAllowed."""
    if scope not in caller.scopes:
        raise NotAllowed("this", scope)
    if caller.owner is None and "admin" not in caller.scopes:
        raise NotAllowed("acting for every owner", "admin")
