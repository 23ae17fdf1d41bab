"""The test's side of ``crash_child``: it tells the program what to do, and waits for what its children tell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Any

__all__ = ("Crew", "crew")

Told = dict[str, Any]


class Crew:
    """A program that forks children. Sync: what is tested lives in other processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._told: list[Told] = []
        self._news = Condition()
        self._children: set[int] = set()
        Thread(target=self._listen, daemon=True).start()
        self._until(lambda: [told for told in self._told if told["event"] == "ready"], 30)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._told.append({**json.loads(line), "heard": time.monotonic()})
                self._news.notify_all()

    def _until(self, found: Callable[[], list[Told]], seconds: float) -> Told:
        with self._news:
            there = self._news.wait_for(found, seconds)
            assert there, f"after {seconds} s nothing but {self._told[-8:]}"
            return found()[0]

    def do(self, what: str, session: str, **more: object) -> int:
        """Start a child; its process id."""
        with self._news:
            before = len(self._told)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, "session": session, **more}) + "\n")
        self._process.stdin.flush()
        forked = self._until(lambda: [told for told in self._told[before:] if told["event"] == "forked"], 10)
        self._children.add(forked["child"])
        return int(forked["child"])

    def at_once(self, count: int, what: str, session: str, **more: object) -> list[int]:
        """Start several children that begin at the same moment."""
        moment = time.time() + 0.01 + 0.003 * count
        return [self.do(what, session, at=moment, **more) for _ in range(count)]

    def hears(self, pid: int, event: str, seconds: float = 20, **more: object) -> Told:
        """Wait until a child tells this."""

        def found() -> list[Told]:
            return [told for told in self.told(pid, event) if all(told.get(key) == more[key] for key in more)]

        return self._until(found, seconds)

    def told(self, pid: int, event: str) -> list[Told]:
        """What a child has told of this kind so far."""
        return [told for told in self._told if told["pid"] == pid and told["event"] == event]

    def asks(self, what: str, event: str, session: str, **more: object) -> Told:
        """Start a child and wait for its answer."""
        return self.hears(self.do(what, session, **more), event)

    def gone(self, pid: int, seconds: float = 10) -> None:
        """Wait until a child is no more."""
        until = time.monotonic() + seconds
        while _lives(pid):
            assert time.monotonic() < until, f"process {pid} still lives"
            time.sleep(0.002)

    def kill(self, pid: int) -> None:
        """End a child for good, if it has not ended by itself."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.gone(pid)

    def close(self) -> None:
        """End everything, frozen children too."""
        for pid in self._children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def crew(path: Path, lines: Path) -> Iterator[Crew]:
    """A crew that is certainly gone at the end."""
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("crash_child.py")), str(path), str(lines)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    made = Crew(process)
    try:
        yield made
    finally:
        made.close()
