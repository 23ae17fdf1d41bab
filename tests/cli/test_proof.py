"""``check --since``: a digest that was noted proves later that the log is the same."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from cli_world import ORDER, Talkfold

from talkfold.log import chain_link, chain_start


def rewrite(database: Path, session_id: str) -> None:
    """Write a session's log anew with another text in it, and everything so that it closes."""
    with sqlite3.connect(database, isolation_level=None) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        (key,) = connection.execute("SELECT key FROM session WHERE id = ?", (session_id,)).fetchone()
        connection.execute(
            "UPDATE action SET body = CAST(replace(body, 'Two blue', 'Ten gold') AS BLOB) WHERE session = ?", (key,)
        )
        link = chain_start(session_id)
        for number, time, run, actor, meta, body, noted in connection.execute(
            "SELECT number, time, run, actor, meta, body, hash FROM action WHERE session = ? ORDER BY number", (key,)
        ).fetchall():
            link = chain_link(link, number, time, run, actor, meta, body)
            if noted is not None:
                connection.execute("UPDATE action SET hash = ? WHERE session = ? AND number = ?", (link, key, number))
        connection.execute("UPDATE head SET hash = ? WHERE session = ?", (link, key))
        for _, sql in triggers:
            connection.execute(sql)
    connection.close()


@pytest.fixture
def noted(world: Talkfold, tmp_path: Path) -> Path:
    """What `check --all --jsonl` answered, kept in a file."""
    file = tmp_path / "noted.jsonl"
    file.write_text(world("check", "--all", "--jsonl").out)
    return file


def test_a_noted_digest_says_up_to_where_the_log_is_the_same(world: Talkfold) -> None:
    digest = world("check", "order-17", "--json").json["digest"]
    assert digest in world("check", "order-17").out
    assert world("import", "run.jsonl", "--session", "order-17", "--append").code in {0, 2}
    ended = world("check", "order-17", "--since", digest)
    assert ended.code == 0
    assert f"the log up to action {len(ORDER)} is what was noted" in ended.err
    report = world("check", "order-17", "--since", digest.upper(), "--json").json
    assert (report["since"], report["problems"]) == (len(ORDER), [])
    assert "since" not in world("check", "order-17", "--json").json


def test_a_log_that_was_written_anew_is_caught_by_the_noted_digest_only(world: Talkfold, tmp_path: Path) -> None:
    digest = world("check", "order-17", "--json").json["digest"]
    rewrite(tmp_path / "chat.db", "order-17")
    assert world("check", "order-17").code == 0
    ended = world("check", "order-17", "--since", digest)
    assert ended.code == 1
    assert "the noted digest is not in this log" in ended.err
    assert "(since)" in ended.err
    assert world("check", "--all", "--json").code == 0


def test_all_logs_are_checked_against_what_was_noted_of_each(world: Talkfold, tmp_path: Path, noted: Path) -> None:
    assert world("check", "--all", "--since", str(noted)).code == 0
    forked = world("fork", "order-17", "--json").json["id"]
    rewrite(tmp_path / "chat.db", "order-17")
    ended = world("check", "--all", "--since", str(noted), "--json")
    assert ended.code == 1
    reports = {each["id"]: each for each in ended.json}
    assert [it["code"] for it in reports["order-17"]["problems"]] == ["since"]
    assert reports["chat-1"]["since"] == reports["chat-1"]["number"]
    assert "since" not in reports[forked]
    told = world("check", "--all", "--since", "-", stdin=noted.read_bytes())
    assert told.code == 1
    assert "2 logs as noted, 0 missing or erased, 1 not noted before" in told.err


def test_the_one_document_can_be_kept_as_well(world: Talkfold, tmp_path: Path) -> None:
    (tmp_path / "noted.json").write_text(json.dumps(world("check", "--all", "--json").json, indent=1))
    assert "3 logs as noted" in world("check", "--all", "--since", "noted.json").err


def test_what_was_erased_is_told_and_is_no_fault(world: Talkfold, noted: Path) -> None:
    world("erase", "chat-1", "--yes", "--by", "ann")
    ended = world("check", "--all", "--since", str(noted))
    assert ended.code == 0
    assert "chat-1: erased at " in ended.err
    assert " by ann" in ended.err
    rows = world("check", "--all", "--since", str(noted), "--jsonl")
    (row,) = (each for each in rows.jsonl if each["id"] == "chat-1")
    assert (row["by"], row["problems"]) == ("ann", [])
    noted.write_text(rows.out)  # what this check answered can be kept in its turn
    assert world("check", "--all", "--since", str(noted)).code == 0


def test_what_is_gone_without_a_tombstone_is_a_fault(world: Talkfold, tmp_path: Path, noted: Path) -> None:
    with sqlite3.connect(tmp_path / "chat.db", isolation_level=None) as connection:
        connection.execute("DROP TRIGGER action_delete")
        (key,) = connection.execute("SELECT key FROM session WHERE id = 'chat-1'").fetchone()
        for table in ("action", "head", "append_key", "snapshot", "lease"):
            connection.execute(f"DELETE FROM {table} WHERE session = ?", (key,))
        connection.execute("DELETE FROM session WHERE key = ?", (key,))
    connection.close()
    assert world("check", "--all").code == 0
    ended = world("check", "--all", "--since", str(noted))
    assert ended.code == 1
    assert "chat-1: it was noted and is not listed any more" in ended.err
    (row,) = (each for each in world("check", "--all", "--since", str(noted), "--json").json if each["id"] == "chat-1")
    assert [it["code"] for it in row["problems"]] == ["gone"]


def test_a_session_that_no_list_shows_is_a_fault(world: Talkfold, tmp_path: Path, noted: Path) -> None:
    with sqlite3.connect(tmp_path / "chat.db", isolation_level=None) as connection:
        connection.execute("DELETE FROM head WHERE session = (SELECT key FROM session WHERE id = 'chat-1')")
    connection.close()
    ended = world("check", "--all", "--since", str(noted))
    assert ended.code == 1
    assert "chat-1: it was noted and is not listed any more" in ended.err
    told = world("doctor")
    assert told.code == 1
    assert "of 1 session nothing says where the log ends" in told.out


def test_only_the_named_owners_notes_count(world: Talkfold, tmp_path: Path) -> None:
    (tmp_path / "owned.jsonl").write_text('{"id":"x","owner":"bob","digest":"' + "00" * 32 + '"}\n')
    assert world("check", "--all", "--since", "owned.jsonl").code == 1
    assert world("check", "--all", "--since", "owned.jsonl", "--owner", "ann").code == 0
    assert world("check", "--all", "--since", "owned.jsonl", "--owner", "bob").code == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("12", "64 hexadecimal digits"),
        ("zz" * 32, "64 hexadecimal digits"),
        ("noted.jsonl", "a file of them goes with --all"),
        ("", "64 hexadecimal digits"),
    ],
)
def test_what_is_no_digest_is_refused(world: Talkfold, noted: Path, given: str, told: str) -> None:
    ended = world("check", "order-17", "--since", given)
    assert (ended.code, ended.out) == (2, "")
    assert "--since" in ended.err
    assert told in ended.err


@pytest.mark.parametrize(
    "content",
    [
        b"nonsense",
        b"7",
        b'{"id":"x"}',
        b'{"id":"x","digest":"12"}',
        b"[1]",
        b'{"id":"x","digest":"' + b"00" * 32 + b'"}\n{"id":"x","digest":"' + b"11" * 32 + b'"}',
        b"\xff",
    ],
)
def test_a_file_that_notes_nothing_is_refused_with_its_place(world: Talkfold, content: bytes) -> None:
    ended = world("check", "--all", "--since", "-", stdin=content)
    assert (ended.code, ended.out) == (2, "")
    assert "--since: -: " in ended.err
    assert "line " in ended.err or "entry " in ended.err


def test_a_file_that_is_not_there_is_told(world: Talkfold, tmp_path: Path) -> None:
    for path in ("nowhere.jsonl", str(tmp_path)):
        ended = world("check", "--all", "--since", path)
        assert ended.code == 2
        assert "--since" in ended.err
