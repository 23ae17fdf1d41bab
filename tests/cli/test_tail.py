"""``tail``: the end of a log, and what comes after it from another process."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from cli_world import ORDER, Talkfold
from test_live_commands import Process, command, rest

from talkfold.actions import MessageStart, Part, Send, SessionAction, Stop, TextDelta
from talkfold.store import open_store

LAST = len(ORDER)


def line(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.fixture
def following(world: Talkfold, tmp_path: Path) -> Iterator[Process]:
    """A process that follows ``order-17`` from its end."""
    with command(tmp_path, "tail", "order-17", "-f", "-n", "1", "--jsonl") as process:
        assert json.loads(line(process))["number"] == LAST
        yield process


def append(tmp_path: Path, *actions: SessionAction) -> None:
    """Log something from here, which is another process than the one that follows."""

    async def write() -> None:
        async with open_store(tmp_path / "chat.db") as store:
            await store.append("order-17", list(actions))

    anyio.run(write)


# ---- the end of a log -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ((), ["1", "2", "3-4", "5", "6", "7", "8", "9"]),
        (("-n", "2"), ["8", "9"]),
        (("--last", "6"), ["3-4", "5", "6", "7", "8", "9"]),
        (("-n", "0"), []),
        (("--after", "7"), ["8", "9"]),
        (("--after", "9"), []),
        (("-n", "3", "--every"), ["7", "8", "9"]),
        (("-n", "1", "--type", "text-delta"), ["7"]),
        (("-n", "2", "--type", "text-delta"), ["3-4", "7"]),
    ],
)
def test_the_newest_steps(world: Talkfold, options: tuple[str, ...], numbers: list[str]) -> None:
    ended = world("tail", "order-17", *options)
    assert ended.code == 0
    assert [each.split()[0] for each in ended.out.splitlines()[1:]] == numbers
    assert bool(ended.err) is not bool(numbers)


def test_the_rows_are_those_of_steps(world: Talkfold) -> None:
    assert world("tail", "order-17", "-n", "99").out == world("steps", "order-17").out
    assert world("tail", "order-17", "-n", "2", "--json").json == world("steps", "order-17", "--json").json[-2:]


def test_a_number_ahead_of_the_log_is_told_with_its_end(world: Talkfold) -> None:
    ended = world("tail", "order-17", "-f", "--after", "10")
    assert (ended.code, ended.out) == (2, "")
    assert str(LAST) in ended.err


@pytest.mark.parametrize("wrong", [("-n", "-1"), ("--after", "-1"), ("--type", "xyz")])
def test_what_makes_no_sense_is_refused(world: Talkfold, wrong: tuple[str, ...]) -> None:
    assert world("tail", "order-17", *wrong).code == 2


# ---- what comes -----------------------------------------------------------------------------------------


def test_what_another_process_writes_is_there_at_once(world: Talkfold, tmp_path: Path, following: Process) -> None:
    for number in range(LAST + 1, LAST + 4):
        append(tmp_path, Send(f"u-{number}", "More."))
        row = json.loads(line(following))
        assert (row["number"], row["action"]["id"]) == (number, f"u-{number}")


def test_it_goes_on_beyond_the_end_of_a_turn_until_ctrl_c(world: Talkfold, tmp_path: Path, following: Process) -> None:
    append(tmp_path, Stop(), Send("u-2", "Again."))
    assert [json.loads(line(following))["action"]["type"] for _ in range(2)] == ["stop", "send"]
    following.send_signal(signal.SIGINT)
    assert rest(following) == ("", "")
    assert following.returncode == 0


def test_a_session_that_is_erased_is_told(world: Talkfold, tmp_path: Path, following: Process) -> None:
    assert world("erase", "order-17", "--yes").code == 0
    out, err = rest(following)
    assert (following.returncode, out) == (3, "")
    assert "order-17" in err
    assert "erased" in err


def test_json_is_one_array_when_the_watching_has_ended(world: Talkfold, tmp_path: Path) -> None:
    with command(tmp_path, "tail", "order-17", "-f", "-n", "2", "--json") as process:
        assert process.stdout is not None
        begin = ""
        while not ('"stop"' in begin and begin.endswith("}}")):  # until the last row is there
            begin += process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        rows = json.loads(begin + rest(process)[0])
    assert [row["number"] for row in rows] == [LAST - 1, LAST]


def test_people_see_pieces_that_come_together_as_one_row(world: Talkfold, tmp_path: Path) -> None:
    with command(tmp_path, "tail", "order-17", "-f", "-n", "1") as process:
        assert line(process).startswith("number")
        assert line(process).split()[0] == str(LAST)
        pieces: list[SessionAction] = [Part(TextDelta("a-9", piece)) for piece in ("One ", "two.")]
        append(tmp_path, Part(MessageStart("a-9")), *pieces)
        assert line(process).split()[0] == str(LAST + 1)
        assert "One two." in line(process)
        append(tmp_path, Part(TextDelta("a-9", " Three.")))
        assert "Three." in line(process)
