"""Tokens in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec.structs import replace

from ...errors import InvalidArgument, TokenNotFound
from ...redaction import Redaction
from ..arguments import check_digest, check_name, check_token
from ..tokens import Token, TokenScope, is_this, scopes_in_order, token_id
from .search import MemorySearch

__all__ = ("MemoryTokens",)


class MemoryTokens(MemorySearch):
    """Implements ``Tokens``, whose docstrings are the contract."""

    def __init__(self, clock: Callable[[], int], redaction: Redaction | None) -> None:
        super().__init__(clock, redaction)
        self._tokens: dict[str, tuple[bytes, Token]] = {}

    async def add_token(
        self,
        digest: bytes,
        *,
        scopes: Collection[TokenScope],
        owner: str | None = None,
        name: str | None = None,
        expires: int | None = None,
    ) -> Token:
        self._refuse_closed()
        now = self._clock()
        check_token(digest, scopes, owner, name, expires, now)
        known = token_id(digest)
        if known in self._tokens:
            raise InvalidArgument("digest", "it is kept already")
        token = Token(known, scopes_in_order(scopes), now, owner, name, expires)
        self._tokens[known] = digest, token
        return token

    async def find_token(self, digest: bytes) -> Token | None:
        self._refuse_closed()
        check_digest("digest", digest)
        kept, token = self._tokens.get(token_id(digest), (b"", None))
        return token if token is not None and is_this(digest, kept) and token.is_good(self._clock()) else None

    async def tokens(self, *, owner: str | None = None) -> tuple[Token, ...]:
        self._refuse_closed()
        check_name("owner", owner)
        return tuple(token for _, token in reversed(self._tokens.values()) if owner in (None, token.owner))

    async def revoke_token(self, token_id: str, *, owner: str | None = None) -> Token:
        self._refuse_closed()
        check_name("token_id", token_id)
        check_name("owner", owner)
        digest, token = self._tokens.get(token_id, (b"", None))
        if token is None or owner not in (None, token.owner):
            raise TokenNotFound(token_id)
        if token.revoked is None:
            token = replace(token, revoked=self._clock())
            self._tokens[token_id] = digest, token
        return token
