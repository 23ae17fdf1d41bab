"""The contract of noted digests: what was noted proves later that the log is still the same."""

from __future__ import annotations

from typing import Any

import pytest

from ...actions import Send
from ...errors import InvalidArgument
from ...log import chain_start
from .opening import UsesStore
from .samples import CONVERSATION

__all__ = ("Proving",)


class Proving(UsesStore):
    async def test_a_noted_digest_says_up_to_where_the_log_is_the_same(self) -> None:
        async with self.open() as store:
            await store.create("s")
            noted = [(0, (await store.check("s")).digest)]
            for start in range(0, len(CONVERSATION), 5):
                await store.append("s", CONVERSATION[start : start + 5])
                report = await store.check("s")
                noted.append((report.number, report.digest))
            await store.append("s", [Send("u", "later")])
            for number, digest in noted:
                report = await store.check("s", since=digest)
                assert (report.since, report.problems) == (number, ())
            assert (await store.check("s")).since is None

    async def test_the_digest_of_a_row_is_what_a_check_gives(self) -> None:
        async with self.open() as store:
            await store.create("s", actions=CONVERSATION)
            assert (await store.get("s")).digest == (await store.check("s")).digest

    async def test_a_digest_of_another_log_is_a_problem(self) -> None:
        async with self.open() as store:
            for name in ("s", "t"):
                await store.create(name, actions=CONVERSATION)
            for other in ((await store.check("t")).digest, chain_start("t"), bytes(32)):
                report = await store.check("s", since=other)
                assert report.since is None
                assert [problem.code for problem in report.problems] == ["since"]
                assert report.digest == (await store.get("s")).digest

    async def test_what_is_no_digest_is_refused(self) -> None:
        bad: tuple[Any, ...] = (b"", bytes(31), "00" * 32, 7)
        async with self.open() as store:
            await store.create("s")
            for digest in bad:
                with pytest.raises(InvalidArgument, match="since"):
                    await store.check("s", since=digest)
