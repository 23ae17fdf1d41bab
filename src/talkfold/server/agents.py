"""Agents that the application registered, and their runs in this process.

A run lives on when the request that began it is over: whoever wants to see it follows the session's log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

from msgspec import Struct

from ..errors import TalkfoldError
from ..runs import AgentAdapter, Run, RunSettings, SubAgent, Toolbox, WebAgent, retry_run, start_run
from ..store.protocol import SessionStore
from .access import Caller
from .refusals import NoSuchAgent

__all__ = ("Agent", "Agents", "Begin")

_LOG: Final = logging.getLogger("talkfold.server")


class Agent(Struct, frozen=True, kw_only=True):
    """What a run of this agent is made of; see ``talkfold.runs.start_run``.

    ``adapter`` is called once for each run, so that no two runs share what an adapter remembers.
    """

    adapter: Callable[[], AgentAdapter]
    tools: Toolbox | None = None
    agents: Sequence[SubAgent] = ()
    agent: WebAgent | None = None
    settings: RunSettings = RunSettings()


class Begin(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A run of ``agent``: of what the person says now, or a retry of what was said last. ``interrupt``: a run that is
    in progress is stopped first."""

    agent: str
    text: str | None = None
    message_id: str | None = None
    retry: bool = False
    interrupt: bool = False


class Agents:
    """The registered agents by their names, and the runs that go on."""

    def __init__(self, store: SessionStore, agents: Mapping[str, Agent]) -> None:
        self._store = store
        self._agents = dict(agents)
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, session_id: str, owner: str | None, begin: Begin, caller: Caller) -> Run:
        """Begin a run, which goes on by itself. Raises NoSuchAgent, and what ``start_run`` and ``retry_run`` raise."""
        agent = self._agents.get(begin.agent)
        if agent is None:
            raise NoSuchAgent(begin.agent, list(self._agents))
        begun: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        playing = self._play(self._run(session_id, owner, begin, agent, caller), session_id, begun)
        task = asyncio.create_task(playing, name=f"talkfold run in {session_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(begun)

    def _run(
        self, session_id: str, owner: str | None, begin: Begin, agent: Agent, caller: Caller
    ) -> AbstractAsyncContextManager[Run]:
        if begin.retry:
            return retry_run(
                self._store,
                session_id,
                agent.adapter(),
                tools=agent.tools,
                agents=agent.agents,
                agent=agent.agent,
                owner=owner,
                actor=caller.name,
                interrupt=begin.interrupt,
                settings=agent.settings,
            )
        return start_run(
            self._store,
            session_id,
            agent.adapter(),
            text=begin.text or "",
            message_id=begin.message_id,
            tools=agent.tools,
            agents=agent.agents,
            agent=agent.agent,
            owner=owner,
            actor=caller.name,
            interrupt=begin.interrupt,
            settings=agent.settings,
        )

    async def _play(self, run: AbstractAsyncContextManager[Run], session_id: str, begun: asyncio.Future[Run]) -> None:
        try:
            async with run as playing:
                if not begun.done():
                    begun.set_result(playing)
                await playing.wait()
        except asyncio.CancelledError:
            if not begun.done():
                begun.cancel()
            raise
        except Exception as error:
            if not begun.done():
                begun.set_exception(error)
            elif isinstance(error, TalkfoldError):
                _LOG.warning("a run in session %s ended: %s", session_id, error)
            else:
                _LOG.exception("a run in session %s failed", session_id)

    async def close(self) -> None:
        """End every run: each logs ``finish`` with the reason ``aborted``, and gives its session back."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
