"""``fork``, ``rename``, ``erase``, ``check``, ``migrate``, ``doctor``."""

from __future__ import annotations

import io
import sqlite3
import sys
from pathlib import Path

import pytest
from cli_world import ORDER, Talkfold

from talkfold.cli.app import run


def test_a_fork_is_a_session_of_its_own(world: Talkfold) -> None:
    before = world("show", "order-17", "--json").json
    forked = world("fork", "order-17", "--at", "4", "--title", "Another try", "--json").json
    assert (forked["forkedFrom"], forked["forkedAt"], forked["number"]) == ("order-17", 4, 4)
    assert forked["title"] == "Another try"
    shown = world("show", forked["id"], "--json").json
    assert shown["state"] == world("show", "order-17", "--at", "4", "--json").json["state"]
    assert world("show", "order-17", "--json").json == before
    assert world("check", forked["id"]).code == 0


def test_a_fork_prints_its_id_alone(world: Talkfold) -> None:
    forked = world("fork", "order-17")
    assert world("show", forked.out.strip(), "--json").json["number"] == len(ORDER)


def test_rename(world: Talkfold) -> None:
    digest = world("check", "chat-1", "--json").json["digest"]
    assert world("rename", "chat-1", "A greeting").code == 0
    (session,) = world("list", "--title", "greeting", "--jsonl").jsonl
    assert (session["id"], session["title"], session["digest"]) == ("chat-1", "A greeting", digest)


def test_erase_wants_a_yes(world: Talkfold) -> None:
    refused = world("erase", "chat-1")
    assert (refused.code, refused.out) == (2, "")
    assert "--yes" in refused.err
    assert world("show", "chat-1").code == 0


def test_erase_with_yes_wants_the_whole_id(world: Talkfold) -> None:
    assert world("erase", "order", "--yes").code == 3
    assert world("show", "order-17").code == 0


def test_an_erased_session_is_gone_and_leaves_its_tombstone(world: Talkfold, tmp_path: Path) -> None:
    erased = world("erase", "order-17", "--yes", "--by", "ann", "--json").json
    assert (erased["erased"], erased["number"]) == ("order-17", len(ORDER))
    gone = world("show", "order-17")
    assert gone.code == 3
    assert "erased by ann" in gone.err
    assert {row["id"] for row in world("list", "--jsonl").jsonl} == {"chat-1", "chat-2"}
    for file in tmp_path.glob("chat.db*"):
        assert b"Two blue mugs" not in file.read_bytes()


@pytest.mark.parametrize(("answer", "left"), [("y\n", 3), ("yes\n", 3), ("\n", 0), ("n\n", 0), ("", 0)])
def test_erase_asks_a_person(
    world: Talkfold,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    left: int,
) -> None:
    class Person(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Person(answer))
    assert run(["erase", "ord"]) == 0
    assert "Erase order-17 (Blue mugs) with 9 actions for good? [y/N]" in capsys.readouterr().err
    assert world("show", "order-17").code == left


# ---- check ----------------------------------------------------------------------------------------------


def test_check_gives_every_digest(world: Talkfold) -> None:
    reports = world("check", "--all", "--jsonl").jsonl
    assert {report["id"] for report in reports} == {"order-17", "chat-1", "chat-2"}
    listed = {row["id"]: row["digest"] for row in world("list", "--jsonl").jsonl}
    for report in reports:
        assert report["problems"] == []
        assert report["digest"] == listed[report["id"]]
    assert world("check", "--all", "--json").json == reports
    assert world("check").code == 2
    assert world("check", "chat-1", "--all").code == 2


def test_check_finds_a_changed_action_and_ends_with_1(world: Talkfold, tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "chat.db")
    with database:
        database.execute("DROP TRIGGER action_update")
        database.execute(
            "UPDATE action SET body = CAST(replace(body, 'Two blue', 'Ten gold') AS BLOB)"
            " WHERE number = 1 AND session = (SELECT key FROM session WHERE id = 'order-17')"
        )
    database.close()
    ended = world("check", "--all")
    assert ended.code == 1
    assert "order-17 at " in ended.err
    assert world("check", "chat-1").code == 0
    report = world("check", "order-17", "--json")
    assert report.code == 1
    assert "chain" in {problem["code"] for problem in report.json["problems"]}


# ---- the database ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [["list"], ["show", "x"], ["check", "--all"], ["doctor"], ["migrate", "--check"], ["export", "--all"]],
    ids=lambda command: command[0],
)
def test_looking_never_makes_a_database(talkfold: Talkfold, tmp_path: Path, command: list[str]) -> None:
    ended = talkfold(*command)
    assert (ended.code, ended.out) == (3, "")
    assert str(tmp_path / "chat.db") in ended.err
    assert list(tmp_path.iterdir()) == []


def test_migrate_makes_one_and_then_has_nothing_to_do(talkfold: Talkfold, tmp_path: Path) -> None:
    first = talkfold("migrate", "--json").json["applied"]
    assert first[0].startswith("0001_")
    assert talkfold("migrate", "--json").json["applied"] == []
    assert talkfold("migrate", "--check", "--json").json["pending"] == []
    assert (tmp_path / "chat.db").exists()


def test_the_default_place_is_the_folder_for_user_data(
    talkfold: Talkfold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TALKFOLD_DB")
    assert talkfold("migrate").code == 0
    assert (tmp_path / "data" / "talkfold" / "chat.db").exists()


@pytest.mark.parametrize("home", ["/dev/null", "/proc/nowhere"])
@pytest.mark.parametrize("command", [["migrate"], ["import", "run.jsonl"]], ids=" ".join)
def test_without_a_folder_for_user_data_it_says_so(
    world: Talkfold, monkeypatch: pytest.MonkeyPatch, command: list[str], home: str
) -> None:
    for name in ("TALKFOLD_DB", "XDG_DATA_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", home)
    ended = world(*command)
    assert (ended.code, ended.out) == (70, "")
    assert ended.err.startswith(f"talkfold: {home}/")
    assert "cannot be made" in ended.err
    assert "--db" in ended.err


def test_db_wins_over_the_environment(world: Talkfold, tmp_path: Path) -> None:
    assert world("migrate", "--db", "other.db").code == 0
    assert world("list", "--db", "other.db", "--json").json == {"sessions": []}
    assert len(world("list", "--json").json["sessions"]) == 3


def _stamp(path: Path, version: int) -> None:
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {version}")
    database.close()


def test_a_newer_database_is_refused_with_5(world: Talkfold, tmp_path: Path) -> None:
    _stamp(tmp_path / "chat.db", 999)
    for command in (["list"], ["migrate"], ["migrate", "--check"], ["import", "run.jsonl"]):
        ended = world(*command)
        assert (ended.code, ended.out) == (5, "")
        assert "999" in ended.err


def test_an_empty_file_needs_migrating(talkfold: Talkfold, tmp_path: Path) -> None:
    (tmp_path / "chat.db").touch()
    assert talkfold("list").code == 5
    waiting = talkfold("migrate", "--check", "--json")
    assert waiting.code == 5
    assert len(waiting.json["pending"]) >= 1
    assert talkfold("migrate").code == 0
    assert talkfold("list").code == 0


def test_another_programs_file_is_refused_with_6_and_left_alone(talkfold: Talkfold, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("These are notes, and no database at all.\n" * 40)
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    for name in ("notes.txt", "other.sqlite"):
        before = (tmp_path / name).read_bytes()
        for command in (["list"], ["migrate"], ["import", "-"]):
            ended = talkfold(*command, "--db", name)
            assert (ended.code, ended.out) == (6, "")
        assert (tmp_path / name).read_bytes() == before
        assert talkfold("doctor", "--db", name).code == 1


def test_doctor_on_a_good_database(world: Talkfold) -> None:
    seen = world("doctor", "--json")
    assert seen.code == 0
    assert seen.json["healthy"] is True
    assert (seen.json["sessions"], seen.json["journalMode"]) == (3, "wal")
    out = world("doctor", "--thorough").out
    assert "3 sessions" in out
    assert sqlite3.sqlite_version in out
