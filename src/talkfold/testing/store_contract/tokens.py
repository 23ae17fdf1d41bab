"""The contract of tokens: found by their digest while they are good, and by nothing else."""

from __future__ import annotations

import pytest

from ...errors import InvalidArgument, StoreClosed, TokenNotFound
from ...store.tokens import Token, secret_digest, token_id
from .opening import UsesStore, error_of

__all__ = ("TokensKept",)

_ONE, _TWO, _THREE = (secret_digest(name) for name in ("one", "two", "three"))


class TokensKept(UsesStore):
    async def test_a_token_is_found_by_its_digest(self) -> None:
        self.clock.stop()
        now = self.clock()
        async with self.open() as store:
            made = await store.add_token(_ONE, scopes=["write", "read"], owner="ann", name="Ann's laptop")
            assert made == Token(token_id(_ONE), ("read", "write"), now, "ann", "Ann's laptop")
            assert await store.find_token(_ONE) == made
            assert await store.find_token(_TWO) is None
            twin = _ONE[:-1] + bytes([_ONE[-1] ^ 1])  # the same id
            assert await store.find_token(twin) is None

    async def test_all_that_were_made_newest_first(self) -> None:
        async with self.open() as store:
            assert await store.tokens() == ()
            ann = await store.add_token(_ONE, scopes=["read"], owner="ann")
            root = await store.add_token(_TWO, scopes=["admin", "read"])
            bob = await store.add_token(_THREE, scopes=["run"], owner="bob")
            ended = await store.revoke_token(bob.id)
            assert await store.tokens() == (ended, root, ann)
            assert await store.tokens(owner="ann") == (ann,)
            assert await store.tokens(owner="bob") == (ended,)
            assert await store.tokens(owner="cid") == ()

    async def test_one_that_is_revoked_opens_nothing(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            made = await store.add_token(_ONE, scopes=["read"], owner="ann")
            self.clock.forward(5)
            ended = await store.revoke_token(made.id)
            assert ended.revoked == self.clock()
            assert await store.find_token(_ONE) is None
            self.clock.forward(5)
            assert await store.revoke_token(made.id) == ended, "it keeps the time of its end"

    async def test_one_that_is_over_opens_nothing(self) -> None:
        self.clock.stop()
        async with self.open() as store:
            made = await store.add_token(_ONE, scopes=["read"], owner="ann", expires=self.clock() + 1000)
            self.clock.forward(999)
            assert await store.find_token(_ONE) == made
            self.clock.forward(1)
            assert await store.find_token(_ONE) is None
            assert await store.tokens() == (made,)

    async def test_only_an_owners_own_are_ended_for_the_owner(self) -> None:
        async with self.open() as store:
            made = await store.add_token(_ONE, scopes=["read"], owner="ann")
            foreign = await error_of(store.revoke_token(made.id, owner="bob"))
            unknown = await error_of(store.revoke_token("0" * 16, owner="bob"))
            assert type(foreign) is type(unknown) is TokenNotFound
            assert await store.find_token(_ONE) == made
            assert (await store.revoke_token(made.id, owner="ann")).revoked is not None

    async def test_what_could_not_be_kept_is_refused(self) -> None:
        async with self.open() as store:
            await store.add_token(_ONE, scopes=["read"], owner="ann")
            with pytest.raises(InvalidArgument, match="kept already"):
                await store.add_token(_ONE, scopes=["read"], owner="bob")
            with pytest.raises(InvalidArgument, match="needs admin"):
                await store.add_token(_TWO, scopes=["read", "write", "run"])
            with pytest.raises(InvalidArgument, match="without an owner"):
                await store.add_token(_TWO, scopes=["admin"], owner="ann")
            with pytest.raises(InvalidArgument, match="none of read, write, run, admin"):
                await store.add_token(_TWO, scopes=[], owner="ann")
            with pytest.raises(InvalidArgument, match="'all' is none of"):
                await store.add_token(_TWO, scopes=["all"], owner="ann")  # type: ignore[list-item]
            with pytest.raises(InvalidArgument, match="over already"):
                await store.add_token(_TWO, scopes=["read"], owner="ann", expires=1)
            with pytest.raises(InvalidArgument, match="32 bytes"):
                await store.add_token(b"short", scopes=["read"], owner="ann")
            with pytest.raises(InvalidArgument):
                await store.add_token(_TWO, scopes=["read"], owner="ann", name="a\nb")
            assert len(await store.tokens()) == 1

    async def test_a_closed_store_knows_none(self) -> None:
        async with self.open() as store:
            pass
        with pytest.raises(StoreClosed):
            await store.find_token(_ONE)
