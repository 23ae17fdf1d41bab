"""How the command behaves towards terminals, pipes, signals and faults."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import ORDER, Talkfold, jsonl

import talkfold.cli.app as app
from talkfold.cli.commands import COMMANDS
from talkfold.cli.output import clean, preview

TITLE = "\x1b[2J\u202eevil\t"
NASTY = "\x1b[2J\x07\u202eevil\x00\ud83d\tend"


def start(*arguments: str, environment: dict[str, str] | None = None, **pipes: int) -> subprocess.Popen[bytes]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-m", "talkfold", *arguments], env={**kept, **(environment or {})}, **pipes
    )


# ---- what a terminal gets -------------------------------------------------------------------------------


def test_clean_leaves_nothing_that_acts_on_a_terminal() -> None:
    assert clean(NASTY) == r"\x1b[2J\x07\u202eevil\x00\ud83d\tend"
    assert clean("Grüße, 東京, 👩‍🚀") == "Grüße, 東京, 👩‍🚀"


@pytest.mark.parametrize("width", [1, 5, 72])
def test_preview_keeps_to_its_width(width: int) -> None:
    assert len(preview("many words " * 100, width)) <= width
    assert preview("a\n  b", 9) == "a b"


def test_text_from_a_conversation_is_never_trusted(talkfold: Talkfold) -> None:
    def part(**part: object) -> dict[str, object]:
        return {"type": "part", "part": part}

    log = [
        {"talkfold": 1, "session": {"id": "evil", "title": TITLE}},
        {"type": "send", "id": "u", "text": NASTY},
        part(type="message-start", messageId="a"),
        part(type="tool-call", messageId="a", id=NASTY, name=NASTY, input={NASTY: NASTY}),
        part(type="tool-error", id=NASTY, error=NASTY),
        part(type="error", error=NASTY),
    ]
    assert talkfold("import", "-", stdin=jsonl(log)).code == 0
    for command in (
        "show evil",
        "steps evil",
        "retry evil",
        "follow evil",
        "list",
        "diff evil 0",
        "diff evil 5 2",
        "blame evil",
        "blame evil --field error",
        "lanes evil",
        "stats evil",
        "whatif evil --skip 3",
        "whatif evil --skip-type error",
    ):
        ended = talkfold(*command.split())
        assert ended.code == 0
        assert not set(ended.out + ended.err) & set("\x1b\x07\x00\t\u202e\ud83d"), command
    exported = talkfold("export", "evil", "--format", "openai")  # JSON escapes control characters by itself
    assert not set(exported.out + exported.err) & set("\x1b\x07\x00\t\ud83d")
    renamed = talkfold("rename", "evil", TITLE)
    assert not set(renamed.err) & set("\x1b\t\u202e")


def test_a_pipe_gets_plain_text_without_tabs(world: Talkfold) -> None:
    for command in (["list"], ["show", "order-17"], ["steps", "order-17"], ["follow", "order-17"], ["check", "--all"]):
        out = world(*command).out
        assert out
        assert "\x1b" not in out
        assert "\t" not in out


@pytest.mark.parametrize("command", [["list"], ["show", "order-17"], ["follow", "order-17"], ["--help"]])
def test_force_color_and_no_color(world: Talkfold, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in world(*command).out
    monkeypatch.setenv("NO_COLOR", "1")
    out = world(*command).out
    assert not any(f"\x1b[{colour}" in out for colour in ("3", "9", "1;3"))


def test_json_is_never_coloured(world: Talkfold, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = world("show", "order-17", "--json").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert world("show", "order-17", "--json").out == plain


def test_a_terminal_gets_a_table_and_progress(world: Talkfold, tmp_path: Path) -> None:
    def on_terminal(*arguments: str) -> str:
        here, there = pty.openpty()
        environment = {"TALKFOLD_DB": str(tmp_path / "chat.db"), "TERM": "xterm", "COLUMNS": "100"}
        process = start(*arguments, environment=environment, stdout=there, stderr=there)
        os.close(there)
        shown = b""
        try:
            while more := os.read(here, 65536):
                shown += more
        except OSError:
            pass  # Linux: the other end is closed
        os.close(here)
        assert process.wait() == 0
        return shown.decode()

    shown = on_terminal("list")
    assert "\x1b[1m" in shown
    assert "order-17" in shown
    assert "importing" in on_terminal("import", "--format", "openai", str(tmp_path / "chats.jsonl"))
    assert "settling" in on_terminal("settle", "--all")


# ---- pipes, signals, faults -----------------------------------------------------------------------------


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(jsonl(ORDER[:4] + ORDER[3:4] * 3000))
    process = start("fold", "--each", str(tmp_path / "run.jsonl"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"{")
    process.stdout.close()
    assert process.stderr is not None
    words = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), words) == (app.PIPE_CLOSED, b"")


@pytest.mark.parametrize("command", [["--help"], *([each.name, "--help"] for each in COMMANDS), ["list"]], ids=" ".join)
def test_head_takes_its_line_and_the_command_ends_quietly(world: Talkfold, tmp_path: Path, command: list[str]) -> None:
    environment = {"TALKFOLD_DB": str(tmp_path / "chat.db")}
    process = start(*command, environment=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    head = subprocess.run(["head", "-1"], stdin=process.stdout, capture_output=True, check=True)
    process.stdout.close()
    _, words = process.communicate(timeout=30)
    assert head.stdout.startswith(b"id " if command == ["list"] else b"Usage: talkfold")
    assert (process.returncode in (0, app.PIPE_CLOSED), words) == (True, b"")  # as fast as head is


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_ends_with_70_and_a_clear_sentence(tmp_path: Path, unbuffered: str) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    log = tmp_path / "log.jsonl"
    log.write_bytes(jsonl(ORDER))
    with full.open("wb") as out:
        run = start(
            "fold", str(log), environment={"PYTHONUNBUFFERED": unbuffered}, stdout=out.fileno(), stderr=subprocess.PIPE
        )
        _, words = run.communicate(timeout=30)
    assert run.returncode == 70
    assert b"No space left" in words
    assert b"should not have happened" not in words


def test_an_unbuffered_stdout_is_written_whole_or_told(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(jsonl([{"type": "send", "id": "u-1", "text": "x" * 3_000_000}]))
    run = start("fold", str(log), environment={"PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE)
    assert run.stdout is not None
    run.stdout.read(1000)
    run.stdout.close()
    assert run.wait(30) == 141


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [("list >&-", 70, "stdout is closed"), ("fold - <&-", 2, "stdin is closed"), ("list 2>&-", 3, "")],
)
def test_a_closed_stream_is_told_without_a_traceback(tmp_path: Path, command: str, code: int, words: str) -> None:
    run = subprocess.run(
        ["sh", "-c", f'"$0" -m talkfold {command}', sys.executable],
        env={**os.environ, "TALKFOLD_DB": str(tmp_path / "none.db")},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert run.returncode == code, run.stderr
    assert words in run.stderr
    assert "Traceback" not in run.stderr


def test_interrupted_ends_with_130_and_without_a_traceback() -> None:
    process = start("fold", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    # Once a line longer than the pipe went through, the command is reading.
    process.stdin.write(jsonl([{"type": "send", "id": "u", "text": "x" * 200_000}]))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, words = process.communicate()
    assert (process.returncode, words) == (app.INTERRUPTED, b"")


def test_what_should_not_happen_ends_with_70_and_says_how_to_see_more(
    talkfold: Talkfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("a fault for the test")

    monkeypatch.setattr("talkfold.cli.folding.fold", broken)
    ended = talkfold("fold", "-")
    assert (ended.code, ended.out) == (app.INTERNAL, "")
    assert "a fault for the test" in ended.err
    assert "TALKFOLD_DEBUG=1" in ended.err
    assert "Traceback" not in ended.err
    monkeypatch.setenv("TALKFOLD_DEBUG", "1")
    assert "Traceback" in talkfold("fold", "-").err


def test_an_error_of_talkfold_shows_no_traceback_even_then(talkfold: Talkfold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALKFOLD_DEBUG", "1")
    ended = talkfold("fold", "-", stdin=b"nonsense\n")
    assert ended.code == 6
    assert ended.err.startswith("talkfold: line 1 ")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("missing", ["cyclopts", "rich", "platformdirs"])
def test_without_its_extra_it_says_what_to_install(missing: str) -> None:
    hide = f"import sys; sys.modules[{missing!r}] = None; from talkfold.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", hide, "list"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "The command line needs more: pip install 'talkfold[cli]'\n"


def test_a_terminal_without_unicode_is_no_fault(world: Talkfold, tmp_path: Path) -> None:
    environment = {"TALKFOLD_DB": str(tmp_path / "chat.db"), "PYTHONIOENCODING": "ascii"}
    process = start("show", "order-17", environment=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, words = process.communicate()
    assert (process.returncode, words) == (0, b"")
    assert rb"\u2192" in out
