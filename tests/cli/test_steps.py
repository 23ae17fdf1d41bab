"""``steps``: choosing among the actions of a log, and a streamed text as one row that opens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_world import Talkfold, jsonl
from conversation_log import ROWS, SESSION, file

LAST = len(ROWS)


@pytest.fixture
def post(talkfold: Talkfold) -> Talkfold:
    """A database with the conversation of ``conversation_log``."""
    assert talkfold("import", "-", stdin=jsonl(file())).code == 0
    return talkfold


def numbers(post: Talkfold, *options: str) -> list[int]:
    """The numbers of the actions that are chosen, the same in both forms for programs."""
    rows = post("steps", SESSION, "--jsonl", *options)
    assert rows.code == 0
    assert post("steps", SESSION, "--json", *options).json == rows.jsonl
    return [row["number"] for row in rows.jsonl]


def shown(post: Talkfold, *options: str) -> list[str]:
    """The numbers as a person sees them."""
    return [line.split()[0] for line in post("steps", SESSION, *options).out.splitlines()[1:]]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), range(1, LAST + 1)),
        (("--type", "send"), [1, 14]),
        (("--type", "send", "--type", "stop"), [1, 14, 23]),
        (("--type", "text-delta"), [5, 6, 20]),
        (("--call", "d1"), [7, 12]),
        (("--call", "7"), [7, 12]),
        (("--call", "c1"), [9, 10, 16, 17, 18, 19]),
        (("--call", "9"), [9, 10]),
        (("--call", "16"), [16, 17, 18, 19]),
        (("--call", "c2"), [22, 23]),
        (("--message", "a-2"), [15, 16, 17, 18, 19, 20, 22, 23]),
        (("--message", "n-1"), [8, 9, 10]),
        (("--message", "u-2"), [14]),
        (("--lane", "d1"), range(7, 13)),
        (("--lane", "7"), range(7, 13)),
        (("--lane", "post"), range(7, 13)),
        (("--lane", "top", "--to", "13"), [1, 2, 3, 4, 5, 6, 7, 12, 13]),
        (("--run", "run-2"), range(14, LAST + 1)),
        (("--run", "run"), range(1, LAST + 1)),
        (("--run", "run-2", "--type", "tool-call"), [16, 22]),
        (("--actor", "ann"), [1, 14, 18, 23]),
        (("--actor", "ann", "--type", "toolPhase"), [18]),
        (("--failed",), [10]),
        (("--text", "POST OFFICE"), [5, 6]),
        (("--text", "can send"), [3, 4]),
        (("--text", "oslo"), [9, 16]),
        (("--text", "4.5"), [9]),
        (("--text", "enough"), [23]),
        (("--text", "nothing like it"), []),
        (("--from", "10", "--to", "18", "--call", "c1"), [10, 16, 17, 18]),
        (("--from", "8", "--lane", "d1", "--failed"), [10]),
        (("--last", "2"), [22, 23]),
        (("--last", "2", "--to", "6"), [3, 4, 5, 6]),
        (("--last", "1", "--call", "c1"), [19]),
        (("--last", "1", "--type", "text-delta", "--to", "10"), [5, 6]),
        (("--last", "99", "--failed"), [10]),
    ],
)
def test_what_is_chosen(post: Talkfold, options: tuple[str, ...], found: list[int]) -> None:
    assert numbers(post, *options) == list(found)


def test_a_text_is_one_row_that_opens(post: Talkfold) -> None:
    assert shown(post, "--to", "7") == ["1", "2", "3-4", "5-6", "7"]
    assert shown(post, "--to", "7", "--open", "6") == ["1", "2", "3-4", "5", "6", "7"]
    assert shown(post, "--to", "7", "--open", "3", "--open", "5") == ["1", "2", "3", "4", "5", "6", "7"]
    assert shown(post, "--to", "7", "--every") == ["1", "2", "3", "4", "5", "6", "7"]


def test_words_across_the_pieces_of_a_text_are_found_when_it_is_opened_too(post: Talkfold) -> None:
    assert shown(post, "--text", "post office", "--every") == ["5", "6"]


def test_a_piece_that_was_cut_off_by_something_else_is_a_step_of_its_own(talkfold: Talkfold) -> None:
    log = [
        {"type": "send", "id": "u", "text": "Go."},
        *({"type": "part", "part": part} for part in _interrupted()),
    ]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    lines = talkfold("steps", row["id"], "--type", "text-delta").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["3", "5"]


def _interrupted() -> list[dict[str, Any]]:
    piece = {"type": "text-delta", "messageId": "a", "delta": "la"}
    return [{"type": "message-start", "messageId": "a"}, piece, {"type": "step-finish", "step": 1}, piece]


@pytest.mark.parametrize("options", [(), ("--type", "tool-call"), ("--from", "12", "--call", "c1")])
def test_the_status_and_the_effect_do_not_depend_on_what_is_shown(post: Talkfold, options: tuple[str, ...]) -> None:
    whole = {line.split()[0]: line.split()[-2:] for line in post("steps", SESSION).out.splitlines()[1:]}
    for line in post("steps", SESSION, *options).out.splitlines()[1:]:
        assert line.split()[-1] == whole[line.split()[0]][-1]


def test_who_did_it_is_told(post: Talkfold) -> None:
    assert "by ann, enough" in post("steps", SESSION, "--actor", "ann").out


def test_nothing_found_is_said(post: Talkfold) -> None:
    ended = post("steps", SESSION, "--type", "reset")
    assert (ended.code, ended.out, ended.err) == (0, "", f"None of {LAST} actions is so.\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--type", "tool-cal"), "did you mean tool-call?"),
        (("--type", "xyz"), "text-delta"),
        (("--last", "0"), "--last"),
        (("--from", "0"), "--from"),
        (("--to", "99"), str(LAST)),
    ],
)
def test_what_makes_no_sense_is_refused(post: Talkfold, options: tuple[str, ...], said: str) -> None:
    ended = post("steps", SESSION, *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_long_log_is_told_with_all_its_steps(talkfold: Talkfold) -> None:
    """Longer than a page of the store and than a piece of the table."""
    part = {"type": "part", "part": {"type": "text-delta", "messageId": "a", "delta": "la"}}
    log: list[dict[str, Any]] = [{"type": "part", "part": {"type": "message-start", "messageId": "a"}}]
    for turn in range(700):
        log += [{"type": "send", "id": f"u{turn}", "text": f"word {turn}"}, part, part, {"type": "stop"}]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    lines = talkfold("steps", row["id"]).out.splitlines()
    assert [line for line in lines if "what happened" in line] == lines[:1]
    assert len(lines) == 1 + 1 + 3 * 700
    assert [line.split()[0] for line in talkfold("steps", row["id"], "--last", "2").out.splitlines()[1:]] == [
        f"{len(log) - 2}-{len(log) - 1}",
        str(len(log)),
    ]
    (found,) = talkfold("steps", row["id"], "--text", "word 699", "--jsonl").jsonl
    assert found["action"]["id"] == "u699"
    assert json.loads(talkfold("steps", row["id"], "--json", "--last", "1").out)[0]["number"] == len(log)
