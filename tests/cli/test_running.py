"""Sessions that a living run owns, and those of dead ones: ``list``, ``show``, ``settle``."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from cli_world import ORDER, Talkfold, jsonl

RUN = """
import asyncio, os, sys
from talkfold.actions import MessageStart, Part, Send, ToolCall
from talkfold.store import Hold, Waiting, open_store
path, session, kind = sys.argv[1:]
async def main():
    hold = Hold("run-7", 600)
    async with open_store(path) as store:
        last = (await store.start(session, Send("u-2", "Pay, please."), hold=hold)).number
        await store.append(session, [Part(MessageStart("a-2")), Part(ToolCall("a-2", "c9", "pay", {}))], hold=hold)
        if kind != "-":
            waiting = Waiting(last + 2, "c9", "pay", kind, expires=4102444800000)
            await store.park(session, [], hold=hold, waiting=waiting)
        print("running", flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""

Running = Callable[..., "subprocess.Popen[str]"]


@contextmanager
def _run(path: Path, session: str, kind: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", RUN, str(path), session, kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def running(world: Talkfold, tmp_path: Path) -> Iterator[Running]:
    """``running("order-17")`` is a process that runs this session until the test ends, or until it is killed."""
    with ExitStack() as stack:
        yield lambda session, kind="-": stack.enter_context(_run(tmp_path / "chat.db", session, kind))


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    ("kind", "words"), [("-", ""), ("approval", "waits for approval of pay"), ("client", "waits for the result of pay")]
)
def test_a_living_run_is_told_of(world: Talkfold, running: Running, kind: str, words: str) -> None:
    process = running("order-17", kind)
    for command in (["list"], ["show", "order-17"]):
        out = world(*command).out
        assert "run-7 by " in out
        assert f", process {process.pid} since " in out
        assert words in out
        assert ("waits" in out) is bool(words)


def test_a_terminal_shows_all_of_a_run_however_narrow_it_is(
    world: Talkfold, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = running("order-17", "approval")
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "60")):
        monkeypatch.setenv(name, value)
    out = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", world("list").out).split())
    assert "order-17: run run-7 by " in out
    assert f", process {process.pid} since " in out
    assert "waits for approval of pay until 2100-01-01" in out


def test_a_living_run_in_json(world: Talkfold, running: Running) -> None:
    process = running("order-17", "approval")
    rows = {row["id"]: row for row in world("list", "--json").json["sessions"]}
    assert [row["id"] for row in rows.values() if "lease" in row] == ["order-17"]
    lease = rows["order-17"]["lease"]
    assert world("show", "order-17", "--json").json["session"]["lease"] == lease
    assert lease["run"] == "run-7"
    assert lease["holder"].endswith(f", process {process.pid}")
    assert lease["since"] < lease["expires"]
    number = len(ORDER) + 3
    assert lease["waiting"] == {
        "number": number,
        "callId": "c9",
        "name": "pay",
        "kind": "approval",
        "expires": "2100-01-01T00:00:00.000Z",
    }


def test_a_dead_run_is_not_told_of(world: Talkfold, running: Running) -> None:
    killed(running("order-17"))
    assert "run-7" not in world("list").out + world("show", "order-17").out
    assert all("lease" not in row for row in world("list", "--jsonl").jsonl)


def test_settling_leaves_a_living_run_alone(world: Talkfold, running: Running) -> None:
    process = running("order-17")
    before = world("show", "order-17", "--json").json
    ended = world("settle", "order-17")
    assert ended.code == 0
    assert f", process {process.pid}" in ended.out
    assert "talkfold stop order-17" in ended.err
    assert "0 sessions settled, 1 running, 0 in order." in ended.err
    assert world("show", "order-17", "--json").json == before
    answer = world("settle", "order", "--json").json
    assert (answer["settled"], answer["inOrder"]) == ([], 0)
    assert [row["lease"]["run"] for row in answer["running"]] == ["run-7"]


def test_settling_a_dead_run_logs_its_stop_once(world: Talkfold, running: Running) -> None:
    killed(running("order-17"))
    ended = world("settle", "order-17")
    assert (ended.code, "1 session settled, 0 running, 0 in order." in ended.err) == (0, True)
    assert "order-17  settled" in ended.out
    last = world("steps", "order-17", "--jsonl").jsonl[-1]
    assert (last["action"], last["run"], last["actor"]) == ({"type": "stop"}, "run-7", "talkfold")
    again = world("settle", "order-17")
    assert (again.code, again.out) == (0, "")
    assert "0 sessions settled, 0 running, 1 in order." in again.err
    assert world("check", "order-17").code == 0


def test_settling_all_of_them(world: Talkfold, running: Running) -> None:
    open_call = [{"talkfold": 1, "session": {"id": "left"}}, *ORDER[:5]]
    assert world("import", "-", stdin=jsonl(open_call)).code == 0
    running("chat-1")
    killed(running("order-17"))
    answer = world("settle", "--all", "--json").json
    assert {row["id"] for row in answer["settled"]} == {"left", "order-17"}
    assert [row["id"] for row in answer["running"]] == ["chat-1"]
    assert answer["inOrder"] == 1
    assert {row["status"] for row in answer["settled"]} == {"idle"}


def test_settling_an_owners(world: Talkfold) -> None:
    left = jsonl([{"talkfold": 1, "session": {"id": "left"}}, *ORDER[:5]])
    for owner in ("ann", "bob"):
        assert world("import", "--owner", owner, "-", stdin=left).code == 0
    answer = world("settle", "--all", "--owner", "ann", "--json").json
    assert [(row["id"], row["owner"]) for row in answer["settled"]] == [("left", "ann")]
    assert world("show", "left", "--owner", "bob", "--json").json["session"]["status"] == "streaming"


@pytest.mark.parametrize("wrong", [[], ["order-17", "--all"]])
def test_settling_wants_sessions_or_all(world: Talkfold, wrong: list[str]) -> None:
    ended = world("settle", *wrong)
    assert (ended.code, ended.out) == (2, "")
    assert "--all" in ended.err


def test_settling_what_is_not_there(world: Talkfold) -> None:
    assert world("settle", "order-17", "nobody").code == 3
