"""The command line, run inside the test, and a small world of files and sessions to run it on."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from cli_world import CHATS, ORDER, Result, Talkfold, jsonl

from talkfold.cli.app import run


@pytest.fixture
def talkfold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Talkfold:
    """``talkfold("show", "x", stdin=b"…")`` in a folder of its own; its database is ``chat.db`` there."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TALKFOLD_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TALKFOLD_DB", str(tmp_path / "chat.db"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run(arguments)
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture
def world(talkfold: Talkfold, tmp_path: Path) -> Talkfold:
    """The same, with files in the folder and the sessions ``order-17``, ``chat-1`` and ``chat-2`` in the database."""
    header = {"talkfold": 1, "session": {"id": "order-17", "title": "Blue mugs", "metadata": {"shop": "north", "n": 7}}}
    (tmp_path / "order.jsonl").write_bytes(jsonl([header, *ORDER]))
    (tmp_path / "run.jsonl").write_bytes(jsonl(ORDER))
    (tmp_path / "chats.jsonl").write_bytes(jsonl([{**chat, "id": f"new-{chat['id']}"} for chat in CHATS]))
    (tmp_path / "messages.json").write_text(
        '[{"id":"u-1","role":"user","parts":[{"type":"text","text":"Hi"}]},{"id":"a-1","role":"assistant","parts":[]}]'
    )
    assert talkfold("import", "order.jsonl").code == 0
    assert talkfold("import", "--format", "openai", "-", stdin=jsonl(CHATS)).code == 0
    return talkfold
