"""Sees to it that erasures are finished: at once, later where a reader or a full disk is in the way, or when the store
is opened after a crash."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from ...errors import TalkfoldError
from .writer import Writer

__all__ = ("Scrubber",)

_LOG = logging.getLogger("talkfold.store")
_FIRST_PAUSE = 1.0  # seconds
_LONGEST_PAUSE = 300.0


class Scrubber:
    """Runs one small task while an erasure is left unfinished, and none otherwise."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def scrub(self, what: str) -> None:
        """Finish the erasure of ``what`` now. Where that cannot be, say so, and go on later."""
        try:
            if await self._writer.scrub():
                return
            _LOG.warning("a reader keeps the pages of %s in the WAL until it ends", what)
        except TalkfoldError as error:
            _LOG.warning("traces of %s stay in the file for now: %s", what, error)
        self.go_on(after=_FIRST_PAUSE)

    def go_on(self, *, after: float = 0.0) -> None:
        """Try again from now on, or so many seconds later, until nothing is left."""
        if self._task is None and not self._closing.is_set():
            self._task = asyncio.get_running_loop().create_task(self._work(after))

    async def _work(self, after: float) -> None:
        try:
            for pause in _pauses(after):
                await self._wait(pause)
                last = self._closing.is_set()
                try:
                    if await self._writer.scrub():
                        return
                except TalkfoldError as error:
                    _LOG.debug("an erasure is not finished yet: %s", error)
                if last:
                    return
        finally:
            self._task = None

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until the store closes."""
        if seconds:
            try:
                await asyncio.wait_for(self._closing.wait(), seconds)
            except TimeoutError:
                return

    async def close(self) -> None:
        """Try a last time what is left to do. What cannot be done is noted in the file, and done by the next open."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task])


def _pauses(first: float) -> Iterator[float]:
    """Seconds between tries: each twice as long as the one before."""
    yield first
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE)
