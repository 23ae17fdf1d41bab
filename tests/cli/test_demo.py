"""The demo, as a stranger runs it: another process is really killed, and what the acts say is what happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_world import CHATS, Talkfold, jsonl

AIRLINE = Path(__file__).parents[3] / "shared" / "data" / "airline.jsonl"


def demo(folder: Path, *arguments: str) -> str:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "talkfold", "demo", *arguments],
        cwd=folder,
        env={**kept, "TMPDIR": str(folder), "PYTHONWARNINGS": "error"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert time.monotonic() - began < 20, "it promises to be over in twenty seconds"
    return ended.stdout


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return json.loads(demo(tmp_path_factory.mktemp("demo"), "--json"))


def log_of(talkfold: Talkfold, result: Any) -> list[Any]:
    return talkfold("steps", "order-17", "--jsonl", "--db", result["database"]).jsonl


def test_the_killed_run_is_settled_by_exactly_one_stop(talkfold: Talkfold, result: Any) -> None:
    assert result["settled"] == {"number": 16, "settled": True, "settledAgain": False}
    log = log_of(talkfold, result)
    assert [row["number"] for row in log if row["action"]["type"] == "stop"] == [16]
    assert log[15]["meta"] == {"cause": "reload"}
    assert {row["run"] for row in log[:15]} == {"run-1"}


def test_every_call_left_open_is_cancelled(talkfold: Talkfold, result: Any) -> None:
    before, after = (
        talkfold("show", "order-17", "--at", at, "--json", "--db", result["database"]).json["state"]
        for at in ("15", "16")
    )
    assert json.dumps(before).count('"running"') == 2
    assert json.dumps(after).count('"running"') == 0
    assert json.dumps(after).count('"cancelled"') == 2
    assert (before["status"], after["status"]) == ("streaming", "idle")


def test_retry_keeps_the_finished_calls_and_names_the_risk(result: Any) -> None:
    kept = [part["id"] for message in result["retry"]["messages"] for part in message["parts"] if "id" in part]
    assert kept == ["c1", "c2"]
    assert [part["reason"] for part in result["retry"]["dropped"]] == ["reply-cut-short", "cancelled-call"]
    (risk,) = result["retry"]["atRisk"]
    assert (risk["path"], risk["call"]["name"]) == (["c3"], "get_rates")


def test_it_goes_on_from_there(talkfold: Talkfold, result: Any) -> None:
    log = log_of(talkfold, result)
    assert log[16]["action"] == {"type": "retry"}
    assert log[-1]["action"]["part"] == {"type": "finish", "reason": "stop"}
    state = talkfold("show", "order-17", "--json", "--db", result["database"]).json["state"]
    assert state["status"] == "idle"
    assert json.dumps(state).count('"cancelled"') == 0


def test_the_proof_holds_afterwards(talkfold: Talkfold, result: Any) -> None:
    assert result["check"]["problems"] == []
    report = talkfold("check", "order-17", "--json", "--db", result["database"])
    assert (report.code, report.json["digest"]) == (0, result["check"]["digest"])
    assert talkfold("check", "--all", "--db", result["database"]).code == 0


def test_as_a_page_to_read(tmp_path: Path, talkfold: Talkfold) -> None:
    shown = demo(tmp_path)
    for act, heading in enumerate(
        (
            "Conversations come in",
            "A run is killed",
            "It is loaded again",
            "Step by step",
            "What Retry sends",
            "It goes on",
            "The proof",
        ),
        start=1,
    ):
        assert f"\n{act}  {heading}\n" in shown
    assert "\x1b" not in shown
    assert "\t" not in shown
    acts, _, around = shown.partition("Look around\n")
    assert max(map(len, acts.splitlines())) <= 120
    assert len(shown.splitlines()) < 120
    next_commands = [line.split("talkfold ", 1)[1] for line in around.splitlines()]
    assert len(next_commands) == 5
    for command in next_commands:
        assert talkfold(*command.split()).code == 0


def test_it_leaves_nothing_in_the_folder_it_is_called_from(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    subprocess.run(
        [sys.executable, "-m", "talkfold", "demo"],
        cwd=tmp_path / "here",
        env={**kept, "TMPDIR": str(tmp_path / "elsewhere")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    assert list((tmp_path / "here").iterdir()) == []


def test_a_file_of_the_persons_own(tmp_path: Path, talkfold: Talkfold) -> None:
    chats = [*CHATS, {**CHATS[1], "id": "order-17"}]  # the demo's own session has another id then
    (tmp_path / "chats.jsonl").write_bytes(jsonl(chats))
    result = json.loads(demo(tmp_path, "chats.jsonl", "--db", "mine.db", "--json"))
    assert result["imported"]["sessions"] == 3
    sessions = talkfold("list", "--jsonl", "--db", str(tmp_path / "mine.db")).jsonl
    assert {session["id"] for session in sessions} >= {"chat-1", "chat-2", "order-17"}
    assert len(sessions) == 4


def test_it_never_writes_to_a_database_that_is_there(world: Talkfold) -> None:
    before = world("list", "--json").json
    refused = world("demo", "--db", "chat.db")
    assert (refused.code, refused.out) == (2, "")
    assert world("list", "--json").json == before


def test_with_real_conversations(tmp_path: Path) -> None:
    if not AIRLINE.exists():
        pytest.skip("the folder ../shared with real conversations is not here")
    shown = demo(tmp_path, str(AIRLINE))
    assert "24 conversations from your file" in shown
    assert "and 18 more" in shown
