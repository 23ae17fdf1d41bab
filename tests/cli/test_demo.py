"""The demo, as a stranger runs it: a process is really killed, and what the acts say is what happened."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
from cli_world import CHATS, Talkfold, jsonl

AIRLINE = Path(__file__).parents[3] / "shared" / "data" / "airline.jsonl"
ACTS = (
    "An agent plans a weekend",
    "It asks before it spends money",
    "Its process is killed",
    "Somebody opens it again",
    "Retry, in a new process",
    "Conversations from elsewhere",
    "The proof",
)
DONE = ["packed  rain jacket", "packed  warm socks", "packed  torch", "booked  hut, Saturday night, 48.00"]


def start(folder: Path, *arguments: str, more: dict[str, str] | None = None, **pipes: Any) -> subprocess.Popen[str]:
    """The demo in a folder ``here``; all that it leaves is in the folder ``there``."""
    for name in ("here", "there"):
        (folder / name).mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "talkfold", "demo", *arguments],
        cwd=folder / "here",
        env={**kept, "TMPDIR": str(folder / "there"), "PYTHONWARNINGS": "error", **(more or {})},
        stdin=subprocess.DEVNULL,
        text=True,
        **pipes,
    )


class Shown(NamedTuple):
    """A demo that has ended: what was on stdout, and the folder that it ran in."""

    out: str
    folder: Path


class Shows(NamedTuple):
    """Demos that ran at the same time, since each takes its seconds: for programs, piped, on a terminal."""

    json: Shown
    piped: Shown
    terminal: Shown


def piped(shown: dict[str, Shown], name: str, folder: Path, *arguments: str, **more: str) -> None:
    process = start(folder, *arguments, more=more, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, words = process.communicate(timeout=60)
    assert (process.returncode, words) == (0, "")
    shown[name] = Shown(out, folder)


def on_terminal(shown: dict[str, Shown], folder: Path, columns: int, *arguments: str) -> None:
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = start(folder, *arguments, more={"TERM": "xterm"}, stdout=there, stderr=there)
    os.close(there)
    read = b""
    try:
        while some := os.read(here, 65536):
            read += some
    except OSError:
        pass  # Linux: the other end is closed
    os.close(here)
    assert process.wait() == 0
    shown["terminal"] = Shown(read.decode().replace("\r\n", "\n"), folder)


@pytest.fixture(scope="module")
def shows(tmp_path_factory: pytest.TempPathFactory) -> Shows:
    """One for programs; one piped, with the person's own file and without the MCP SDK; one on a narrow terminal."""
    folders = [tmp_path_factory.mktemp("demo") for _ in range(3)]
    own = [*CHATS, {**CHATS[1], "id": "weekend"}]  # the demo's own session has another id then
    (folders[1] / "chats.jsonl").write_bytes(jsonl(own))
    (folders[1] / "sitecustomize.py").write_text("import sys; sys.modules['mcp'] = None")
    shown: dict[str, Shown] = {}
    real = [str(AIRLINE)] if AIRLINE.exists() else []
    began = time.monotonic()
    threads = [
        Thread(target=piped, args=(shown, "json", folders[0], "--json")),
        Thread(
            target=piped,
            args=(shown, "piped", folders[1], "../chats.jsonl", "--db", "../mine.db"),
            kwargs={"PYTHONPATH": str(folders[1])},
        ),
        Thread(target=on_terminal, args=(shown, folders[2], 60, *real)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began < 30, "it promises to be over in about ten seconds"
    return Shows(**shown)


@pytest.fixture(scope="module")
def result(shows: Shows) -> Any:
    return json.loads(shows.json.out)


@pytest.fixture
def log(talkfold: Talkfold, result: Any) -> list[Any]:
    return talkfold("steps", "weekend", "--jsonl", "--db", result["database"]).jsonl


def part(row: Any) -> Any:
    return row["action"].get("part", {})


# ---- what happened --------------------------------------------------------------------------------------


def test_the_process_is_killed_in_the_middle_of_a_tool(talkfold: Talkfold, result: Any) -> None:
    killed = result["killed"]
    assert (killed["status"], killed["owned"], killed["open"]) == ("streaming", False, ["draw_map"])
    assert killed["notebook"] == DONE
    assert 0 < len(killed["map"]) < len(result["done"]["map"])
    at = ("--at", str(killed["number"]), "--json", "--db", result["database"])
    assert json.dumps(talkfold("show", "weekend", *at).json["state"]).count('"running"') == 1


def test_its_session_is_settled_by_exactly_one_stop(result: Any, log: list[Any]) -> None:
    number = result["killed"]["number"] + 1
    assert result["settled"] == {"number": number, "settled": True, "settledAgain": False}
    assert [row["number"] for row in log if row["action"]["type"] == "stop"] == [number]
    assert log[number - 1]["meta"] == {"cause": "reload"}
    assert len({row["run"] for row in log[:number]}) == 1
    assert {row["run"] for row in log[number:]}.isdisjoint({row["run"] for row in log[:number]})


def test_retry_keeps_what_finished_and_names_what_it_drops(result: Any) -> None:
    names = [p["name"] for message in result["retry"]["messages"] for p in message["parts"] if p["type"] == "tool"]
    assert names == ["forecast", "delegate_to_packer", "book_hut"]
    assert [dropped["reason"] for dropped in result["retry"]["dropped"]] == ["reply-cut-short", "cancelled-call"]
    assert result["retry"]["atRisk"] == []


def test_nothing_that_finished_is_done_again(talkfold: Talkfold, result: Any, log: list[Any]) -> None:
    assert result["done"]["notebook"] == DONE
    folder = Path(result["folder"])
    assert (folder / "trip.txt").read_text().splitlines() == DONE
    assert len((folder / "map.txt").read_text().splitlines()) == 5
    retried = next(row["number"] for row in log if row["action"] == {"type": "retry"})
    assert [part(row)["name"] for row in log[retried:] if part(row).get("type") == "tool-call"] == ["draw_map"]
    assert part(log[-1]) == {"type": "finish", "reason": "stop"}
    state = talkfold("show", "weekend", "--json", "--db", result["database"]).json["state"]
    assert state["status"] == "idle"
    assert json.dumps(state).count('"done"') == 7


def test_somebody_else_said_yes(log: list[Any]) -> None:
    (yes,) = [row for row in log if row["action"].get("state") == "running"]
    assert yes["meta"]["decision"] == "approved"
    assert part(log[yes["meta"]["answers"] - 1])["name"] == "book_hut"
    (booked,) = [row for row in log if part(row).get("type") == "tool-result" and "booked" in json.dumps(part(row))]
    assert booked["number"] > yes["number"]


def test_the_weather_comes_from_the_tool_server(log: list[Any]) -> None:
    (asked,) = [row for row in log if part(row).get("name") == "forecast"]
    answer = part(log[asked["number"]])["output"]
    assert "rain from noon" in answer["content"][0]["text"]
    assert "structuredContent" in answer, "a result as the protocol has it"


def test_the_packer_is_an_agent_inside_a_call(log: list[Any]) -> None:
    (asked,) = [row for row in log if part(row).get("name") == "delegate_to_packer"]
    inside = [part(row) for row in log if row["action"].get("within") == part(asked)["id"]]
    assert [each["name"] for each in inside if each["type"] == "tool-call"] == ["pack", "pack", "pack"]


def test_the_proof_holds_afterwards(talkfold: Talkfold, result: Any) -> None:
    assert result["check"]["problems"] == []
    report = talkfold("check", "weekend", "--json", "--db", result["database"])
    assert (report.code, report.json["digest"]) == (0, result["check"]["digest"])
    assert talkfold("check", "--all", "--db", result["database"]).code == 0


# ---- how it is told -------------------------------------------------------------------------------------


def test_as_a_page_to_read(shows: Shows, talkfold: Talkfold, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shows.piped.out
    for act, heading in enumerate(ACTS, start=1):
        assert f"\n{act}  {heading}\n" in shown
    assert not set("\x1b\t\r") & set(shown)
    acts, _, around = shown.partition("Look around\n")
    assert max(map(len, acts.splitlines())) <= 80
    export, *commands = (row.strip() for row in around.splitlines())
    assert export == f"export TALKFOLD_DB={shows.piped.folder.resolve() / 'mine.db'}"
    monkeypatch.setenv("TALKFOLD_DB", export.partition("=")[2])
    assert len(commands) == 5
    for command in commands:
        assert talkfold(*command.split("talkfold ", 1)[1].split()).code == 0


def test_without_the_mcp_sdk_it_says_what_to_install_and_leaves_the_weather_out(shows: Shows) -> None:
    assert "pip install 'talkfold[mcp]'" in shows.piped.out
    assert "forecast" not in shows.piped.out
    assert "nothing was packed or booked\n   twice" in shows.piped.out
    assert "pip install" not in shows.terminal.out


def test_a_file_of_the_persons_own(shows: Shows, talkfold: Talkfold) -> None:
    assert "3 conversations from your file" in shows.piped.out
    sessions = talkfold("list", "--jsonl", "--db", str(shows.piped.folder / "mine.db")).jsonl
    assert {session["id"] for session in sessions} >= {"chat-1", "chat-2", "weekend"}
    assert len(sessions) == 4


def test_on_a_narrow_terminal(shows: Shows) -> None:
    shown = shows.terminal.out
    assert "\x1b[1m" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    rows = [row.rpartition("\r")[2].rstrip() for row in plain.split("\n")]
    acts, around = rows[: rows.index("Look around")], rows[rows.index("Look around") + 1 :]
    assert max(map(len, acts)) <= 60
    assert [row for act, heading in enumerate(ACTS, start=1) if (row := f"{act}  {heading}") not in acts] == []
    commands = [row for row in around if row]
    assert len(commands) == 6, "no command is broken in two, however narrow it is"
    assert commands[0].endswith("/chat.db")
    for words in ("the agent's process starts", "draw_map is at work"):
        assert words in plain, "one sees that something takes a moment"


def test_with_real_conversations(shows: Shows) -> None:
    if not AIRLINE.exists():
        pytest.skip("the folder ../shared with real conversations is not here")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shows.terminal.out)
    assert "24 conversations from your file" in plain
    assert "and 18 more" in plain


# ---- what it leaves -------------------------------------------------------------------------------------


def in_folder(folder: Path) -> list[str]:
    """The command lines of the processes that have their folder somewhere below this one."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder.resolve()):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
        except OSError:
            continue  # it has ended, or is another person's
    return [each for each in found if each]


def soon(true: Callable[[], bool], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not (met := true()) and time.monotonic() < until:
        time.sleep(0.02)
    return met


def test_it_leaves_no_process_and_nothing_in_the_folder_it_is_called_from(shows: Shows) -> None:
    for shown in shows:
        assert list((shown.folder / "here").iterdir()) == []
        (left,) = (shown.folder / "there").iterdir()
        assert {file.name for file in left.iterdir()} - {"trip.txt", "map.txt"} <= {"chat.db", "chat.db-lock"}
        assert soon(lambda folder=shown.folder: in_folder(folder) == []), in_folder(shown.folder)


def test_interrupted_it_ends_every_process_and_says_nothing(tmp_path: Path) -> None:
    process = start(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    for row in process.stdout:
        if "rain from noon" in row:
            break
    modules = {each.partition(" -m ")[2].split()[0] for each in in_folder(tmp_path / "there")}
    assert modules == {"talkfold.cli.demo.worker", "talkfold.cli.demo.weather"}, "real processes of their own"
    process.send_signal(signal.SIGINT)
    out, words = process.communicate(timeout=20)
    assert (process.returncode, words) == (130, "")
    assert "Traceback" not in out
    assert soon(lambda: in_folder(tmp_path) == []), in_folder(tmp_path)
    assert list((tmp_path / "there").iterdir()) == []


def test_an_agent_that_cannot_start_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['mcp.client.session'] = None")
    more = {"PYTHONPATH": str(tmp_path)}
    process = start(tmp_path, more=more, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, words = process.communicate(timeout=60)
    assert process.returncode == 70
    assert "the agent's process ended early: ModuleNotFoundError" in words
    assert "Traceback" not in out + words
    assert list((tmp_path / "there").iterdir()) == []


def test_killed_it_leaves_no_process_either(tmp_path: Path) -> None:
    process = start(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    for row in process.stdout:
        if "rain from noon" in row:
            break
    process.kill()
    process.communicate()
    assert soon(lambda: in_folder(tmp_path) == []), in_folder(tmp_path)


def test_it_never_writes_to_a_database_that_is_there(world: Talkfold) -> None:
    before = world("list", "--json").json
    refused = world("demo", "--db", "chat.db")
    assert (refused.code, refused.out) == (2, "")
    assert world("list", "--json").json == before
