"""``follow``, ``stop``, ``approve``, ``deny``: commands about a run that goes on in another process."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_world import ORDER, Talkfold

from talkfold.actions import Finish, MessageStart, Part, SessionAction, TextDelta, ToolCall, ToolResult
from talkfold.cli.telling import Telling

SCRIPT = str(Path(__file__).with_name("live_run.py"))
SEND = len(ORDER) + 1
"""The number of the action that the run begins with."""

Process = subprocess.Popen[str]
Running = Callable[[str], Process]


@contextmanager
def _run(folder: Path, play: str) -> Iterator[Process]:
    command = [sys.executable, SCRIPT, "chat.db", "order-17", play]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            if play in ("pay", "scroll"):
                assert process.stdout.readline() == "parked\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def running(world: Talkfold, tmp_path: Path) -> Iterator[Running]:
    """``running("talk")`` is a process that runs ``order-17``, at least until the test ends."""
    with ExitStack() as stack:
        yield lambda play: stack.enter_context(_run(tmp_path, play))


@contextmanager
def command(folder: Path, *arguments: str, **pipes: Any) -> Iterator[Process]:
    """A command of ours in a process of its own."""
    environment = {**os.environ, "TALKFOLD_DB": str(folder / "chat.db"), "PYTHONWARNINGS": "error"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | pipes
    with subprocess.Popen(
        [sys.executable, "-m", "talkfold", *arguments], env=environment, cwd=folder, text=True, **pipes
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def rest(process: Process) -> tuple[str, str]:
    """What is left to read of a process, until its end. ``communicate`` would miss what ``readline`` read ahead."""
    assert process.stdout is not None
    assert process.stderr is not None
    read = process.stdout.read(), process.stderr.read()
    process.wait(20)
    return read


def log(world: Talkfold, first: int = SEND) -> list[Any]:
    return world("steps", "order-17", "--from", str(first), "--jsonl").jsonl


# ---- stop -----------------------------------------------------------------------------------------------


def test_a_run_in_another_process_hears_the_stop(world: Talkfold, running: Running) -> None:
    process = running("talk")
    ended = world("stop", "order-17", "--reason", "enough", "--by", "ann")
    assert (ended.code, ended.out) == (0, "")
    assert f", process {process.pid} has ended (aborted)." in ended.err
    assert process.wait(10) == 0
    (stop,) = [row for row in log(world) if row["action"]["type"] == "stop"]
    assert (stop["actor"], stop["meta"]) == ("ann", {"reason": "enough"})
    assert log(world)[-1]["action"]["part"] == {"type": "finish", "reason": "aborted"}


def test_a_stop_in_json_says_which_run_and_how_it_ended(world: Talkfold, running: Running) -> None:
    process = running("pay")
    run = world("show", "order-17", "--json").json["session"]["lease"]
    answer = world("stop", "order", "--json").json
    assert answer == {
        "id": "order-17",
        "stopped": True,
        "ended": True,
        "run": run["run"],
        "holder": run["holder"],
        "number": log(world)[-1]["number"],
        "part": {"type": "finish", "reason": "aborted"},
    }
    assert process.wait(10) == 0


def test_a_run_that_does_not_end_is_not_said_to_have_ended(world: Talkfold, running: Running) -> None:
    running("stare")
    ended = world("stop", "order-17", "--wait", "0.2")
    assert ended.code == 0
    assert "is stopped, but has not ended within 0.2 s" in ended.err
    again = world("stop", "order-17", "--wait", "0", "--json").json
    assert (again["stopped"], again["ended"]) == (False, False), "it is stopped once"
    assert [row["action"]["type"] for row in log(world)].count("stop") == 1


def test_what_a_dead_run_left_is_settled_by_the_stop(world: Talkfold, running: Running) -> None:
    process = running("talk")
    process.kill()
    process.wait()
    assert "the stop settles what a dead run had left" in world("stop", "order-17").err
    assert world("show", "order-17", "--json").json["session"]["status"] == "idle"


def test_where_nothing_runs_nothing_is_logged(world: Talkfold) -> None:
    ended = world("stop", "order-17")
    assert (ended.code, ended.out, ended.err) == (0, "", "Nothing runs in order-17.\n")
    assert world("stop", "order-17", "--json").json == {"id": "order-17", "stopped": False, "ended": True}
    assert len(log(world, 1)) == len(ORDER)


@pytest.mark.parametrize(("wrong", "code"), [(["nobody"], 3), (["order-17", "--wait", "-1"], 2)])
def test_a_stop_that_makes_no_sense(world: Talkfold, wrong: list[str], code: int) -> None:
    assert world("stop", *wrong).code == code


# ---- approve, deny --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [["c9", "--yes"], ["--yes"], ["-y"], ["c9", "--input", '{"total": "25.00"}'], ["--input", '{"total":"25.00"}']],
)
def test_a_call_that_waits_is_let_run(world: Talkfold, running: Running, tmp_path: Path, how: list[str]) -> None:
    process = running("pay")
    ended = world("approve", "order-17", *how, "--by", "ann", "--reason", "it is cheap")
    assert (ended.code, ended.out) == (0, "")
    for words in ("call c9 waits", 'pay {"total":"25.00"}', "Pay 25.00?", "pay is approved"):
        assert words in ended.err
    assert process.wait(10) == 0
    assert (tmp_path / "paid.txt").read_text() == "25.00\n"
    (yes,) = [row for row in log(world) if row["action"].get("state") == "running"]
    assert yes["actor"] == "ann"
    assert yes["meta"] == {"answers": SEND + 2, "decision": "approved", "reason": "it is cheap"}


def test_a_call_that_waits_is_refused(world: Talkfold, running: Running, tmp_path: Path) -> None:
    process = running("pay")
    answer = world("deny", "order-17", "c9", "--yes", "--reason", "too much", "--json").json
    assert answer == {
        "id": "order-17",
        "call": "c9",
        "name": "pay",
        "input": {"total": "25.00"},
        "decision": "denied",
        "number": SEND + 4,
    }
    assert process.wait(10) == 0
    assert not (tmp_path / "paid.txt").exists()
    assert "declined this call: too much" in world("show", "order-17").out
    said = json.dumps(world("show", "order-17", "--json").json["state"]["messages"][-1])
    assert "It says: Error [cancelled] pay: the person declined this call: too much" in said


@pytest.mark.parametrize("decision", ["approve", "deny"])
@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        (["c8", "--yes"], 4, "'c9' (pay) is the one that waits"),
        (["c9", "--input", '{"total": "1.00"}'], 4, "its input is another"),
        (["c9", "--input", "25"], 4, "its input is another"),
        (["c9", "--input", "{"], 6, "not valid JSON"),
        (["c9"], 2, "nobody here to ask"),
    ],
)
def test_an_answer_that_does_not_fit_counts_for_nothing(
    world: Talkfold, running: Running, decision: str, how: list[str], code: int, words: str
) -> None:
    running("pay")
    before = world("show", "order-17", "--json").out
    ended = world(decision, "order-17", *how)
    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err
    assert world("show", "order-17", "--json").out == before


def test_only_a_call_that_waits_for_a_person_is_answered(world: Talkfold, running: Running) -> None:
    assert "no call waits" in world("approve", "order-17", "--yes").err
    running("scroll")
    ended = world("approve", "order-17", "c9", "--yes")
    assert (ended.code, "it waits for the result from a client" in ended.err) == (4, True)


@pytest.mark.parametrize(("typed", "paid"), [("y", True), ("yes", True), ("n", False), ("", False)])
def test_on_a_terminal_the_person_is_asked(
    world: Talkfold, running: Running, tmp_path: Path, typed: str, paid: bool
) -> None:
    process = running("pay")
    here, there = pty.openpty()
    with command(tmp_path, "approve", "order-17", stdin=there) as asking:
        os.write(here, f"{typed}\n".encode())
        out, words = asking.communicate(timeout=20)
    os.close(here)
    os.close(there)
    assert (asking.returncode, out) == (0, "")
    assert "Pay 25.00?\nLet it run? [y/N] " in words
    if paid:
        assert process.wait(10) == 0
    else:
        assert "Nothing was answered" in words
        assert "waits for approval of pay" in world("list").out
    assert (tmp_path / "paid.txt").exists() is paid


# ---- follow ---------------------------------------------------------------------------------------------


def test_following_shows_what_comes_until_the_run_ends(world: Talkfold, running: Running, tmp_path: Path) -> None:
    process = running("pay")
    with command(tmp_path, "follow", "order-17") as following:
        assert following.stdout is not None
        shown = [following.stdout.readline() for _ in range(3)]
        assert shown == [
            "you       Pay, please.\n",
            'agent     calls pay {"total": "25.00"}\n',
            "          pay waits for a yes: Pay 25.00?\n",
        ]
        assert world("approve", "order-17", "--yes").code == 0
        out, words = rest(following)
    assert following.returncode == 0
    assert out.splitlines() == [
        "          pay may run",
        "          → 25.00 are paid",
        "agent     It says: 25.00 are paid",
        "          finished (stop)",
    ]
    assert words.startswith("run ")
    assert f", process {process.pid} since " in words
    assert words.endswith("Answer it with `talkfold approve order-17 c9` or `talkfold deny order-17 c9`.\n")


def test_following_for_programs(world: Talkfold, running: Running, tmp_path: Path) -> None:
    running("talk")
    with command(tmp_path, "follow", "order-17", "--jsonl", "--after", "2") as following:
        assert following.stdout is not None
        rows = [json.loads(following.stdout.readline()) for _ in range(SEND)]
        assert [row["number"] for row in rows] == list(range(3, SEND + 3)), "as soon as they are there"
        assert world("stop", "order-17").code == 0
        out, _ = rest(following)
    assert following.returncode == 0
    rows += [json.loads(row) for row in out.splitlines()]
    assert rows == log(world, 3)


def test_ctrl_c_ends_the_watching_and_leaves_the_run_alone(world: Talkfold, running: Running, tmp_path: Path) -> None:
    process = running("talk")
    with command(tmp_path, "follow", "order-17") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "you       Pay, please.\n"
        following.send_signal(signal.SIGINT)
        _, words = rest(following)
    assert following.returncode == 0
    assert len(words.splitlines()) == 1, words
    assert process.poll() is None
    assert "lease" in world("show", "order-17", "--json").json["session"]


def test_a_reader_that_goes_away_ends_the_watching(running: Running, tmp_path: Path) -> None:
    running("talk")
    with command(tmp_path, "follow", "order-17", "--jsonl") as following:
        assert following.stdout is not None
        following.stdout.readline()
        following.stdout.close()
        assert following.wait(20) == 141


def test_following_ends_when_the_process_dies(world: Talkfold, running: Running, tmp_path: Path) -> None:
    process = running("talk")
    with command(tmp_path, "follow", "order-17", "--json") as following:
        assert following.stderr is not None
        assert following.stderr.readline().startswith("run ")
        process.kill()
        out, _ = rest(following)
    assert following.returncode == 0
    rows = json.loads(out)
    assert rows == log(world)
    assert (rows[-1]["action"], rows[-1]["meta"]) == ({"type": "stop"}, {"cause": "reload"})


def test_without_a_run_the_last_turn_is_shown(world: Talkfold, running: Running) -> None:
    running("talk")
    assert world("stop", "order-17").code == 0
    ended = world("follow", "order-17")
    assert (ended.code, ended.err) == (0, "Nothing runs in order-17 now.\n")
    assert ended.out.startswith("you       Pay, please.\nagent     word")
    assert ended.out.endswith("          finished (aborted)\n")
    assert world("follow", "order-17", "--after", "0").out.startswith("you       Two blue mugs, please.\n")


@pytest.mark.parametrize(("wrong", "code"), [("-1", 2), ("1000", 2)])
def test_following_from_nowhere(world: Talkfold, wrong: str, code: int) -> None:
    ended = world("follow", "order-17", f"--after={wrong}")
    assert (ended.code, ended.out) == (code, "")


# ---- how it is told -------------------------------------------------------------------------------------


def told(*actions: SessionAction, width: int = 20) -> list[str]:
    telling = Telling(width)
    lines = [line for action in actions for line in telling.lines(action)] + list(telling.rest())
    return [line.lead.text + "".join(span.text for span in line.spans) for line in lines]


def text(*pieces: str, within: str | None = None) -> list[Part]:
    return [Part(TextDelta("m", piece), within) for piece in pieces]


def test_a_streamed_text_is_told_in_lines_without_losing_a_word() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve".split()
    lines = told(Part(MessageStart("m")), *text(*(f"{word} " for word in words)))
    assert lines[0].startswith("agent     one ")
    assert " ".join(line[10:] for line in lines).split() == words
    assert max(len(line) for line in lines) <= 10 + 20


def test_a_sub_agents_words_are_its_own() -> None:
    call = ToolCall("m", "c1", "delegate_to_packer", {"task": "Pack."})
    lines = told(
        *text("I ask."),
        Part(call),
        *text("Yes.", within="c1"),
        Part(Finish("stop"), "c1"),
        Part(ToolResult("c1", "Yes.")),
        *text("Thanks."),
    )
    assert lines == [
        "agent     I ask.",
        "agent     asks packer: Pack.",
        "packer    Yes.",
        "          → Yes.",
        "agent     Thanks.",
    ]


def test_a_result_names_its_call_when_another_came_between() -> None:
    calls = [Part(ToolCall("m", call, f"tool_{call}", {})) for call in ("a", "b")]
    lines = told(*calls, Part(ToolResult("a", 1)), Part(ToolResult("b", 2)))
    assert lines[2:] == ["          → tool_a: 1", "          → 2"]


def test_what_is_told_leaves_a_terminal_alone() -> None:
    nasty = "\x1b[2J\x07\u202eevil\x00\ud83d\tend"
    call = ToolCall("m", nasty, f"delegate_to_{nasty}", {"task": nasty})
    lines = told(Part(call), *text(nasty, within=nasty), Part(ToolResult(nasty, nasty)))
    assert not set("".join(lines)) & set("\x1b\x07\x00\t\u202e\ud83d")
