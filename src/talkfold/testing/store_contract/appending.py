"""The contract of an append: what it expects, what it keeps, and that it is whole or not at all."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from ...actions import Part, Send, ToolResult
from ...codec import MAX_ACTION_BYTES, MAX_DEPTH, encode_action
from ...errors import (
    InvalidAction,
    InvalidArgument,
    InvalidJson,
    NotJsonValue,
    SessionNotFound,
    TooDeep,
    TooLarge,
    VersionConflict,
)
from ...log import Entry, Loggable
from ...store.protocol import ABSENT, ANY, EXISTS, Appended, SessionStore
from .opening import UsesStore, bodies, error_of, numbers
from .samples import CONVERSATION, ODD_BODIES

__all__ = ("Appending",)

_HELLO = Send("u", "hello")

_NO_EXPECTATIONS: tuple[Any, ...] = (-1, True, 1.0, "any", None, 2**70)
_NO_LISTS: tuple[Any, ...] = ([], (), b"{}", "text", _HELLO, {"type": "send"}, None)
_SEVEN: Any = 7

_REFUSED: tuple[tuple[Loggable, type[Exception]], ...] = (
    (b"no JSON", InvalidJson),
    (b'{"type":"send","id":"u","text":"cut', InvalidJson),
    (b'{"type":"send","id":"u","text":"\xff"}', InvalidJson),
    (b'{"type":"part","part":{"type":"tool-result","id":"c","output":NaN}}', InvalidJson),
    (b'{"type":"shout"}', InvalidAction),
    (b'{"type":"send","id":"u"}', InvalidAction),
    (b'{"type":"part","part":{"type":"text-delta","messageId":"a","delta":7}}', InvalidAction),
    (b"[]", InvalidAction),
    (Part(ToolResult("c", float("inf"))), NotJsonValue),
    (Part(ToolResult("c", {"a": {1, 2}})), NotJsonValue),
    (Send("u", _SEVEN), InvalidAction),
    (b'{"type":"part","part":{"type":"tool-result","id":"c","output":' + b"[" * 300 + b"]" * 300 + b"}}", TooDeep),
    (b'{"type":"send","id":"u","text":"' + b"x" * MAX_ACTION_BYTES + b'"}', TooLarge),
    (Entry(_HELLO, time=2**70), InvalidArgument),
    (Entry(_HELLO, time=_SEVEN / 2), InvalidArgument),
    (Entry(_HELLO, run=""), InvalidArgument),
    (Entry(_HELLO, actor="a\nb"), InvalidArgument),
    (Entry(_HELLO, meta={"cost": float("nan")}), NotJsonValue),
)
"""What no log takes, and the error that says why."""


class Appending(UsesStore):
    async def test_numbers_count_from_one_without_gaps(self) -> None:
        async with self.open() as store:
            await store.create("s")
            assert await store.append("s", [_HELLO]) == Appended(1, 1)
            assert await store.append("s", CONVERSATION) == Appended(2, 1 + len(CONVERSATION))
            assert await store.append("s", (_HELLO, _HELLO)) == Appended(len(CONVERSATION) + 2, len(CONVERSATION) + 3)
            assert numbers(await store.read("s")) == list(range(1, len(CONVERSATION) + 4))

    async def test_expected_of_a_session_that_is_not_there(self) -> None:
        async with self.open() as store:
            for expected in (EXISTS, 0, 1):
                assert isinstance(await error_of(store.append("s", [_HELLO], expected=expected)), SessionNotFound)
            assert (await store.list()).sessions == ()
            assert await store.append("by-any", [_HELLO], expected=ANY) == Appended(1, 1)
            assert await store.append("by-absent", [_HELLO, _HELLO], expected=ABSENT) == Appended(1, 2)
            made = await store.get("by-absent")
            assert (made.number, made.status, made.title, made.metadata, made.owner) == (
                2,
                "streaming",
                None,
                None,
                None,
            )
            assert (await store.check("by-any")).problems == ()

    async def test_expected_of_a_session_that_is_there(self) -> None:
        async with self.open() as store:
            await store.create("s")
            last = 0
            for expected in (EXISTS, ANY, 2, EXISTS, 4):
                appended = await store.append("s", [_HELLO], expected=expected)
                assert appended == Appended(last + 1, last + 1)
                last = appended.last
            await store.create("empty")
            assert await store.append("empty", [_HELLO], expected=0) == Appended(1, 1)

    async def test_a_conflict_says_where_the_session_is_and_what_the_caller_lacks(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION[:6])
            log = await store.read("s")
            for expected in (0, 3, 5, 7, 1000):
                error = await error_of(store.append("s", [_HELLO], expected=expected))
                assert isinstance(error, VersionConflict)
                assert (error.session_id, error.expected, error.actual) == ("s", expected, 6)
                assert error.missing == log[expected:]
            absent = await error_of(store.append("s", [_HELLO], expected=ABSENT))
            assert isinstance(absent, VersionConflict)
            assert absent.actual == 6
            assert await store.read("s") == log

    async def test_a_conflict_carries_at_most_a_thousand_actions(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [_HELLO] * 1_500)
            error = await error_of(store.append("s", [_HELLO], expected=100))
            assert isinstance(error, VersionConflict)
            assert error.actual == 1_500
            assert error.missing == await store.read("s", after=100, limit=1000)

    async def test_an_empty_session_is_not_absent(self) -> None:
        async with self.open() as store:
            await store.create("s")
            error = await error_of(store.append("s", [_HELLO], expected=ABSENT))
            assert isinstance(error, VersionConflict)
            assert (error.actual, error.missing) == (0, ())

    async def test_what_is_no_expectation_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            for expected in _NO_EXPECTATIONS:
                call = store.append("s", [_HELLO], expected=expected)
                assert isinstance(await error_of(call), InvalidArgument)
            assert (await store.get("s")).number == 0

    async def test_bodies_are_kept_byte_for_byte(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", ODD_BODIES)
            for body in ODD_BODIES:
                await store.append("s", [Entry(body)])
            log = await store.read("s")
            assert bodies(log) == [*ODD_BODIES, *ODD_BODIES]
            assert (await store.get("s")).size == 2 * sum(map(len, ODD_BODIES))
            assert (await store.check("s")).problems == ()

    async def test_typed_actions_come_back_equal(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", CONVERSATION)
            log = await store.read("s")
            assert tuple(row.action for row in log) == CONVERSATION
            assert bodies(log) == [encode_action(action) for action in CONVERSATION]

    async def test_an_action_and_its_json_are_the_same_thing(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append(
                "s", [b for pair in zip(CONVERSATION, map(encode_action, CONVERSATION), strict=True) for b in pair]
            )
            log = await store.read("s")
            assert [row.action for row in log[::2]] == [row.action for row in log[1::2]]
            assert bodies(log[::2]) == bodies(log[1::2])

    async def test_the_envelope_is_kept(self) -> None:
        meta = {"cause": "test", "usage": {"in": 10**20, "share": 0.5}, "text": "\ud83d\0"}
        own = Entry(_HELLO, time=1_234, run="own-run", actor="own-actor", meta={"own": True})
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [_HELLO, own, Entry(_HELLO, meta={})], run="r1", actor="Ann Bø 🎈", meta=meta)
            await store.append("s", [_HELLO, own, Entry(_HELLO, time=0)])
            log = await store.read("s")
            assert [(row.run, row.actor, row.meta) for row in log] == [
                ("r1", "Ann Bø 🎈", meta),
                ("own-run", "own-actor", {"own": True}),
                ("r1", "Ann Bø 🎈", {}),
                (None, None, None),
                ("own-run", "own-actor", {"own": True}),
                (None, None, None),
            ]
            assert [log[index].time for index in (1, 4, 5)] == [1_234, 1_234, 0]
            assert list(log[0].meta or {}) == ["cause", "usage", "text"]

    @pytest.mark.parametrize("place", ["first", "middle", "last"])
    async def test_one_bad_action_refuses_the_whole_append(self, place: str) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [_HELLO])
            before = await store.get("s"), await store.read("s")
            for bad, kind in _REFUSED:
                batch: list[Loggable] = [_HELLO, _HELLO, _HELLO]
                batch[{"first": 0, "middle": 1, "last": 2}[place]] = bad
                for name, expected in (("s", EXISTS), ("s", 1), ("new", ANY), ("new", ABSENT)):
                    error = await error_of(store.append(name, batch, expected=expected, key="k"))
                    assert type(error) is kind, (bad, error)
            assert (await store.get("s"), await store.read("s")) == before
            assert isinstance(await error_of(store.get("new")), SessionNotFound)
            assert await store.append("s", [_HELLO], key="k") == Appended(2, 2)  # the refused ones left no key

    async def test_a_bad_append_does_not_harm_its_neighbours(self) -> None:
        """Stores may commit several callers together: one that is refused is refused alone."""
        async with self.open() as store:
            await store.create("s")
            answers: dict[int, Appended | Exception] = {}

            async def append(caller: int) -> None:
                bad = caller % 3 == 1
                try:
                    answers[caller] = await store.append(
                        "nobody" if bad else "s",
                        [Entry(_HELLO, actor=f"caller {caller}")],
                        meta={"deep": None} if caller % 2 else None,
                    )
                except SessionNotFound as error:
                    answers[caller] = error

            async with anyio.create_task_group() as group:
                for caller in range(60):
                    group.start_soon(append, caller)
            good = {caller: answer for caller, answer in answers.items() if isinstance(answer, Appended)}
            assert sorted(good) == [caller for caller in range(60) if caller % 3 != 1]
            log = await store.read("s")
            assert {row.number: row.actor for row in log} == {
                answer.first: f"caller {caller}" for caller, answer in good.items()
            }
            assert (await store.check("s")).problems == ()

    async def test_what_is_no_list_of_actions_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            for actions in _NO_LISTS:
                call = store.append("s", actions)
                assert isinstance(await error_of(call), InvalidArgument)
            assert (await store.get("s")).number == 0

    async def test_actions_at_the_limit_are_taken(self) -> None:
        levels = MAX_DEPTH - 2  # the action and its part are the first two
        deep = b'{"type":"part","part":{"type":"tool-result","id":"c","output":' + b"[" * levels + b"]" * levels + b"}}"
        head, tail = b'{"type":"send","id":"u","text":"', b'"}'
        large = head + b"x" * (MAX_ACTION_BYTES - len(head) - len(tail)) + tail
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [deep, large])
            assert bodies(await store.read("s")) == [deep, large]
            assert (await store.check("s")).problems == ()

    async def test_many_callers_make_one_gapless_row(self) -> None:
        async with self.open() as store:
            await store.create("s")
            answers: list[tuple[Appended, str]] = []

            async def append(caller: int) -> None:
                for step in range(5):
                    name = f"{caller}.{step}"
                    answers.append((await store.append("s", [_HELLO] * (1 + caller % 3), actor=name), name))

            async with anyio.create_task_group() as group:
                for caller in range(40):
                    group.start_soon(append, caller)
            log = await store.read("s", limit=10_000)
            assert numbers(log) == list(range(1, len(log) + 1))
            told = {number: name for answer, name in answers for number in range(answer.first, answer.last + 1)}
            assert {row.number: row.actor for row in log} == told
            assert (await store.check("s")).problems == ()

    async def test_a_number_is_won_by_exactly_one_caller(self) -> None:
        async with self.open() as store:
            await store.create("s")
            won: list[int] = []

            async def compete() -> None:
                won.extend([await _append_after_folding(store) for _ in range(5)])

            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(compete)
            assert sorted(won) == list(range(1, 51))
            assert numbers(await store.read("s")) == list(range(1, 51))


async def _append_after_folding(store: SessionStore) -> int:
    """Append at the head, catching up from the conflict itself for as long as others are faster."""
    head = 0
    while True:
        try:
            return (await store.append("s", [_HELLO], expected=head)).last
        except VersionConflict as conflict:
            missing, actual = conflict.missing, conflict.actual
        assert numbers(missing) == list(range(head + 1, actual + 1))
        head = actual
