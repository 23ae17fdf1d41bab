"""``step``: one action of a log in full."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_world import Talkfold, jsonl
from conversation_log import ROWS, SESSION, file

from talkfold import decode_action, fold
from talkfold.audit import apply, decode_diff

ACTIONS = [decode_action(json.dumps(row["action"])) for row in ROWS]
LAST = len(ROWS)


@pytest.fixture
def post(talkfold: Talkfold) -> Talkfold:
    """A database with the conversation of ``conversation_log``."""
    assert talkfold("import", "-", stdin=jsonl(file())).code == 0
    return talkfold


@pytest.mark.parametrize("number", range(1, LAST + 1))
def test_it_is_the_logged_action_and_what_it_did(post: Talkfold, number: int) -> None:
    told: Any = post("step", SESSION, str(number), "--json").json
    before, after = fold(ACTIONS[: number - 1]), fold(ACTIONS[:number])
    (row,) = post("steps", SESSION, "--from", str(number), "--to", str(number), "--jsonl").jsonl
    assert told["step"] == row
    assert (told["statusBefore"], told["statusAfter"]) == (before.status, after.status)
    assert told["changed"] is (before != after)
    assert apply(before, decode_diff(json.dumps(told["diff"]))) == after
    for words in (f"action {number} of {LAST}", row["time"], row["run"]):
        assert words in post("step", SESSION, str(number)).out


@pytest.mark.parametrize(
    ("number", "calls"),
    [
        (10, [[(9, "running"), (10, "error")]]),
        (18, [[(16, "running"), (17, "awaiting-confirmation"), (18, "running"), (19, "done")]]),
        (23, [[(22, "running"), (23, "cancelled")]]),
        (5, []),
    ],
)
def test_its_calls_are_told_from_beginning_to_end(post: Talkfold, number: int, calls: list[Any]) -> None:
    told: Any = post("step", SESSION, str(number), "--json").json
    assert [[(mark["number"], mark["state"]) for mark in call] for call in told["calls"]] == calls


@pytest.mark.parametrize(
    ("number", "previous", "following"),
    [(16, (9, 9), (22, 22)), (5, None, (20, 20)), (6, None, (20, 20)), (20, (5, 6), None), (1, None, (14, 14))],
)
def test_the_nearest_steps_of_its_type(post: Talkfold, number: int, previous: Any, following: Any) -> None:
    told: Any = post("step", SESSION, str(number), "--json").json
    near = [told[side] and (told[side]["first"], told[side]["last"]) for side in ("previous", "next")]
    assert near == [previous, following]


def test_what_is_wrong_there_is_told(talkfold: Talkfold) -> None:
    log = [
        {"type": "send", "id": "u", "text": "Go."},
        {"type": "part", "part": {"type": "tool-result", "id": "nobody", "output": 1}},
    ]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    (finding, *_) = talkfold("step", row["id"], "2", "--json").json["findings"]
    assert finding["code"] in {each["code"] for each in talkfold("findings", row["id"], "--json").json}
    out = talkfold("step", row["id"], "2").out
    assert finding["text"] in out
    assert "nothing\n" in out.partition("Changes\n")[2]


def test_alone_it_says_nothing_of_the_rest(post: Talkfold) -> None:
    told: Any = post("step", SESSION, "10", "--alone", "--json").json
    assert not {"calls", "findings", "previous", "next"} & told.keys()


def test_without_a_number_it_is_the_newest(post: Talkfold) -> None:
    assert post("step", SESSION).out == post("step", SESSION, str(LAST)).out


@pytest.mark.parametrize("number", ["0", "99"])
def test_what_is_not_there_is_refused(post: Talkfold, number: str) -> None:
    ended = post("step", SESSION, number)
    assert (ended.code, ended.out) == (2, "")


def test_a_session_without_actions_has_no_step(talkfold: Talkfold) -> None:
    assert talkfold("import", "-", stdin=jsonl([{"talkfold": 1, "session": {"id": "empty"}}])).code == 0
    assert talkfold("step", "empty").code == 2
    assert talkfold("tail", "empty").code == 0


def test_a_log_cannot_move_the_cursor(talkfold: Talkfold) -> None:
    log = [{"type": "send", "id": "u", "text": "\x1b[2J\u202e\x9b red"}]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    for command in ("step", "steps", "tail"):
        out = talkfold(command, row["id"]).out
        assert not {"\x1b", "\u202e", "\x9b"} & set(out)
