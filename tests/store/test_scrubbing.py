"""Not one byte of what was erased: from every place that holds a text, in every file, whatever else happens."""

from __future__ import annotations

import logging
import signal
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from children import ended, start, started
from raw_database import raw

from talkfold.actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    RunError,
    Send,
    SessionAction,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from talkfold.log import Entry
from talkfold.store import Hold, Retention, SessionStore, Waiting, open_store
from talkfold.store.sqlite import scrubber, snapshotter
from talkfold.store.sqlite.doctor import diagnose

PLACES = (
    "text",
    "delta",
    "reasoning",
    "signature",
    "tool",
    "call",
    "inputkey",
    "input",
    "output",
    "failure",
    "prompt",
    "runerror",
    "unknown",
    "title",
    "oldtitle",
    "metakey",
    "metadata",
    "metaname",
    "meta",
    "run",
    "actor",
    "idempotency",
    "leaserun",
    "leasetool",
    "leaseprompt",
    "forkedfrom",
)
"""Every place of a session that can hold what somebody said or is called: all but its id, owner and eraser."""


def marker(place: str) -> str:
    """A word that stands nowhere else, and that the search index keeps as one word."""
    return f"zq{place}7f3a9"


MARKERS = {place: marker(place).encode() for place in PLACES}


def told(place: str) -> list[SessionAction]:
    """A turn with a marker in every text."""
    m = marker
    return [
        Send("u", f"Say {m('text')} {place}"),
        Part(MessageStart("a")),
        Part(Reasoning("a", f"I think {m('reasoning')}", {"vendor": {"signature": m("signature")}})),
        *(Part(TextDelta("a", f"{m('delta')} ")) for _ in range(60)),
        Part(ToolCall("a", m("call"), m("tool"), {m("inputkey"): [m("input"), {"deep": m("input")}]})),
        ToolPhase(m("tool"), "awaiting-confirmation", m("prompt")),
        Part(ToolResult(m("call"), {"content": [{"type": "text", "text": m("output")}]})),
        Part(ToolCall("a", "c2", m("tool"), {})),
        Part(ToolError("c2", m("failure"))),
        Part(RunError(m("runerror"), "rate_limited")),
    ]


async def write(store: SessionStore, name: str, owner: str | None = None) -> None:
    """A session with every marker in it, and with a run that waits."""
    await store.create(marker("forkedfrom"), owner=owner)
    await store.fork(marker("forkedfrom"), new_id=name, owner=owner, title=marker("oldtitle"))
    await store.update(name, owner=owner, title=marker("title"), metadata={marker("metakey"): [marker("metadata")]})
    for step in range(12):
        rows = [
            Entry(action, run=marker("run"), actor=marker("actor"), meta={marker("metaname"): marker("meta")})
            for action in told(f"{step}")
        ]
        await store.append(name, rows, key=f"{marker('idempotency')} {step}", owner=owner)
    await store.append(
        name, [f'{{"type":"send","id":"u","text":"x","more":"{marker("unknown")}"}}'.encode()], owner=owner
    )
    await store.append(name, [Part(MessageStart("b")), Part(Finish("stop"))], owner=owner)
    hold = Hold(marker("leaserun"), 600)
    number = (await store.start(name, Send("u", "go"), hold=hold, owner=owner)).number
    waiting = Waiting(number, "c", marker("leasetool"), "approval", marker("leaseprompt"))
    await store.park(name, [], hold=hold, waiting=waiting, owner=owner)


def traces(path: Path) -> dict[str, set[str]]:
    """Which markers stand in which file of the database."""
    found: dict[str, set[str]] = {}
    for file in path.parent.glob(f"{path.name}*"):
        data = file.read_bytes().lower()
        found[file.name.removeprefix(path.name)] = {place for place, text in MARKERS.items() if text in data}
    return {name: places for name, places in found.items() if places}


def left(path: Path) -> set[str]:
    """The markers that are still somewhere; but the id of the session that the erased one was copied from stays."""
    return set.union(set(), *traces(path).values()) - {"forkedfrom"}


@pytest.fixture(autouse=True)
def small_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshotter, "SNAPSHOT_BYTES", 3_000)


async def indexed(store: SessionStore) -> None:
    """Let snapshots and the search index take in what was written."""
    assert (await store.search(marker("text"))).hits
    await anyio.sleep(0.05)


def snapshots(path: Path) -> int:
    with raw(path) as connection:
        return int(connection.execute("SELECT count(*) FROM snapshot").fetchone()[0])


async def test_every_marker_is_written_and_none_is_left(path: Path) -> None:
    async with open_store(path) as store:
        await write(store, "s")
        for number in range(20):
            await store.create(f"k{number}", actions=[Send("u", "kept " * 200)])
        await indexed(store)
        assert snapshots(path) > 0
        assert set.union(*traces(path).values()) == set(PLACES)
        await store.erase("s", by="the clerk")
        assert left(path) == set()
        assert (await store.search("kept", limit=1)).hits
        assert (await store.search(marker("text"))).hits == ()
        for number in range(20):
            assert (await store.check(f"k{number}")).problems == ()
    assert left(path) == set()
    with raw(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("how", ["owner", "retention"])
async def test_the_same_when_many_go_at_once(path: Path, how: str) -> None:
    async with open_store(path) as store:
        await write(store, "s", owner="ann")
        await store.create("kept", actions=[Send("u", "kept")])
        await indexed(store)
        if how == "owner":
            assert len(await store.erase_owner("ann")) == 2
        else:
            await store.release("s", hold=Hold(marker("leaserun"), 600), owner="ann")
            assert len(await store.retain(Retention(timedelta(0), "ann"), dry_run=False)) == 2
        assert left(path) == set()
    assert left(path) == set()


async def test_the_same_while_another_process_has_the_file_open(path: Path) -> None:
    code = """
async def main():
    async with open_store(path) as store:
        await store.state("s"); await store.search("zqtext7f3a9")
        say("open")
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        try:
            await store.get("s")
        except Exception as error:
            say(type(error).__name__)
run(main())
"""
    async with open_store(path) as store:
        await write(store, "s")
        await indexed(store)
        with started(path, code) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "open\n"
            await store.erase("s")
            assert left(path) == set()
            said = await anyio.to_thread.run_sync(lambda: other.communicate("\n", timeout=60)[0])
            assert said == "SessionErased\n"
        assert left(path) == set()
    assert left(path) == set()


async def test_a_reader_in_the_way_delays_it_and_its_end_finishes_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody has to erase again, or to open the file anew."""
    monkeypatch.setattr(scrubber, "_FIRST_PAUSE", 0.02)
    caplog.set_level(logging.WARNING)
    async with open_store(path) as store:
        await write(store, "s")
        with raw(path) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM action").fetchone()
            with anyio.fail_after(5):  # nobody waits for the reader
                await store.erase("s")
                await store.create("another")
            assert left(path)
            assert "a reader keeps" in caplog.text
            assert [it.subject for it in diagnose(path).remarks if it.severity == "bad"] == ["erasure"]
            reader.execute("COMMIT")
        for _ in range(500):
            if not left(path):
                break
            await anyio.sleep(0.02)
        assert left(path) == set()
    assert diagnose(path).healthy


async def test_a_reader_that_stays_leaves_a_note_for_the_next_open(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        async with open_store(path) as store:
            await write(store, "s")
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM action").fetchone()
            await store.erase("s")
        assert left(path)
        assert not diagnose(path).healthy
        reader.execute("COMMIT")
    async with open_store(path):
        pass
    assert left(path) == set()
    assert diagnose(path).healthy


KILLED = """
from talkfold.store.sqlite import scrubbing
from talkfold.store.sqlite.writer import Writer
import signal

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with open_store(path) as store:
        if args[0] == "before":
            Writer.scrub = kill
        elif args[0] == "rewritten":
            scrubbing._mark = kill
        else:
            scrubbing._empty_wal = kill
        await store.erase("s")
run(main())
"""


@pytest.mark.parametrize("when", ["before", "rewritten", "marked"])
async def test_a_process_that_is_killed_before_the_scrub_leaves_it_to_the_next_open(path: Path, when: str) -> None:
    async with open_store(path) as store:
        await write(store, "s")
        await store.create("kept", actions=[Send("u", "kept")])
        await indexed(store)
    process = start(path, KILLED, when)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (-signal.SIGKILL, "")
    assert left(path), "the test would prove nothing"
    (remark,) = (it for it in diagnose(path).remarks if it.severity == "bad")
    assert remark.subject == "erasure"
    assert "1 erased session " in remark.text
    async with open_store(path) as store:
        assert [it.id for it in (await store.list()).sessions] == ["kept", marker("forkedfrom")]
    assert left(path) == set()
    assert diagnose(path).healthy


async def test_of_several_that_open_it_one_does_the_work(path: Path) -> None:
    async with open_store(path) as store:
        await write(store, "s")
    start(path, KILLED, "before").communicate(timeout=60)
    code = """
async def main():
    async with open_store(path) as store:
        say(len((await store.list()).sessions))
run(main())
"""
    processes = [start(path, code) for _ in range(3)]
    assert [ended(process) for process in processes] == [[["1"]]] * 3
    assert left(path) == set()
    assert diagnose(path).healthy


async def test_a_damaged_session_can_be_erased(path: Path) -> None:
    """Whoever must have it gone must not first have it whole."""
    async with open_store(path) as store:
        await write(store, "s")
        with raw(path, guarded=False) as connection:
            (key,) = connection.execute("SELECT key FROM session WHERE id = 's'").fetchone()
            connection.execute("UPDATE action SET body = x'ff' WHERE session = ? AND number = 3", (key,))
            connection.execute("DELETE FROM head WHERE session = ?", (key,))
        tombstone = await store.erase("s")
        assert tombstone.number > 700
        assert left(path) == set()
    assert diagnose(path).healthy


async def test_a_file_that_cannot_say_whether_something_is_left_opens_all_the_same(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s", actions=[Send("u", "hi")])
    with raw(path) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'head_by_status'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    async with open_store(path) as store:
        assert len(await store.read("s")) == 1
    assert not diagnose(path).healthy
