"""The search index in its file: nothing of an erased text stays, a killed process loses nothing, processes share it."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from children import ended, start, started
from raw_database import as_left_by, key_of, raw
from test_search_model import everything, scan

from talkfold.actions import MessageStart, Part, Reasoning, Send, SessionAction, TextDelta, ToolCall
from talkfold.errors import DatabaseTooOld, SearchIsOff
from talkfold.store import ANY, open_store
from talkfold.store.sqlite import indexer, search_rows

SECRET = ("zyxquar", "geheimnis", "vertraulich")


def traces(path: Path) -> dict[str, list[str]]:
    """Which of the secret words, as the index spells them, stand in which file of the database."""
    files = sorted(path.parent.glob(path.name + "*"))
    found = {file.name: [word for word in SECRET if word.encode() in file.read_bytes().lower()] for file in files}
    return {name: words for name, words in found.items() if words}


def talk(chance: random.Random) -> list[SessionAction]:
    """Some actions that say secret words."""
    word = chance.choice(SECRET)
    return [
        Send("u", f"{word.title()} {chance.random()}"),
        Part(MessageStart("a")),
        *(Part(TextDelta("a", piece)) for piece in (word[:3], word[3:], " ", "open " * chance.choice([1, 400]))),
        Part(ToolCall("a", "c", word, {word: [word.upper()] * chance.choice([1, 50])})),
    ]


@pytest.mark.parametrize("seed", range(4))
async def test_no_word_of_an_erased_session_is_left(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "QUIET_SECONDS", 0.001)
    chance = random.Random(seed)
    async with open_store(path) as store:
        for name in chance.sample(["s0", "s1", "k0", "k1"], 4):
            await store.create(name, owner=chance.choice([None, "ann"]))
        for _ in range(40):
            if chance.random() < 0.6:
                await store.append(chance.choice(["s0", "s1"]), talk(chance))
            else:
                await store.append(chance.choice(["k0", "k1"]), [Send("u", "open " * chance.choice([1, 10, 300]))])
            if chance.random() < 0.3:
                await store.search("open")
            await asyncio.sleep(chance.choice([0, 0, 0.004]))
        assert len((await store.search(SECRET[0])).hits) > 1
        assert traces(path)
        for name in chance.sample(["s0", "s1"], 2):
            await store.erase(name)
            await store.append("k0", [Send("u", "open")])
        assert traces(path) == {}
        for word in SECRET:
            assert (await store.search(f"{word[:4]}*")).hits == ()
        assert {hit.session_id for hit in (await store.search("open", limit=200)).hits} == {"k0", "k1"}
        with raw(path) as connection:
            connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    assert traces(path) == {}


async def test_no_word_is_left_where_search_is_off(path: Path) -> None:
    async with open_store(path) as store:
        await store.append("s", talk(random.Random(1)), expected=ANY)
        await store.search("open")
        await store.set_search(False)
        await store.erase("s")
        assert traces(path) == {}


WRITER = """
from talkfold.store.sqlite import indexer, search_rows
indexer.QUIET_SECONDS = 0.0005
search_rows.MOST_ACTIONS = 50

async def main():
    async with open_store(path, synchronous="NORMAL") as store:
        say("open")
        for turn in range(10_000):
            actions = [Send("u", f"mug w{args[0]}x{turn}"), Part(MessageStart("a"))]
            actions += [Part(TextDelta("a", piece)) for piece in ("bas", "ket ", f"v{turn}")]
            await store.append(f"s{turn % 3}", actions, expected=ANY)
            if turn % 7 == 3:
                await store.search("mug")
            say("wrote", turn)
run(main())
"""


async def test_killed_while_it_indexes_nothing_is_lost_and_nothing_is_twice(path: Path) -> None:
    chance = random.Random(5)
    for kill in range(17):
        with started(path, WRITER, kill) as process:
            assert process.stdout is not None
            process.stdout.readline()
            await asyncio.sleep(chance.random() ** 2 * 0.3)
            process.kill()
            _, complained = process.communicate()
            assert complained == ""
        if kill % 4:
            continue
        async with open_store(path) as store:
            for query in ("mug", "basket", f"w{kill}x0", '"basket v1"', "v*"):
                due = list[tuple[str, int, int, str]]()
                for session in (await store.list()).sessions:
                    log = [
                        row.action
                        for after in range(0, session.number, 10_000)
                        for row in await store.read(session.id, after=after, limit=10_000)
                    ]
                    due += [(session.id, *text) for text in scan(log, query)]
                assert await everything(store, query, 200) == due
    with raw(path) as connection:
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")


SEARCHER = """
from talkfold.store.sqlite import indexer, search_rows
indexer.QUIET_SECONDS = 0.002
search_rows.MOST_ACTIONS = 40

async def main():
    async with open_store(path, synchronous="NORMAL") as store:
        for turn in range(40):
            name = f"s{turn % 4}"
            actions = [Part(TextDelta("a", "mu")), Part(TextDelta("a", "g ")), Send("u", f"p{args[0]} t{turn}")]
            await store.append(name, actions, expected=ANY)
            page = await store.search(f"p{args[0]}", limit=200)
            say(len(page.hits), turn + 1)
            if turn % 10 == 9:
                assert len((await store.search("mug", session_id=name)).hits) > 0
run(main())
"""


async def test_processes_index_one_file_and_each_finds_all_that_it_wrote(path: Path) -> None:
    async with open_store(path):
        pass
    processes = [start(path, SEARCHER, index) for index in range(3)]
    try:
        for said in [ended(process) for process in processes]:
            assert len(said) == 40
            assert all(found == due for found, due in said)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    async with open_store(path) as store:
        log = {f"s{index}": await store.read(f"s{index}", limit=10_000) for index in range(4)}
        found = await everything(store, "mug", 100)
        due = {(name, *text) for name, rows in log.items() for text in scan([row.action for row in rows], "mug")}
        assert len(found) == len(due)
        assert set(found) == due


async def test_others_obey_the_switch_at_once_and_it_survives(path: Path) -> None:
    async with open_store(path) as one, open_store(path) as other:
        await one.append("s", [Send("u", "mug")], expected=ANY)
        assert len((await other.search("mug")).hits) == 1
        await one.set_search(False)
        with pytest.raises(SearchIsOff):
            await other.search("mug")
        await other.append("s", [Send("u", "mug")])
    async with open_store(path) as store:
        with pytest.raises(SearchIsOff, match="switched off"):
            await store.search("mug")
        with raw(path) as connection:
            assert connection.execute("SELECT count(*) FROM search").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM search_progress").fetchone() == (0,)
        await store.set_search(True)
        with raw(path) as connection:
            assert connection.execute("SELECT count(*) FROM search").fetchone() == (2,)
        assert len((await store.search("mug")).hits) == 2


async def test_off_and_on_leave_the_index_as_the_migration_made_it(path: Path) -> None:
    def schema() -> list[tuple[str, str]]:
        with raw(path) as connection:
            return sorted(
                connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'search%'").fetchall()
            )

    async with open_store(path) as store:
        made = schema()
        await store.set_search(False)
        assert schema() == made
        await store.set_search(True)
        assert schema() == made


async def test_it_is_kept_without_a_search(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "QUIET_SECONDS", 0.001)
    monkeypatch.setattr(search_rows, "MOST_ACTIONS", 7)
    async with open_store(path) as store:
        await store.append("s", [Send("u", f"mug {index}") for index in range(20)], expected=ANY)
        for _ in range(500):
            await asyncio.sleep(0.01)
            with raw(path) as connection:
                if connection.execute("SELECT indexed FROM search_progress").fetchone() == (20,):
                    break
        else:
            pytest.fail("nobody indexed it")


async def test_a_body_that_cannot_be_read_hides_only_itself(path: Path) -> None:
    async with open_store(path) as store:
        await store.append("s", [Send("u", f"mug {index}") for index in range(5)], expected=ANY)
    with raw(path, guarded=False) as connection:
        connection.execute("UPDATE action SET body = x'7b' WHERE number = 3")
    async with open_store(path) as store:
        assert [hit.first for hit in (await store.search("mug")).hits] == [5, 4, 2, 1]


async def test_a_log_that_is_cut_off_at_its_end_is_searched_as_far_as_it_goes(path: Path) -> None:
    async with open_store(path) as store:
        await store.append("s", [Send("u", f"mug {index}") for index in range(5)], expected=ANY)
    with raw(path, guarded=False) as connection:
        connection.execute("DELETE FROM action WHERE number > 3")
    async with open_store(path) as store:
        assert [hit.first for hit in (await store.search("mug")).hits] == [3, 2, 1]


@pytest.mark.parametrize(
    "damage", ["UPDATE search_data SET block = x'00ff00ff' WHERE id > 10", "DELETE FROM search_idx"]
)
@pytest.mark.parametrize("first", ["erase", "search", "append"])
async def test_a_damaged_index_is_made_anew(path: Path, damage: str, first: str) -> None:
    async with open_store(path) as store:
        await store.append("s", [Send("u", "mug")], expected=ANY)
        await store.append("t", [Send("u", "mug"), Part(Reasoning("a", "basket"))], expected=ANY)
        await store.search("mug")
        with raw(path) as connection:
            connection.execute(damage)
    async with open_store(path) as store:
        if first == "append":
            await store.append("t", [Send("u", "mug")])
            assert [hit.first for hit in (await store.search("mug", session_id="t")).hits] == [3, 1]
        if first == "search":
            assert [hit.session_id for hit in (await store.search("mug")).hits] == ["t", "s"]
        await store.erase("s")
        assert {hit.session_id for hit in (await store.search("mug")).hits} == {"t"}
        assert len((await store.search("basket")).hits) == 1
        with raw(path) as connection:
            connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")


async def test_a_database_from_before_search_is_indexed_by_its_first_search(path: Path) -> None:
    async with open_store(path) as store:
        for index in range(30):
            await store.append(f"s{index % 3}", [Send("u", "mug")] * 100, expected=ANY)
    with raw(path) as connection:
        as_left_by(connection, 2)
    with pytest.raises(DatabaseTooOld):
        async with open_store(path, migrate=False):
            pytest.fail("this must not open")
    async with open_store(path) as store:
        told = list[tuple[int, int]]()
        page = await store.search("mug", session_id="s1", told=lambda done, total: told.append((done, total)))
        assert (page.hits[0].first, told) == (1_000, [(1_000, 1_000)])
        await store.search("mug", told=lambda done, total: told.append((done, total)))
        assert told[1:] == [(2_000, 2_000)]
        assert len(await everything(store, "mug", 200)) == 3_000


async def test_a_session_is_a_range_of_rows(path: Path) -> None:
    async with open_store(path) as store:
        await store.append("s", [Send("u", "mug")], expected=ANY)
        await store.append("t", [Send("u", "mug")] * 3, expected=ANY)
        await store.search("mug")
        with raw(path) as connection:
            low, high = search_rows.rows_of(key_of(connection, "t"))
            count = "SELECT count(*) FROM search WHERE rowid BETWEEN ? AND ?"
            assert connection.execute(count, (low, high)).fetchone() == (3,)
