"""The contract of idempotency keys: after an unknown outcome, the same call again is safe."""

from __future__ import annotations

import anyio

from ...actions import Send
from ...codec import encode_action
from ...errors import KeyReused, VersionConflict
from ...store.protocol import ABSENT, ANY, EXISTS, Appended
from .opening import UsesStore, error_of, numbers

__all__ = ("Keys",)

_ONE, _TWO = Send("u1", "one"), Send("u2", "two")


class Keys(UsesStore):
    async def test_a_repeated_key_gives_the_first_answer_and_writes_nothing(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [_ONE])
            assert await store.append("s", [_ONE, _TWO], key="k", expected=1) == Appended(2, 3)
            after = await store.get("s")
            for expected in (1, 0, 3, 99, ANY, EXISTS, ABSENT):  # the key is looked at first
                again = await store.append("s", [_ONE, _TWO], key="k", expected=expected)
                assert again == Appended(2, 3, repeated=True)
            assert await store.get("s") == after
            await store.append("s", [_TWO])
            assert await store.append("s", [_ONE, _TWO], key="k", expected=1) == Appended(2, 3, repeated=True)
            assert (await store.check("s")).problems == ()

    async def test_a_key_with_other_actions_is_refused(self) -> None:
        async with self.open() as store:
            await store.create("s")
            await store.append("s", [_ONE, _TWO], key="k")
            before = await store.get("s")
            for actions in ([_ONE], [_TWO, _ONE], [_ONE, _TWO, _TWO], [_TWO], [Send("u1", "onetwo")]):
                error = await error_of(store.append("s", actions, key="k", expected=ANY))
                assert isinstance(error, KeyReused)
                assert (error.session_id, error.key) == ("s", "k")
            assert await store.get("s") == before

    async def test_a_key_means_the_actions_not_their_python_form(self) -> None:
        async with self.open() as store:
            await store.create("s")
            first = await store.append("s", [_ONE, _TWO], key="k")
            again = await store.append("s", [encode_action(_ONE), encode_action(_TWO)], key="k")
            assert again == Appended(first.first, first.last, repeated=True)

    async def test_keys_belong_to_their_session(self) -> None:
        async with self.open() as store:
            assert await store.append("a", [_ONE], key="k", expected=ABSENT) == Appended(1, 1)
            assert await store.append("b", [_TWO], key="k", expected=ABSENT) == Appended(1, 1)
            assert await store.append("a", [_ONE], key="k", expected=ABSENT) == Appended(1, 1, repeated=True)
            assert isinstance(await error_of(store.append("b", [_ONE], key="k")), KeyReused)

    async def test_a_refused_append_does_not_use_its_key_up(self) -> None:
        async with self.open() as store:
            await store.create("s")
            assert isinstance(await error_of(store.append("s", [_ONE], key="k", expected=7)), VersionConflict)
            assert await store.append("s", [_TWO], key="k", expected=0) == Appended(1, 1)

    async def test_many_keys_in_any_order(self) -> None:
        async with self.open() as store:
            await store.create("s")
            first = {key: await store.append("s", [Send("u", key)], key=key) for key in "abcdef"}
            for key in "fabedc":
                again = await store.append("s", [Send("u", key)], key=key)
                assert again == Appended(first[key].first, first[key].last, repeated=True)
            assert (await store.get("s")).number == 6

    async def test_the_same_key_at_the_same_time_writes_once(self) -> None:
        async with self.open() as store:
            await store.create("s")
            answers: list[Appended] = []
            refused: list[KeyReused] = []

            async def append(text: str) -> None:
                try:
                    answers.append(await store.append("s", [Send("u", text)] * 2, key="k"))
                except KeyReused as error:
                    refused.append(error)

            async with anyio.create_task_group() as group:
                for caller in range(20):
                    group.start_soon(append, "same" if caller % 4 else "other")
            assert (await store.get("s")).number == 2
            assert [answer.repeated for answer in answers].count(False) == 1
            assert {(answer.first, answer.last) for answer in answers} == {(1, 2)}
            assert len(answers) + len(refused) == 20
            assert len(refused) in (5, 15)

    async def test_a_lost_answer_can_be_asked_for_again(self) -> None:
        """A caller that was cancelled does not know; with its key it finds out, and nothing is there twice."""
        async with self.open() as store:
            await store.create("s")
            for attempt in range(30):
                key, action = f"k{attempt}", Send("u", f"text {attempt}")
                with anyio.move_on_after(0.0002 * (attempt % 6)):
                    await store.append("s", [action], key=key)
                await store.append("s", [action], key=key)
                log = await store.read("s")
                assert [row.action for row in log].count(action) == 1
                assert numbers(log) == list(range(1, attempt + 2))
            assert (await store.check("s")).problems == ()
