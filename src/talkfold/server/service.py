"""What all requests of one server share: the store, the agents, the limits, and what is open."""

from __future__ import annotations

import inspect
import time

import anyio
from starlette.requests import Request

from ..store.protocol import SessionStore
from .access import Authenticate, Caller
from .limits import Limits, Rates, Streams

__all__ = ("Service",)


class Service:
    """One server's world. ``closing`` is set when readers must go: the process was told to end."""

    def __init__(self, store: SessionStore, *, authenticate: Authenticate, limits: Limits) -> None:
        self.store: SessionStore = store
        self.limits: Limits = limits
        self.rates: Rates = Rates(limits.requests_per_second, limits.burst, time.monotonic)
        self.streams: Streams = Streams(limits.streams, limits.streams_each)
        self.closing: anyio.Event = anyio.Event()
        self._authenticate = authenticate

    async def caller(self, request: Request) -> Caller:
        """Who asks. Raises NotAuthenticated."""
        found = self._authenticate(request)
        return await found if inspect.isawaitable(found) else found
