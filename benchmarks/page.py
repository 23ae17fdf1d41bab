"""The page docs/benchmarks.md: where the numbers come from, the table, and what each row does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .table import Line, markdown

__all__ = ("page",)

HEAD = """# Benchmarks

Made by `make bench`; do not edit. Everything is measured in one run, in turns (A B A B …), and told as the ratio of
medians: ratios carry over to other machines, absolute times do not. ✓ and ✗ say whether the number in *reach* was
reached. *Peers* says how many times as long (or as large) each peer is, talkfold being 1.
"""

NOTES = """## How each row is measured

- **Two kinds of log**, made by `benchmarks/logs.py`, the same on every machine. *Realistic*: 90 % text deltas of 20 to
  40 characters, tool calls with inputs and results, reasoning with a signature, sub-agents, failing tools, stops
  and retries; 134 bytes of JSON an action. *Deltas*: nothing but text deltas of 204 bytes of JSON. The append rows and
  the callers use deltas; folding, loading, the long session and the growth use the realistic log; bytes on disk both.
- **Plain sqlite3** is the same SQLite library in the same process, WAL and `synchronous=FULL`, writing the same rows
  into the same kind of table (`STRICT, WITHOUT ROWID`, a hash of the same length): no thread, no version check, no
  hash to compute, no triggers. It is the floor. "0.75 ×" means three quarters of its speed.
- **Appends** name the number they expect, and are awaited until they are on the disk. *Callers*: each has a session
  of its own; plain sqlite3 writes the same rows in one `executemany`. Peers get a tenth of the callers.
- **Cold** means a new store object on a file that may be in the page cache; opening is not counted. *Warm* means the
  same store object, after one more append.
- **Load and fold** is `store.state` with every snapshot dropped: each row read, decoded and folded from the first one.
  The peers only give back their own items, with nothing folded. google-adk loads a tenth, and its time is scaled.
- **Peers are used as their documentation says** at a durable setting: OpenAI's session stores the action's JSON as an
  item; google-adk one event with that JSON as its text (one at a time: there is no call for several); langgraph
  one checkpoint a step, which holds the whole conversation; eventsourcing one stored event through its recorder, the
  layer below its aggregates, called without a thread. google-adk opens its database in the rollback journal mode, the
  others in WAL, all with `synchronous=FULL`. Only eventsourcing and talkfold check a version.
- **Disk** counts all files after closing: log, hashes, indexes and snapshots. For the peers it is after 500 single
  appends, in relation to the JSON of those 500 actions.
"""


def page(about: Sequence[str], lines: Sequence[Line], missing: Mapping[str, str], quick: bool) -> str:
    """The whole page as Markdown."""
    absent = [f"not measured: {name} ({reason})" for name, reason in missing.items()]
    warning = ["a quick run: small sizes, rough numbers"] if quick else []
    facts = "".join(f"- {line}\n" for line in (*about, *absent, *warning))
    return "\n".join((HEAD, facts, markdown(lines), NOTES))
