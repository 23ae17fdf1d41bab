"""The command line, run inside the test, and a small world of files and sessions to run it on."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from cli_world import CHATS, ORDER, Result, Talkfold, jsonl

from talkfold.actions import MessageStart, Part, Send, ToolCall, ToolPhase
from talkfold.cli.app import run
from talkfold.store import Hold, Waiting, open_store
from talkfold.store.protocol import SessionStore


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


@pytest.fixture
def waiting(world: Talkfold, tmp_path: Path) -> Iterator[Talkfold]:
    """The same, and ``order-18``, whose run lives: its call ``c1`` waits for a person."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_store(tmp_path / "chat.db")) as store,
    ):
        portal.call(_park, store)
        yield world


async def _park(store: SessionStore) -> None:
    hold = Hold("run-1", 600)
    await store.create("order-18")
    await store.start("order-18", Send("u-1", "Pay, please."), hold=hold)
    call = ToolCall("a-1", "c1", "pay", {"total": "25.00"})
    number = (await store.append("order-18", [Part(MessageStart("a-1")), Part(call)], hold=hold)).last
    asked = ToolPhase("pay", "awaiting-confirmation", "Pay 25.00?")
    waiting = Waiting(number, "c1", "pay", "approval", asked.prompt)
    await store.park("order-18", [asked], hold=hold, waiting=waiting)
