"""How much one caller may ask for, and how often."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from math import inf

from msgspec import Struct

from ..errors import InvalidArgument
from .refusals import TooManyRequests, TooManyStreams

__all__ = ("Limits", "Rates", "Streams")


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of a server. Sizes are bytes, times seconds.

    - ``body_bytes``, ``body_seconds``: the largest body, and how long it may take to arrive.
    - ``import_bytes``: the same for a file of sessions.
    - ``batch_actions``: the most actions in one append; ``page_actions``: in one page.
    - ``streams``: open streams of everybody; ``streams_each``: of one caller.
    - ``stream_seconds``: how long a reader may keep a stream from taking what is sent, before it is cut.
    - ``requests_per_second``, ``burst``: of one caller; the burst may come at once.

    Raises InvalidArgument for one that is not more than 0.
    """

    body_bytes: int = 16 * 2**20
    body_seconds: float = 30.0
    import_bytes: int = 256 * 2**20
    batch_actions: int = 10_000
    page_actions: int = 10_000
    streams: int = 10_000
    streams_each: int = 1_000
    stream_seconds: float = 20.0
    ping_seconds: float = 15.0
    requests_per_second: float = 1_000.0
    burst: int = 2_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
                raise InvalidArgument(name, f"{value!r} is no limit: a number above 0 is needed")


class Rates:
    """Requests of each caller: a bucket each, that fills by ``per_second`` up to ``burst``."""

    _MOST_CALLERS = 10_000

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, caller: Hashable) -> None:
        """Count one request. Raises TooManyRequests, which says when to come again."""
        now = self._clock()
        left, since = self._buckets.get(caller, (float(self._burst), now))
        left = min(self._burst, left + (now - since) * self._per_second)
        if left < 1:
            self._buckets[caller] = left, now
            raise TooManyRequests((1 - left) / self._per_second)
        self._buckets[caller] = left - 1, now
        self._buckets.move_to_end(caller)
        if len(self._buckets) > self._MOST_CALLERS:
            self._buckets.popitem(last=False)


class Streams:
    """The streams that are open: how many in all, and of each caller."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._each: dict[Hashable, int] = {}
        self.open: int = 0

    def _refuse_too_many(self, caller: Hashable) -> None:
        """Raises TooManyStreams when there is no room for one more of this caller."""
        if self.open >= self._most:
            raise TooManyStreams(self._most)
        if self._each.get(caller, 0) >= self._most_each:
            raise TooManyStreams(self._most_each)

    @contextmanager
    def one(self, caller: Hashable) -> Generator[None]:
        """Count a stream while it is open. Raises TooManyStreams."""
        self._refuse_too_many(caller)
        self.open += 1
        self._each[caller] = self._each.get(caller, 0) + 1
        try:
            yield
        finally:
            self.open -= 1
            if self._each[caller] == 1:
                del self._each[caller]
            else:
                self._each[caller] -= 1
