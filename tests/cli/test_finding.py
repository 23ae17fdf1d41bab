"""``findings``: what is wrong with logs, or worth a look."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from cli_world import Result, Talkfold, jsonl
from msgspec import to_builtins

import talkfold.cli.finding as finding_command
from talkfold.audit.findings import FINDINGS, findings
from talkfold.codec import decode_logged


def part(**part: object) -> dict[str, object]:
    return {"type": "part", "part": part}


BROKEN: list[dict[str, Any]] = [
    {"type": "send", "id": "u-1", "text": "Two blue mugs, please."},
    part(type="message-start", messageId="a-1"),
    part(type="tool-call", messageId="a-1", id="c1", name="pay", input={}),
    part(type="tool-result", id="c\ud800\x1b[2J", output=1),
    part(type="finish", reason="stop"),
    {"type": "send", "id": "u-2", "text": "And?"},
]
"""Errors and warnings: a call without an outcome, an outcome without a call, a turn without an end."""


@pytest.fixture
def broken(world: Talkfold) -> Talkfold:
    """The world, and a session ``broken`` in it."""
    header = {"talkfold": 1, "session": {"id": "broken", "title": "Broken\x1b mugs"}}
    assert world("import", "-", stdin=jsonl([header, *BROKEN])).code == 0
    return world


def told(talkfold: Talkfold, session: str, *, living: bool = False) -> list[dict[str, Any]]:
    """What the library tells of a session's log as the command line gives it out."""
    rows = [decode_logged(row) for row in talkfold("steps", session, "--jsonl").out.splitlines()]
    found = [{"sessionId": session, **to_builtins(each)} for each in findings(rows, living=living)]
    return json.loads(json.dumps(found))


def severities(rows: Iterable[dict[str, Any]]) -> set[str]:
    return {row["severity"] for row in rows}


# ---- for programs ---------------------------------------------------------------------------------------


def test_they_are_those_of_the_library(broken: Talkfold) -> None:
    expected = told(broken, "broken")
    assert severities(expected) == {"error", "warning"}
    ended = broken("findings", "broken", "--json")
    assert (ended.code, ended.json) == (1, expected)
    assert broken("findings", "broken", "--jsonl").jsonl == expected


def test_all_sessions(broken: Talkfold) -> None:
    expected = [row for id_ in ("broken", "chat-2", "chat-1", "order-17") for row in told(broken, id_)]
    ended = broken("findings", "--all", "--jsonl")
    assert (ended.code, ended.jsonl) == (1, expected)
    assert "4 sessions read" in ended.err
    assert broken("findings", "--all", "--json").json == expected


def test_a_session_that_is_named_twice_is_read_once(broken: Talkfold) -> None:
    ended = broken("findings", "broken", "order-17", "bro", "--jsonl")
    assert ended.jsonl == [*told(broken, "broken"), *told(broken, "order-17")]
    assert "2 sessions read" in ended.err


def test_without_errors_it_ends_with_0(world: Talkfold) -> None:
    ended = world("findings", "order-17", "--json")
    assert (ended.code, severities(ended.json) & {"error"}) == (0, set())
    assert "0 errors" in ended.err


@pytest.mark.parametrize(
    ("least", "shown"),
    [("error", {"error"}), ("warning", {"error", "warning"}), ("info", {"error", "warning", "info"})],
)
def test_at_least_so_grave(broken: Talkfold, least: str, shown: set[str]) -> None:
    greeted = [part(type="message-start", messageId="a"), part(type="finish", reason="stop")]  # the agent speaks first
    (row,) = broken("import", "-", "--jsonl", stdin=jsonl(greeted)).jsonl
    every = broken("findings", "broken", row["id"], "--json").json
    assert severities(every) == {"error", "warning", "info"}
    ended = broken("findings", "broken", row["id"], "--severity", least, "--json")
    assert ended.json == [row for row in every if row["severity"] in shown]
    left_out = len(every) - len(ended.json)
    assert (f"Not asked for: {left_out} more." in ended.err) == bool(left_out)


def test_only_some_codes(broken: Talkfold) -> None:
    every = broken("findings", "broken", "--json").json
    one, other = "call-never-ended", "send-over-open-call"
    ended = broken("findings", "--code", one, "--code", other, "broken", "--json")
    assert ended.json == [row for row in every if row["code"] in {one, other}]
    assert {row["code"] for row in ended.json} == {one, other}
    assert ended.code == 1
    only_warnings = broken("findings", "broken", "--code", other, "--json")
    assert (only_warnings.code, [row["code"] for row in only_warnings.json]) == (0, [other])
    neither = broken("findings", "broken", "--code", other, "--severity", "error", "--json")
    assert (neither.code, neither.json) == (0, [])


def test_only_the_owners_sessions(broken: Talkfold) -> None:
    assert broken("findings", "--all", "--owner", "nobody", "--json").json == []
    assert broken("findings", "broken", "--owner", "nobody").code == 3


# ---- what is read ---------------------------------------------------------------------------------------


def test_a_living_run_may_still_end_what_is_open(waiting: Talkfold) -> None:
    ended = waiting("findings", "order-18", "--json")
    assert (ended.code, ended.json) == (0, told(waiting, "order-18", living=True))
    assert "1 session running" in ended.err
    dead = {row["code"] for row in told(waiting, "order-18")}
    assert {"run-without-end", "call-never-ended"} <= dead
    assert dead.isdisjoint(row["code"] for row in ended.json)


@pytest.mark.parametrize("page", [1, 4, len(BROKEN), 1000])
def test_how_the_log_is_split_into_pages_changes_nothing(
    broken: Talkfold, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(finding_command, "_PAGE", page)
    assert broken("findings", "broken", "--json").json == told(broken, "broken")


def test_a_long_log_is_read_to_its_end(talkfold: Talkfold) -> None:
    words = [part(type="text-delta", messageId="a-1", delta=f"{number} ") for number in range(2_500)]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl([*BROKEN[:2], *words, *BROKEN[2:]])).jsonl
    ended = talkfold("findings", row["id"], "--json")
    assert ended.json == told(talkfold, row["id"])
    assert max(number for finding in ended.json for number in finding["numbers"]) == 2_500 + len(BROKEN)


def test_looking_changes_nothing(broken: Talkfold) -> None:
    before = broken("list", "--json").json
    broken("findings", "--all")
    assert broken("list", "--json").json == before


def _delete(file: Path, condition: str) -> None:
    database = sqlite3.connect(file)
    with database:
        for (name,) in database.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'action'"
        ).fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute(
            f"DELETE FROM action WHERE {condition} AND session = (SELECT key FROM session WHERE id = 'order-17')"
        )
    database.close()


def test_actions_that_are_missing_are_an_error(world: Talkfold, tmp_path: Path) -> None:
    _delete(tmp_path / "chat.db", "number = 3")
    ended = world("findings", "order-17", "--json", "--code", "number-gap")
    assert (ended.code, [row["numbers"] for row in ended.json]) == (1, [[4, 2]])


def test_a_log_that_ends_too_early_is_damaged(world: Talkfold, tmp_path: Path) -> None:
    _delete(tmp_path / "chat.db", "number > 7")
    ended = world("findings", "order-17", "--json")
    assert (ended.code, ended.out) == (70, "")
    assert "ends with action 7" in ended.err


def test_an_erased_session_is_refused_when_named(broken: Talkfold) -> None:
    assert broken("erase", "broken", "--yes").code == 0
    assert broken("findings", "broken").code == 3
    assert "broken" not in {row["sessionId"] for row in broken("findings", "--all", "--json").json}


@pytest.mark.parametrize(
    "wrong",
    [[], ["order-17", "--all"], ["order-17", "--codes"], ["--all", "--codes"], ["--all", "--severity", "fatal"]],
)
def test_what_makes_no_sense_is_refused(world: Talkfold, wrong: list[str]) -> None:
    ended = world("findings", *wrong)
    assert (ended.code, ended.out) == (2, "")


def test_a_code_that_is_none_is_refused_with_a_way_on(world: Talkfold) -> None:
    near = world("findings", "--all", "--code", "call-never-end")
    assert (near.code, near.out) == (2, "")
    assert "did you mean call-never-ended?" in near.err
    far = world("findings", "--all", "--code", "nonsense")
    assert far.code == 2
    assert "findings --codes" in far.err


# ---- for people -----------------------------------------------------------------------------------------


def test_each_is_told_with_what_to_do(broken: Talkfold) -> None:
    ended = broken("findings", "broken")
    assert ended.code == 1
    rows = broken("findings", "broken", "--json").json
    lines = ended.out.splitlines()
    assert len(lines) == 2 * len(rows)
    by_place = sorted(rows, key=lambda row: row["numbers"][0])
    for row, told_, next_ in zip(by_place, lines[::2], lines[1::2], strict=True):
        assert re.match(rf"{row['severity']} +{row['numbers'][0]}\b", told_)
        assert told_.endswith(f"  {row['text']}  [{row['code']}]")
        assert next_.startswith("   ")
        assert next_.lstrip() == row["nextStep"]
    errors = sum(row["severity"] == "error" for row in rows)
    assert f"1 session read: {errors} errors, " in ended.err
    assert "findings --codes" in ended.err


def test_nothing_found_is_said_on_stderr_alone(world: Talkfold) -> None:
    ended = world("findings", "order-17", "--severity", "error")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("1 session read: 0 errors, 0 warnings, 0 infos.")


def test_several_sessions_stand_under_their_names(broken: Talkfold) -> None:
    ended = broken("findings", "broken", "order-17", "chat-1")
    titles = [line for line in ended.out.splitlines() if line and not line.startswith(" ")]
    expected = [len(told(broken, id_)) for id_ in ("broken", "order-17", "chat-1")]
    assert titles[0] == rf"broken  Broken\x1b mugs  {expected[0]} findings"
    assert len(titles) == sum(map(bool, expected))
    assert broken("findings", "--all").out.startswith("broken ")


def on_a_terminal(*arguments: str, folder: Path) -> tuple[int, str]:
    """The command with stdout and stderr on a terminal: its exit code and what stood there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "talkfold", *arguments],
        env={"PATH": os.environ["PATH"], "TALKFOLD_DB": str(folder / "chat.db"), "TERM": "xterm", "COLUMNS": "70"},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = io.BytesIO()
    while True:
        try:
            data = os.read(ours, 65_536)
        except OSError:  # Linux's end of a terminal
            break
        if not data:
            break
        seen.write(data)
    os.close(ours)
    return process.wait(), seen.getvalue().decode()


def test_on_a_terminal_it_is_coloured_and_text_does_nothing(broken: Talkfold, tmp_path: Path) -> None:
    code, seen = on_a_terminal("findings", "--all", folder=tmp_path)
    assert code == 1
    assert "\x1b[1;31merror " in seen
    assert "\x1b[33mwarning " in seen
    assert "\x1b[2m" in seen  # dim: the next step
    assert "4 sessions read" in seen
    assert "\x1b[2J" not in seen
    assert r"\x1b[2J" in seen


# ---- codes ----------------------------------------------------------------------------------------------


def test_codes_are_the_table(talkfold: Talkfold) -> None:
    ended = talkfold("findings", "--codes", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert [(row["code"], row["severity"], row["nextStep"]) for row in ended.json] == [
        (code, kind.severity, kind.next_step) for code, kind in FINDINGS.items()
    ]
    assert all("{" not in row["text"] for row in ended.json)
    assert talkfold("findings", "--codes", "--jsonl").jsonl == ended.json
    lines = talkfold("findings", "--codes").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(FINDINGS)


def test_codes_can_be_picked(talkfold: Talkfold) -> None:
    def picked(*arguments: str) -> Result:
        return talkfold("findings", "--codes", "--json", *arguments)

    assert severities(picked("--severity", "warning").json) == {"error", "warning"}
    assert [row["code"] for row in picked("--code", "time-back").json] == ["time-back"]
    assert picked("--code", "time-back", "--severity", "error").json == []
