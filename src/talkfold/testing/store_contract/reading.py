"""The contract of reading: ranges of the log, states at every number, opening for running, and the check."""

from __future__ import annotations

from typing import Any

import anyio

from ...actions import Finish, MessageStart, Part, Send, Stop, ToolCall
from ...codec import encode_json
from ...errors import CursorAhead, InvalidArgument
from ...fold import fold
from ...log import Entry, chain_link, chain_start
from ...model import EMPTY_SESSION, TextPart
from ...reducer import session_reducer
from ...store.protocol import OpenedSession, StateAt
from .opening import UsesStore, bodies, error_of, numbers
from .samples import CONVERSATION, ODD_BODIES, has_open_calls

__all__ = ("Reading",)

_LENGTH = len(CONVERSATION)
_NO_NUMBERS: tuple[Any, ...] = (-1, True, 1.0, "1", 2**70)
_NO_LIMITS: tuple[Any, ...] = (0, -1, 10_001, True, None, 1.5)


class Reading(UsesStore):
    async def test_any_range_of_the_log(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION)
            whole = await store.read("s")
            assert numbers(whole) == list(range(1, _LENGTH + 1))
            for after in (0, 1, 7, _LENGTH - 1, _LENGTH):
                for limit in (1, 2, 7, _LENGTH, 10_000):
                    assert await store.read("s", after=after, limit=limit) == whole[after : after + limit]

    async def test_a_read_is_of_a_thousand_unless_told(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [Send("u", "x")] * 2_300)
            assert numbers(await store.read("s")) == list(range(1, 1_001))
            assert numbers(await store.read("s", after=2_000)) == list(range(2_001, 2_301))
            assert len(await store.read("s", limit=10_000)) == 2_300

    async def test_beyond_the_end_is_an_error_not_an_empty_answer(self) -> None:
        async with self.open() as store:
            await store.create("s")
            for end in (0, 3):
                for call in (
                    store.read("s", after=end + 1),
                    store.state("s", at=end + 1),
                    store.fork("s", at=end + 1),
                    store.read("s", after=2**62),
                ):
                    error = await error_of(call)
                    assert isinstance(error, CursorAhead)
                    assert (error.session_id, error.head) == ("s", end)
                    assert error.number > end
                await store.append("s", CONVERSATION[:3])
            assert len((await store.list()).sessions) == 1

    async def test_what_is_no_number_or_limit_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:3])
            for bad in _NO_NUMBERS:
                for call in (
                    store.read("s", after=bad),
                    store.state("s", at=bad),
                    store.fork("s", at=bad),
                ):
                    assert isinstance(await error_of(call), InvalidArgument), bad
            for bad in _NO_LIMITS:
                call = store.read("s", limit=bad)
                assert isinstance(await error_of(call), InvalidArgument), bad

    async def test_the_state_at_every_number_is_the_fold_of_that_prefix(self) -> None:
        async with self.open() as store:
            await store.create("s")
            assert await store.state("s") == StateAt(0, EMPTY_SESSION)
            stepped = [EMPTY_SESSION]
            for number, action in enumerate(CONVERSATION, start=1):
                await store.append("s", [action])
                stepped.append(session_reducer(stepped[-1], action))
                assert await store.state("s") == StateAt(number, stepped[number])
                assert (await store.get("s")).status == stepped[number].status
            for at in (*range(_LENGTH, -1, -1), *range(_LENGTH + 1)):  # backwards first: no order of asking may matter
                assert await store.state("s", at=at) == StateAt(at, stepped[at])

    async def test_halves_of_a_pair_join_in_the_state(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [Part(MessageStart("a"))])
            await store.append("s", [rb'{"type":"part","part":{"type":"text-delta","messageId":"a","delta":"\ud83d"}}'])
            half = (await store.state("s")).state
            await store.append("s", [rb'{"type":"part","part":{"type":"text-delta","messageId":"a","delta":"\ude00"}}'])
            whole = (await store.state("s")).state
            assert half.messages[0].parts == (TextPart("\ud83d"),)
            assert whole.messages[0].parts == (TextPart("😀"),)
            assert (await store.state("s", at=2)).state == half

    async def test_reading_changes_nothing(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:6])  # streaming, with an open call
            before = await store.get("s"), await store.read("s")
            await store.state("s")
            await store.state("s", at=3)
            await store.check("s")
            await store.list()
            assert (await store.get("s"), await store.read("s")) == before

    async def test_opening_settles_exactly_what_was_left_open(self) -> None:
        async with self.open() as store:
            state = EMPTY_SESSION
            for end in range(_LENGTH + 1):
                name = f"s{end}"
                await store.create(name)
                if end:
                    await store.append(name, CONVERSATION[:end])
                    state = session_reducer(state, CONVERSATION[end - 1])
                left_open = state.status == "streaming" or has_open_calls(state)
                opened = await store.open_session(name, cause="test")
                assert opened.settled is left_open, end
                assert opened.session == await store.get(name)
                assert opened.session.number == end + left_open
                assert opened.state == (session_reducer(state, Stop()) if left_open else state)
                assert opened.state.status != "streaming"
                assert not has_open_calls(opened.state)
                if left_open:
                    (stop,) = await store.read(name, after=end)
                    assert (stop.action, stop.meta) == (Stop(), {"cause": "test"})
                assert await store.open_session(name) == OpenedSession(opened.session, opened.state, settled=False)
                assert (await store.check(name)).problems == ()

    async def test_idle_with_an_open_call_is_left_open_too(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append(
                "s", [Send("u", "x"), Part(MessageStart("a")), Part(ToolCall("a", "c", "t", {})), Part(Finish("stop"))]
            )
            assert (await store.get("s")).status == "idle"
            opened = await store.open_session("s")
            assert opened.settled
            assert not has_open_calls(opened.state)
            assert (await store.read("s", after=4))[0].meta == {"cause": "reload"}

    async def test_opened_together_settled_once(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:6])
            opened: list[OpenedSession] = []

            async def open_it() -> None:
                opened.append(await store.open_session("s"))

            async with anyio.create_task_group() as group:
                for _ in range(8):
                    group.start_soon(open_it)
            assert [one.settled for one in opened].count(True) == 1
            assert (await store.get("s")).number == 7
            assert all(one.session.number == 7 and not has_open_calls(one.state) for one in opened)

    async def test_the_check_walks_the_chain(self) -> None:
        async with self.open() as store:
            await store.create("s")
            report = await store.check("s")
            assert (report.session_id, report.number, report.digest) == ("s", 0, chain_start("s"))
            assert report.problems == ()
            await store.append("s", [*CONVERSATION, *ODD_BODIES], run="r", actor="a", meta={"m": 1})
            report = await store.check("s")
            session = await store.get("s")
            assert (report.number, report.digest) == (session.number, session.digest)
            assert report.problems == ()

    async def test_anybody_can_prove_the_chain_from_what_is_read(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:7], run="r", actor="Ann Bø", meta={"m": [1.0, 10**30, "\ud83d"]})
            await store.append("s", ODD_BODIES)
            await store.append("s", [Entry(ODD_BODIES[0], time=0, meta={})])
            link = chain_start("s")
            for row in await store.read("s"):
                meta = None if row.meta is None else encode_json(row.meta)
                link = chain_link(link, row.number, row.time, row.run, row.actor, meta, row.body)
                assert row.hash in (link, None)
                assert row.hash or row.number not in (7, 7 + len(ODD_BODIES), 8 + len(ODD_BODIES))
            assert link == (await store.get("s")).digest

    async def test_every_append_moves_the_digest(self) -> None:
        async with self.open() as store:
            digests: list[bytes] = []
            for name in ("s", "t"):
                digests.append((await store.create(name)).digest)
                for _ in range(3):
                    await store.append(name, [Send("u", "the same")])
                    digests.append((await store.get(name)).digest)
            assert len(set(digests)) == 8
            assert {len(digest) for digest in digests} == {32}

    async def test_the_check_is_good_while_others_write(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [*ODD_BODIES, *CONVERSATION] * 20)
            writing = True

            async def write() -> None:
                while writing:
                    await store.append("s", CONVERSATION[:6])

            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(write)
                for _ in range(30):
                    assert (await store.check("s")).problems == ()
                writing = False

    async def test_a_log_of_everything_folds_like_its_bodies(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [*ODD_BODIES, *CONVERSATION[:20], *ODD_BODIES])
            log = await store.read("s")
            assert (await store.state("s")).state == fold([row.action for row in log])
            assert bodies(log)[-len(ODD_BODIES) :] == list(ODD_BODIES)
