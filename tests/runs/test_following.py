"""Following: what a second opener sees of a run that somebody else plays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest
from run_world import Agent, actions, says, whole_log

from talkfold import AgentStreamPart, CursorAhead, Finish, LoggedAction, MessageStart, SessionNotFound, TextDelta
from talkfold.runs import AgentRunRequest, follow, start_run
from talkfold.store import SessionStore, open_store

pytestmark = pytest.mark.anyio


async def words(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
    yield MessageStart("m")
    for number in range(50):
        await anyio.sleep(0.002)
        yield TextDelta("m", f"{number} ")
    yield Finish("stop")


async def all_of(store: SessionStore, session_id: str, after: int = 0) -> list[LoggedAction]:
    async with aclosing(follow(store, session_id, after=after)) as rows:
        return [row async for row in rows]


@pytest.mark.parametrize("after", [0, 1])
async def test_every_action_comes_once_and_following_ends_with_the_run(store: SessionStore, after: int) -> None:
    session = await store.create()
    seen: list[list[LoggedAction]] = []

    async def follower() -> None:
        seen.append(await all_of(store, session.id, after))

    async with anyio.create_task_group() as group, start_run(store, session.id, Agent(words), text="go") as run:
        for _ in range(3):
            group.start_soon(follower)
            await anyio.sleep(0.02)
        await run.wait()
    rows = await whole_log(store, session.id)
    assert seen == [rows[after:]] * 3


async def test_without_a_run_it_ends_where_the_log_ends(store: SessionStore) -> None:
    session = await store.create()
    assert await all_of(store, session.id) == []
    async with start_run(store, session.id, Agent(says), text="go") as run:
        await run.wait()
    assert actions(await all_of(store, session.id)) == actions(await whole_log(store, session.id))
    assert len(await all_of(store, session.id, after=4)) == 1
    with pytest.raises(CursorAhead):
        await all_of(store, session.id, after=6)
    with pytest.raises(SessionNotFound):
        await all_of(store, "nowhere")


class TestSqlite:
    """Its driver needs asyncio."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_a_follower_in_another_store_of_the_same_file(self, tmp_path: Path) -> None:
        async with open_store(tmp_path / "chat.db") as one, open_store(tmp_path / "chat.db") as other:
            session = await one.create()
            seen: list[LoggedAction] = []

            async def follower() -> None:
                seen.extend(await all_of(other, session.id))

            async with anyio.create_task_group() as group, start_run(one, session.id, Agent(words), text="go") as run:
                group.start_soon(follower)
                await run.wait()
            assert seen == await whole_log(one, session.id)
