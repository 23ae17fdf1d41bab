"""Where the numbers come from: the machine, its disk, and every version that matters."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import msgspec

from talkfold._version import __version__

from .stores import Store
from .table import duration

__all__ = ("describe",)


def describe(folder: Path, peers: Sequence[Store], load: float) -> list[str]:
    """One sentence fragment a line, ready for the page. ``load``: the load average before the run."""
    versions = dict.fromkeys(peer.version for peer in peers)
    return [
        f"date: {datetime.now(UTC):%Y-%m-%d}",
        f"machine: {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        f"disk: {_file_system(folder)}, one fsync of 4 KiB takes {duration(_sync_time(folder))} (median of 50)",
        f"other work on the machine: load average {load:.1f} before the run",
        f"talkfold {__version__}, Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, "
        f"msgspec {msgspec.__version__}",
        f"peers: {', '.join(versions) or 'none'}",
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _file_system(folder: Path) -> str:
    """The kind of file system that holds the folder, as the kernel names it."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown file system"
    inside = [(len(point), kind) for _, point, kind, *_ in mounts if folder.resolve().is_relative_to(point)]
    return max(inside, default=(0, "unknown file system"))[1]


def _sync_time(folder: Path) -> float:
    """What one durable write costs at least here: without it, the times of single appends say nothing."""
    seconds: list[float] = []
    path = folder / "sync"
    with path.open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(bytes(4096))
            start = perf_counter()
            os.fsync(file.fileno())
            seconds.append(perf_counter() - start)
    path.unlink()
    return median(seconds)
