"""README says what is true: its code runs, its commands run, its links lead somewhere, its limits are the code's."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from talkfold.cli.app import run
from talkfold.cli.commands import COMMANDS
from talkfold.codec import MAX_ACTION_BYTES, MAX_DEPTH
from talkfold.store.lease import LEASE_SECONDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_its_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks("python")
    assert len(examples) == 3
    code = "\n".join(examples)
    assert code.count("assert ") >= 7
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TALKFOLD_DB", "chat.db")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    chat = {"id": "chat-1", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi!"}]}
    (tmp_path / "chats.jsonl").write_text(json.dumps(chat))
    (tmp_path / "run.jsonl").write_text('{"type":"send","id":"u-1","text":"Hi"}')
    commands = [
        shlex.split(line, comments=True)[1:]
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith("talkfold ")
    ]
    assert len(commands) == 10
    for command in commands:
        assert run(command) == 0, command
    assert "Traceback" not in capsys.readouterr().err


def test_its_two_commands_are_in_the_makefile() -> None:
    targets = re.findall(r"^make ([\w-]+)", "\n".join(blocks("sh")), re.MULTILINE)
    assert targets == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_its_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) >= 4
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_limits_are_those_of_the_code() -> None:
    assert f"{MAX_ACTION_BYTES // 2**20} MiB" in README
    assert f"{MAX_DEPTH} levels" in README
    assert f"after {LEASE_SECONDS:g} seconds" in README


def test_the_changelog_names_every_command() -> None:
    assert [command.name for command in COMMANDS if f"`{command.name}`" not in CHANGELOG] == []
