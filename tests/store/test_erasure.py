"""Erased means gone: not one byte of it in the database, its WAL, its index of the WAL, or its lock."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import anyio
import pytest
from raw_database import raw

from talkfold.actions import MessageStart, Part, Send, SessionAction, TextDelta, ToolCall
from talkfold.log import Entry
from talkfold.store import ANY, open_store
from talkfold.store.sqlite import snapshotter

MARKER = "Geheimnis-7f3a"


def traces(path: Path) -> dict[str, int]:
    """In which files of the database the marker stands, and how often."""
    files = sorted(path.parent.glob(path.name + "*"))
    found = {file.name.removeprefix(path.name): file.read_bytes().count(MARKER.encode()) for file in files}
    return {name: count for name, count in found.items() if count}


def secret_talk(chance: random.Random) -> list[SessionAction]:
    """Small rows, middle ones, and some that need pages of their own."""
    return [
        Send("u", MARKER * chance.choice([1, 1, 1, 30, 900])),
        Part(MessageStart("a")),
        Part(TextDelta("a", f"{MARKER} {chance.random()}")),
        Part(ToolCall("a", MARKER, MARKER, {MARKER: [MARKER] * chance.choice([1, 20])})),
    ]


@pytest.mark.parametrize("seed", range(6))
async def test_no_byte_of_an_erased_session_is_left(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshotter, "SNAPSHOT_BYTES", 4_000)
    chance = random.Random(seed)
    secret, kept = ["s0", "s1", "s2"], ["k0", "k1", "k2", "k3"]
    async with open_store(path) as store:
        for name in chance.sample(secret + kept, 7):  # in any order of keys: pages are shared with neighbours
            await store.create(name)
            if name in secret:
                await store.update(name, title=MARKER, metadata={"note": MARKER})
        for step in range(120):
            if chance.random() < 0.5:
                await store.append(
                    chance.choice(secret),
                    [Entry(action, run=MARKER, actor=MARKER, meta={"m": MARKER}) for action in secret_talk(chance)],
                    key=f"{MARKER} {step}",
                )
            else:
                await store.append(chance.choice(kept), [Send("u", "open " * chance.choice([1, 10, 300]))])
        fork = (await store.fork("s0", title=MARKER)).id
        await store.update("s1", title=f"{MARKER} again" * 3)
        await store.update("s1", title="short")
        await anyio.sleep(0.05)
        assert traces(path), "the marker was never written"
        for name in chance.sample([*secret, fork], 4):
            await store.erase(name)
            for _ in range(chance.randrange(3)):
                await store.append(chance.choice(kept), [Send("u", "open " * chance.choice([1, 10, 300]))])
        assert traces(path) == {}
        for name in kept:
            assert (await store.check(name)).problems == ()
    assert traces(path) == {}
    with raw(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_the_tombstone_is_all_that_is_left(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s", owner="ann", title="t", metadata={"m": 1})
        await store.append("s", [Send("u", "hi")] * 3, key="k")
        source = await store.fork("s", new_id="f")
        assert source.forked_from == "s"
        tombstone = await store.erase("f", by="the clerk")
        with raw(path) as connection:
            connection.row_factory = sqlite3.Row
            (key,) = connection.execute("SELECT key FROM session WHERE id = 'f'").fetchone()
            row = dict(connection.execute("SELECT * FROM session WHERE key = ?", (key,)).fetchone())
            assert {name: value for name, value in row.items() if value is not None} == {
                "key": key,
                "id": "f",
                "owner": "ann",
                "created": row["created"],
                "erased": tombstone.at,
                "erased_by": "the clerk",
            }
            for table in ("action", "snapshot", "append_key"):
                assert connection.execute(f"SELECT count(*) FROM {table} WHERE session = ?", (key,)).fetchone()[0] == 0


async def test_the_id_stays_used_after_reopening(path: Path) -> None:
    async with open_store(path) as store:
        await store.append("s", [Send("u", "hi")], expected=ANY)
        before = await store.erase("s", by="me")
    async with open_store(path) as store:
        with pytest.raises(Exception, match="erased by me") as caught:
            await store.create("s")
        assert vars(caught.value)["at"] == before.at


async def test_a_reader_in_the_way_delays_it_and_no_longer(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While another program holds a moment from before, the pages must stay in the WAL; then they go by themselves."""
    async with open_store(path, timeout=0.2) as store:
        await store.append("s", [Send("u", MARKER)], expected=ANY)
        await store.create("kept")
        with raw(path) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM action").fetchone()
            await store.erase("s")
            assert "-wal" in traces(path)
            assert "a reader keeps" in caplog.text
            reader.execute("COMMIT")
        await store.create("another")
        await store.erase("another")
        assert traces(path) == {}
    assert traces(path) == {}
