"""``python -m benchmarks [ROW …] [--quick] [--no-peers] [--write]``: measure, print the table, write the page."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from .appending import append_hundred, append_one, many_callers
from .auditing import audit_functions, audit_store, state_diff
from .bench import Bench
from .folding import fold_bytes, fold_decoded, fold_growth
from .growing import growth
from .loading import load_ten_thousand, long_session
from .page import page
from .peers import load_peers
from .running import live_runs
from .searching import searches
from .stores import Store
from .surroundings import describe
from .table import Line, markdown

Row = Callable[[Bench], Awaitable[list[Line]]]

CORE: dict[str, Row] = {
    "fold": fold_decoded,
    "fold-bytes": fold_bytes,
    "fold-growth": fold_growth,
    "audit": audit_functions,
    "diff": state_diff,
}
"""Rows without a store. They run first, before the peers fill the memory with their modules."""

STORED: dict[str, Row] = {
    "append-one": append_one,
    "append-100": append_hundred,
    "callers": many_callers,
    "load": load_ten_thousand,
    "long-session": long_session,
    "growth": growth,
    "audit-store": audit_store,
    "runs": live_runs,
    "search": searches,
}

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    rows: list[str]
    quick: bool
    peers: bool
    write: bool
    folder: Path | None


def main() -> None:
    options = _options(sys.argv[1:])
    lines, about, missing = asyncio.run(_run(options))
    text = page(about, lines, missing, options.quick)
    print(markdown(lines) if options.rows else text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


def _options(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="The speed of talkfold, in ratios.")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of {', '.join((*CORE, *STORED))}; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: seconds, rough numbers")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="only talkfold and plain sqlite3")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--folder", type=Path, help="where the databases lie: it is this disk that is measured")
    found = parser.parse_args(arguments)
    if unknown := set(found.rows) - {*CORE, *STORED}:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    if found.write and found.rows:
        parser.error("--write needs all rows: leave the names away")
    return Options(found.rows, found.quick, found.peers, found.write, found.folder)


async def _run(options: Options) -> tuple[list[Line], list[str], dict[str, str]]:
    stores: list[Store] = []
    missing: dict[str, str] = {}
    lines: list[Line] = []
    load = os.getloadavg()[0]
    with TemporaryDirectory(dir=options.folder, prefix="talkfold-bench-") as folder:
        bench = Bench(Path(folder), stores, options.quick)
        for name, row in CORE.items():
            lines += await _measured(name, row, bench, options)
        if options.peers:
            found, missing = load_peers()
            stores += found
        for name, row in STORED.items():
            lines += await _measured(name, row, bench, options)
        return lines, describe(bench.folder, stores, load), missing


async def _measured(name: str, row: Row, bench: Bench, options: Options) -> list[Line]:
    if options.rows and name not in options.rows:
        return []
    # What is loaded so far, the peers' modules above all, must not make every later collection slower.
    gc.collect()
    gc.freeze()
    start = perf_counter()
    lines = await row(bench)
    print(f"{name}: {perf_counter() - start:.0f} s", file=sys.stderr)
    return lines


if __name__ == "__main__":
    main()
