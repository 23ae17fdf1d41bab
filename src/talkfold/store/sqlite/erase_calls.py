"""The calls of the SQLite store that remove sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from ..arguments import check_name, check_owner, check_retention
from ..protocol import Tombstone
from ..retention import Expired, Retention
from . import erasing, retaining
from .calls import check_target
from .lease_calls import LeaseCalls
from .retaining import Due
from .thread import to_the_end

__all__ = ("EraseCalls",)


class EraseCalls(LeaseCalls):
    """Implements ``erase``, ``erase_owner`` and ``retain``, whose docstrings are the contract."""

    async def erase(self, session_id: str, *, owner: str | None = None, by: str | None = None) -> Tombstone:
        check_target(session_id, owner)
        check_name("by", by)

        async def erase_all() -> Tombstone:
            key, tombstone = await self._write(partial(erasing.erase, session_id=session_id, owner=owner, by=by))
            self._gone([key])
            await self._scrubber.scrub(f"erased session {session_id}")
            return tombstone

        return await to_the_end(erase_all())

    async def erase_owner(self, owner: str, *, by: str | None = None) -> tuple[Tombstone, ...]:
        check_owner(owner)
        check_name("by", by)

        async def erase_all() -> tuple[Tombstone, ...]:
            erased = await self._write(partial(erasing.erase_owner, owner=owner, by=by))
            if erased:
                self._gone(erased)
                await self._scrubber.scrub(f"the erased sessions of {owner}")
            return tuple(erased.values())

        return await to_the_end(erase_all())

    async def retain(self, rule: Retention, *, by: str | None = None, dry_run: bool = True) -> tuple[Expired, ...]:
        check_retention(rule)
        check_name("by", by)
        due = await self._due(rule)
        if dry_run:
            return tuple(each.session for each in due)
        erased: list[Expired] = []

        async def erase_batch(keys: Sequence[int]) -> None:
            gone = await self._write(partial(retaining.erase_due, rule=rule, keys=keys, by=by))
            self._gone(each.key for each in gone)
            erased.extend(each.session for each in gone)

        try:
            for keys in retaining.batches(due):
                await to_the_end(erase_batch(keys))
        finally:  # cancelled, too: what is erased is erased
            if erased:
                await to_the_end(self._scrubber.scrub(f"{len(erased)} erased sessions"))
        return tuple(erased)

    async def _due(self, rule: Retention) -> list[Due]:
        found: list[Due] = []
        after = -1
        while after:
            page, after = await self._read(
                partial(retaining.due_page, rule=rule, moment=self._moment(), after=max(after, 0))
            )
            found += page
        return found

    def _gone(self, keys: Iterable[int]) -> None:
        """Forget what is kept in memory of erased sessions, and tell those who follow them."""
        for key in keys:
            self._warm.drop(key)
            self._snapshotter.forget(key)
            self._indexer.forget(key)
            self._followers.moved(key, -1)
