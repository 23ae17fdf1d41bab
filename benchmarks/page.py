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
- **Live runs** are played by an agent without a model, each in a process of its own with `synchronous=FULL`, and read
  by their caller while they are logged. The delay is from the agent's `yield` to the row in the hands of a follower in
  another process, at a hundred parts a second, on one clock (`CLOCK_MONOTONIC`); a commit to the disk is in it. The
  many runs make a tool call among every fifty parts.
- **Audit.** Reading decoded is `store.read` of the whole log in pages of a thousand, which findings begins with too;
  check reads the rows and the snapshots its own way. The pure functions get decoded rows. The state at a number is of a
  store that was just opened, at another random number each time; its lines are what `show --at` writes into a pipe.
- **Disk** counts all files after closing: log, hashes, indexes and snapshots. For the peers it is after 500 single
  appends, in relation to the JSON of those 500 actions.
"""


LIMITS = """## What is not reached or only just, and why

From profiles (cProfile, cachegrind, and clocks around the parts) on the machine above; a busy neighbour doubles
every time.

- **From bytes.** Decoding makes four objects an action, and the fold then meets them cold. Reading in pages of a
  thousand actions brings both into the cache; what is left is the fold itself.
- **One append.** The transaction takes as long as plain sqlite3's (clock around it: 1.43 ms and 1.44 ms). The rest
  is the way to the writer's thread and back, two wake-ups of a sleeping processor; the line below it measures just
  that with plain sqlite3.
- **A hundred at once.** A row costs 0.9 µs to check and encode, 1.2 µs for the chain's SHA-256, 1.7 µs for the
  trigger that forbids gaps; plain sqlite3 does none of these.
- **Many callers.** asyncio's own share is in the table. An append's own work (check, encode, version, hash, row) is
  about 15 µs.
- **The payload as JSON** of a state of 100,000 actions is 4.0 MB of text in 2,660 messages: it has to be written, and
  every free value in it looked at (no NaN, no tuple, no foreign type). Without a warm state it is read first.
- **The memory of a long run** is the snapshot's: to take one, the state so far is read and folded on. Up to 32 MB of
  log the state is kept for the next one; of a longer log it is let go and read again.
- **Bytes on disk.** Rows are 1.31 × the JSON (1.20 × when SQLite packs its pages in a VACUUM), snapshots 0.31 ×.
  Compressed snapshots would bring 1.4 × in all, and cost 8 ms more for every long state that is read cold.
"""


def page(about: Sequence[str], lines: Sequence[Line], missing: Mapping[str, str], quick: bool) -> str:
    """The whole page as Markdown."""
    absent = [f"not measured: {name} ({reason})" for name, reason in missing.items()]
    warning = ["a quick run: small sizes, rough numbers"] if quick else []
    facts = "".join(f"- {line}\n" for line in (*about, *absent, *warning))
    return "\n".join((HEAD, facts, markdown(lines), LIMITS, NOTES))
