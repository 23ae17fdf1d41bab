"""``show``: the moment of a conversation named by its number, turn, run, call or message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_world import Talkfold, jsonl
from conversation_log import ROWS, SESSION, file

from talkfold import decode_action, encode_state, fold

ACTIONS = [decode_action(json.dumps(row["action"])) for row in ROWS]
LAST = len(ROWS)


@pytest.fixture
def post(talkfold: Talkfold) -> Talkfold:
    """A database with the conversation of ``conversation_log``."""
    assert talkfold("import", "-", stdin=jsonl(file())).code == 0
    return talkfold


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ((), LAST),
        (("--at", "4"), 4),
        (("--at", "4", "--before"), 3),
        (("--at", "0", "--before"), 0),
        (("--turn", "1"), 13),
        (("--turn", "1", "--before"), 0),
        (("--turn", "2"), LAST),
        (("--turn", "-1"), LAST),
        (("--turn", "-2"), 13),
        (("--turn", "2", "--before"), 13),
        (("--run", "run-1"), 13),
        (("--run", "run-2"), LAST),
        (("--run", "run-2", "--before"), 13),
        (("--call", "d1"), 12),
        (("--call", "d1", "--before"), 6),
        (("--call", "c1"), 19),
        (("--call", "9"), 10),
        (("--call", "9", "--before"), 8),
        (("--call", "c2"), LAST),
        (("--message", "a-1"), 7),
        (("--message", "n-1"), 9),
        (("--message", "u-2"), 14),
        (("--message", "a-2", "--before"), 14),
    ],
)
def test_a_moment_is_the_fold_of_the_log_up_to_there(post: Talkfold, options: tuple[str, ...], number: int) -> None:
    shown: Any = post("show", SESSION, "--json", *options).json
    assert shown["number"] == number
    assert shown["state"] == json.loads(encode_state(fold(ACTIONS[:number])))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--turn", "3"), "2 turns"),
        (("--turn", "0"), "2 turns"),
        (("--turn", "-3"), "2 turns"),
        (("--run", "run"), "run-1, run-2"),
        (("--run", "x"), "run-1, run-2"),
        (("--call", "x"), "c2 (tell, action 22)"),
        (("--message", "x"), "a-2"),
        (("--before",), "say before what"),
        (("--at", "3", "--turn", "1"), "--at"),
        (("--run", "run-1", "--call", "c1"), "--run"),
        (("--at", "99"), str(LAST)),
    ],
)
def test_what_is_not_there_is_told_with_what_is(post: Talkfold, options: tuple[str, ...], said: str) -> None:
    ended = post("show", SESSION, *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_call_that_has_not_ended_is_said_to_be_open(waiting: Talkfold) -> None:
    ended = waiting("show", "order-18", "--call", "c1")
    assert (ended.code, ended.out) == (2, "")
    assert "has not ended" in ended.err
    assert waiting("show", "order-18", "--call", "c1", "--before", "--json").json["number"] == 2


def test_a_session_without_actions_has_no_turns(talkfold: Talkfold) -> None:
    assert talkfold("import", "-", stdin=jsonl([{"talkfold": 1, "session": {"id": "empty"}}])).code == 0
    ended = talkfold("show", "empty", "--turn", "1")
    assert ended.code == 2
    assert "there are no turns" in ended.err
