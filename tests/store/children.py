"""Other processes that use the same database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREAMBLE = """
import asyncio, os, sys, time
from talkfold.actions import *
from talkfold.log import Entry
from talkfold.store import *
path, *args = sys.argv[1:]

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def wait_for_start():
    say("ready")
    sys.stdin.readline()

def run(main):
    asyncio.run(asyncio.wait_for(main, 100))
"""


def start(path: Path, code: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process with warnings as errors, `path`, `args`, `say`, `wait_for_start` and `run` at hand."""
    command = [sys.executable, "-W", "error", "-c", PREAMBLE + code, str(path), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def started(path: Path, code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """One that is certainly gone at the end."""
    process = start(path, code, *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], timeout: float = 60) -> list[list[str]]:
    """What a process said, line by line in words, once it ended well."""
    said, complained = process.communicate(timeout=timeout)
    assert (process.returncode, complained) == (0, "")
    return [line.split() for line in said.splitlines()]


def all_at_once(path: Path, count: int, code: str) -> list[list[list[str]]]:
    """The same code in many processes, each with its index in `args`, let go at the same moment."""
    processes = [start(path, code, index) for index in range(count)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return [ended(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
