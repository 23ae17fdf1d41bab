"""``erase --all-of`` and ``retain``: many sessions at once, looked at before anything is done."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from cli_world import ORDER, Talkfold, jsonl

from talkfold.cli.app import run
from talkfold.cli.retaining import period
from talkfold.errors import InvalidArgument


class Person(io.StringIO):
    """Somebody at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def owned(world: Talkfold) -> Talkfold:
    """The world, in which ann has two sessions and bob one more."""
    for name, owner in (("a-1", "ann"), ("a-2", "ann"), ("b-1", "bob")):
        header = {"talkfold": 1, "session": {"id": name, "title": f"Of {owner}"}}
        assert world("import", "-", "--owner", owner, stdin=jsonl([header, *ORDER])).code == 0
    return world


def ids(talkfold: Talkfold) -> set[str]:
    return {row["id"] for row in talkfold("list", "--jsonl").jsonl}


def age(path: Path, session_id: str, days: float) -> None:
    """Let a session's newest append be so long ago."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE head SET updated = updated - ? WHERE session = (SELECT key FROM session WHERE id = ?)",
            (int(days * 86_400_000), session_id),
        )
    connection.close()


# ---- erase --all-of -------------------------------------------------------------------------------------


def test_all_of_an_owners_sessions_go(owned: Talkfold) -> None:
    erased = owned("erase", "--all-of", "ann", "--yes", "--by", "the clerk", "--json")
    assert erased.code == 0
    assert [(it["erased"], it["owner"], it["number"], it["by"]) for it in erased.json] == [
        (name, "ann", len(ORDER), "the clerk") for name in ("a-1", "a-2")
    ]
    assert ids(owned) == {"b-1", "order-17", "chat-1", "chat-2"}
    assert "erased by the clerk" in owned("show", "a-1").err
    again = owned("erase", "--all-of", "ann", "--yes")
    assert (again.code, again.out) == (0, "")
    assert "ann has no sessions" in again.err
    assert [it["erased"] for it in owned("erase", "--all-of", "bob", "--yes", "--jsonl").jsonl] == ["b-1"]


@pytest.mark.parametrize(("answer", "left"), [("y\n", 4), ("n\n", 6), ("", 6)])
def test_it_lists_them_and_asks(
    owned: Talkfold, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, left: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Person(answer))
    assert run(["erase", "--all-of", "ann"]) == 0
    shown = capsys.readouterr()
    assert "a-1" in shown.out
    assert "a-2" in shown.out
    assert "b-1" not in shown.out
    assert "Erase 2 sessions of ann with 18 actions for good? [y/N]" in shown.err
    assert len(ids(owned)) == left


def test_where_nobody_can_be_asked_nothing_goes(owned: Talkfold) -> None:
    ended = owned("erase", "--all-of", "ann")
    assert ended.code == 2
    assert "a-1" in ended.out
    assert "--yes" in ended.err
    assert len(ids(owned)) == 6


@pytest.mark.parametrize(
    "arguments", [[], ["a-1", "--all-of", "ann"], ["--all-of", "ann", "--owner", "bob"], ["--all-of", ""]]
)
def test_it_must_be_clear_whose(owned: Talkfold, arguments: list[str]) -> None:
    ended = owned("erase", *arguments, "--yes")
    assert (ended.code, ended.out) == (2, "")
    assert len(ids(owned)) == 6


def test_a_session_that_runs_is_told_before_and_goes(waiting: Talkfold, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "chat.db") as connection:
        connection.execute("UPDATE session SET owner = 'ann' WHERE id = 'order-18'")
    connection.close()
    assert "order-18 is running and would lose its run run-1" in waiting("erase", "--all-of", "ann").err
    assert waiting("erase", "--all-of", "ann", "--yes").code == 0
    assert waiting("show", "order-18").code == 3


# ---- retain ---------------------------------------------------------------------------------------------


def test_without_yes_it_only_lists(owned: Talkfold, tmp_path: Path) -> None:
    age(tmp_path / "chat.db", "a-1", 91)
    age(tmp_path / "chat.db", "chat-1", 100)
    for how in ([], ["--dry-run"]):
        ended = owned("retain", "--older-than", "90d", *how)
        assert ended.code == 0
        assert [line.split()[0] for line in ended.out.splitlines()] == ["id", "chat-1", "a-1"]
        assert "2 sessions with " in ended.err
        assert "would be erased; nothing was" in ended.err
        assert "--yes" in ended.err
    answer = owned("retain", "--older-than", "90d", "--json").json
    assert answer["dryRun"] is True
    assert [(it["id"], it.get("owner")) for it in answer["sessions"]] == [("chat-1", None), ("a-1", "ann")]
    assert len(ids(owned)) == 6


def test_with_yes_they_go(owned: Talkfold, tmp_path: Path) -> None:
    age(tmp_path / "chat.db", "a-1", 91)
    erased = owned("retain", "--older-than", "90d", "--yes", "--by", "the clock", "--jsonl")
    assert [json.loads(line)["id"] for line in erased.out.splitlines()] == ["a-1"]
    assert "Erased 1 session with 9 actions." in erased.err
    assert "erased by the clock" in owned("show", "a-1").err
    assert len(ids(owned)) == 5
    nothing = owned("retain", "--older-than", "90d", "--yes")
    assert (nothing.code, nothing.out) == (0, "")
    assert "No session has been without an append for 90d." in nothing.err


def test_only_those_of_an_owner_and_a_status(owned: Talkfold, tmp_path: Path) -> None:
    for name in ("a-1", "b-1", "chat-1"):
        age(tmp_path / "chat.db", name, 3)
    picked = owned("retain", "--older-than", "2d", "--owner", "ann", "--json").json["sessions"]
    assert [it["id"] for it in picked] == ["a-1"]
    assert owned("retain", "--older-than", "2d", "--status", "streaming", "--json").json["sessions"] == []
    several = owned("retain", "--older-than", "2d", "--status", "idle", "--status", "error", "--json").json
    assert len(several["sessions"]) == 3


def test_a_session_that_runs_stays(waiting: Talkfold, tmp_path: Path) -> None:
    age(tmp_path / "chat.db", "order-18", 400)
    assert waiting("retain", "--older-than", "1d", "--yes").code == 0
    assert waiting("show", "order-18").code == 0


@pytest.mark.parametrize("given", ["", "90", "d", "-1d", "1.5d", "90 days", "6m", "1y", "0d", "9999999999d", "٣d"])
def test_what_is_no_length_of_time_is_refused(owned: Talkfold, given: str) -> None:
    ended = owned("retain", f"--older-than={given}", "--yes")
    assert (ended.code, ended.out) == (2, "")
    assert "--older-than" in ended.err
    assert len(ids(owned)) == 6


def test_months_are_not_taken_for_minutes(owned: Talkfold) -> None:
    assert "minutes or months" in owned("retain", "--older-than", "6m").err
    assert owned("retain", "--older-than", "9d", "--yes", "--dry-run").code == 2
    assert owned("retain", "--yes").code == 2


def test_lengths_of_time() -> None:
    assert [period("x", it) for it in ("30min", "12h", "90d", "2w", "45 s")] == [
        timedelta(minutes=30),
        timedelta(hours=12),
        timedelta(days=90),
        timedelta(weeks=2),
        timedelta(seconds=45),
    ]
    with pytest.raises(InvalidArgument, match="calendar"):
        period("x", "999999999w")
