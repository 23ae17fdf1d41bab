"""The calls of the SQLite store about who may ask a server."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from ..arguments import check_digest, check_name, check_token
from ..tokens import Token, TokenScope, scopes_in_order, token_id
from . import token_rows
from .erase_calls import EraseCalls

__all__ = ("TokenCalls",)


class TokenCalls(EraseCalls):
    """Implements ``Tokens``, whose docstrings are the contract."""

    async def add_token(
        self,
        digest: bytes,
        *,
        scopes: Collection[TokenScope],
        owner: str | None = None,
        name: str | None = None,
        expires: int | None = None,
    ) -> Token:
        now = self._clock()
        check_token(digest, scopes, owner, name, expires, now)
        token = Token(token_id(digest), scopes_in_order(scopes), now, owner, name, expires)
        return await self._write(partial(token_rows.add, digest=digest, token=token))

    async def find_token(self, digest: bytes) -> Token | None:
        check_digest("digest", digest)
        token = await self._read(partial(token_rows.find, digest=digest))
        return token if token is not None and token.is_good(self._clock()) else None

    async def tokens(self, *, owner: str | None = None) -> tuple[Token, ...]:
        check_name("owner", owner)
        return await self._read(partial(token_rows.newest_first, owner=owner))

    async def revoke_token(self, token_id: str, *, owner: str | None = None) -> Token:
        check_name("token_id", token_id)
        check_name("owner", owner)
        return await self._write(partial(token_rows.revoke, known=token_id, owner=owner))
