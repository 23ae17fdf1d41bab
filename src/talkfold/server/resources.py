"""What all requests of one server share: the store, the agents, the limits, and what is open."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping

from starlette.requests import Request

from ..store.protocol import SessionStore
from .access import Authenticate, Caller
from .agents import Agent, Agents
from .feeds import Feeds
from .limits import Limits, Rates, Streams

__all__ = ("Resources",)


class Resources:
    """One server's world."""

    def __init__(
        self, store: SessionStore, *, authenticate: Authenticate, limits: Limits, agents: Mapping[str, Agent]
    ) -> None:
        self.store: SessionStore = store
        self.limits: Limits = limits
        self.rates: Rates = Rates(limits.requests_per_second, limits.burst, time.monotonic)
        self.streams: Streams = Streams(limits.streams, limits.streams_each)
        self.agents: Agents = Agents(store, agents)
        self.feeds: Feeds = Feeds(store)
        self._authenticate = authenticate

    async def caller(self, request: Request) -> Caller:
        """Who asks. Raises NotAuthenticated."""
        found = self._authenticate(request)
        return await found if inspect.isawaitable(found) else found

    async def close(self) -> None:
        """The process ends: send the readers home, and end the runs."""
        self.feeds.close()
        await self.agents.close()
