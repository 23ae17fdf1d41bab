"""The log only grows, for every program that opens the file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from raw_database import key_of, raw

from talkfold.actions import Send
from talkfold.store import open_store

_INSERT = "INTO action (session, number, time, body) VALUES (:key, {number}, 0, x'7b7d')"

REFUSED = {
    "update body": "UPDATE action SET body = x'7b7d' WHERE session = :key AND number = 2",
    "update envelope": "UPDATE action SET time = 0, actor = 'me' WHERE session = :key",
    "update nothing new": "UPDATE action SET body = body WHERE session = :key AND number = 1",
    "move to another session": "UPDATE action SET session = :other WHERE session = :key",
    "update or replace": "UPDATE OR REPLACE action SET number = 1 WHERE session = :key AND number = 2",
    "delete last": "DELETE FROM action WHERE session = :key AND number = 3",
    "delete first": "DELETE FROM action WHERE session = :key AND number = 1",
    "delete all": "DELETE FROM action",
    "replace middle": f"REPLACE {_INSERT.format(number=2)}",
    "replace last": f"INSERT OR REPLACE {_INSERT.format(number=3)}",
    "replace by upsert": f"INSERT {_INSERT.format(number=3)} ON CONFLICT DO UPDATE SET body = x'7b7d'",
    "insert taken": f"INSERT {_INSERT.format(number=1)}",
    "insert or ignore": f"INSERT OR IGNORE {_INSERT.format(number=1)}",
    "leave a gap": f"INSERT {_INSERT.format(number=5)}",
    "number 0": f"INSERT {_INSERT.format(number=0)}",
    "number -1": f"INSERT {_INSERT.format(number=-1)}",
    "number by default": "INSERT INTO action (session, time, body) VALUES (:key, 0, x'7b7d')",
    "first of a session with a gap": "INSERT INTO action (session, number, time, body) VALUES (:other, 2, 0, x'7b7d')",
    "a body that is text": "INSERT INTO action (session, number, time, body) VALUES (:key, 4, 0, '{}')",
    "no body": "INSERT INTO action (session, number, time, body) VALUES (:key, 4, 0, NULL)",
}


@pytest.mark.parametrize("what", REFUSED)
async def test_every_other_change_is_refused(path: Path, what: str) -> None:
    async with open_store(path) as store:
        for name in ("s", "other"):
            await store.create(name)
        await store.append("s", [Send("u", "one"), Send("u", "two")])
        await store.append("s", [Send("u", "three")])
        before = await store.read("s")
        with raw(path) as connection:
            keys = {"key": key_of(connection, "s"), "other": key_of(connection, "other")}
            for pragma in ("OFF", "ON"):
                connection.execute(f"PRAGMA recursive_triggers = {pragma}")
                with pytest.raises(sqlite3.IntegrityError):
                    connection.execute(REFUSED[what], keys)
        assert await store.read("s") == before
        assert await store.read("other") == ()
        assert (await store.check("s")).problems == ()


async def test_the_next_number_is_the_one_thing_allowed(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
        await store.append("s", [Send("u", "one")])
        with raw(path) as connection:
            connection.execute(f"INSERT {_INSERT.format(number=2)}", {"key": key_of(connection, "s")})
        assert {problem.code for problem in (await store.check("s")).problems} == {"head", "undecodable"}
