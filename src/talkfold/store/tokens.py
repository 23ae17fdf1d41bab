"""Tokens: who may ask a server, and for what.

A token is a secret of 32 random bytes. A store keeps only its SHA-256: whoever reads the database can use none of them,
and a secret that is lost cannot be shown again. The beginning of the digest is the token's id; it gives nothing away.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from hmac import compare_digest
from typing import Final, Literal, Protocol, TypeAlias, get_args

from msgspec import Struct

__all__ = (
    "TOKEN_SCOPES",
    "Token",
    "TokenScope",
    "Tokens",
    "is_this",
    "scopes_in_order",
    "secret_digest",
    "token_id",
)

TokenScope: TypeAlias = Literal["read", "write", "run", "admin"]
"""What a token is for: read sessions; write, erase and answer in them; start and stop runs; act for every owner."""

TOKEN_SCOPES: Final[tuple[TokenScope, ...]] = get_args(TokenScope)

_ID_LENGTH: Final = 16


class Token(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is known of a token. Times are milliseconds since 1970 (UTC).

    ``owner`` is whose sessions it reaches; without one, everybody's. From ``expires`` and from ``revoked`` on it is
    good for nothing. ``name`` says to people who uses it, and goes into the log as the actor.
    """

    id: str
    scopes: tuple[TokenScope, ...]
    created: int
    owner: str | None = None
    name: str | None = None
    expires: int | None = None
    revoked: int | None = None

    def is_good(self, now: int) -> bool:
        """Whether it opens anything at this time."""
        return self.revoked is None and (self.expires is None or now < self.expires)


class Tokens(Protocol):
    """The part of a store that keeps tokens. Only digests come here, made by ``secret_digest``."""

    async def add_token(
        self,
        digest: bytes,
        *,
        scopes: Collection[TokenScope],
        owner: str | None = None,
        name: str | None = None,
        expires: int | None = None,
    ) -> Token:
        """Keep a new token of an owner; without one, of the trusted side. The digest has 32 bytes.

        The trusted side's tokens have the scope ``admin``, and no other's have. Raises InvalidArgument, also for a
        digest that is kept already, and for an end that is over.
        """
        ...

    async def find_token(self, digest: bytes) -> Token | None:
        """The token with this digest while it is good: neither revoked nor over. Compared in constant time."""
        ...

    async def tokens(self, *, owner: str | None = None) -> tuple[Token, ...]:
        """All tokens that were ever made, or an owner's, newest first; those that are revoked or over as well."""
        ...

    async def revoke_token(self, token_id: str, *, owner: str | None = None) -> Token:
        """End a token for good; one that was revoked before keeps that time. With ``owner``, only this owner's exist.

        Raises TokenNotFound.
        """
        ...


def secret_digest(secret: str) -> bytes:
    """What is kept of a secret. A hash that is slow on purpose would protect short passwords; these are random."""
    return sha256(secret.encode("utf-8", "replace")).digest()


def token_id(digest: bytes) -> str:
    """What a token is called by."""
    return digest.hex()[:_ID_LENGTH]


def is_this(given: bytes, kept: bytes) -> bool:
    """Whether two digests are the same, in a time that does not say where they differ."""
    return compare_digest(given, kept)


def scopes_in_order(scopes: Collection[str]) -> tuple[TokenScope, ...]:
    """The scopes, each once, in the order in which they are always told."""
    return tuple(scope for scope in TOKEN_SCOPES if scope in scopes)
