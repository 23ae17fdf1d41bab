"""``diff``: what changed between two moments of a session, or between two sessions."""

from __future__ import annotations

import json

import pytest
from cli_world import ORDER, Result, Talkfold, jsonl

import talkfold.cli.comparing as diff_command
from talkfold.audit import apply, decode_diff
from talkfold.codec import decode_state, encode_state


def state(talkfold: Talkfold, session: str, at: int) -> bytes:
    return json.dumps(talkfold("show", session, "--at", str(at), "--json").json["state"]).encode()


def leads_there(ended: Result, before: bytes, after: bytes) -> bool:
    """Whether the operations that were printed make the one state of the other."""
    assert ended.code == 0
    return encode_state(apply(decode_state(before), decode_diff(ended.out))) == encode_state(decode_state(after))


def test_its_operations_make_the_one_state_of_the_other(world: Talkfold) -> None:
    states = [state(world, "order-17", number) for number in range(len(ORDER) + 1)]
    for first, before in enumerate(states):
        for second in (0, 4, first, 9):
            ended = world("diff", "order-17", str(first), str(second), "--json")
            assert leads_there(ended, before, states[second]), (first, second)


def test_without_numbers_it_is_what_the_newest_action_changed(world: Talkfold) -> None:
    newest = world("diff", "order-17", "8", "9", "--json").json
    assert newest
    assert world("diff", "order-17", "--json").json == newest
    assert world("diff", "order-17", "--at", "9", "--json").json == newest
    assert world("diff", "order-17", "8", "--json").json == newest
    assert world("diff", "order-17", "--at", "6", "--json").json == world("diff", "order-17", "5", "6", "--json").json


def test_far_states_are_read_and_not_folded_one_from_the_other(
    world: Talkfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = world("diff", "order-17", "2", "9", "--json").json
    monkeypatch.setattr(diff_command, "_NEAR", 3)
    assert world("diff", "order-17", "2", "9", "--json").json == near


def test_two_sessions(world: Talkfold) -> None:
    for arguments, moments in (([], (9, 4)), (["--at", "3"], (3, 4)), (["--at", "3", "--with-at", "1"], (3, 1))):
        ended = world("diff", "order-17", "--with", "chat-1", *arguments, "--json")
        head = world("show", "chat-1", "--json").json["number"]
        other = head if moments[1] == 4 else moments[1]
        assert leads_there(ended, state(world, "order-17", moments[0]), state(world, "chat-1", other))


def test_a_fork_equals_what_it_was_forked_from(world: Talkfold) -> None:
    fork = world("fork", "order-17", "--at", "6", "--json").json["id"]
    ended = world("diff", "order-17", "--at", "6", "--with", fork)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"No difference: order-17 at 6 and {fork} at 6 are equal.\n"
    assert world("diff", "order-17", "--at", "6", "--with", fork, "--json").json == {}


def test_equal_is_said_in_words(world: Talkfold) -> None:
    ended = world("diff", "order-17", "4", "4")
    assert (ended.code, ended.out) == (0, "")
    assert "order-17 at 4 and order-17 at 4 are equal" in ended.err


def test_for_people_each_change_has_its_mark(world: Talkfold) -> None:
    ended = world("diff", "order-17", "5", "6")
    assert ended.out.splitlines() == [
        "--- order-17 at 5",
        "+++ order-17 at 6",
        'message 2 (assistant "a-1"), call find "c1", state',
        "  - running",
        "  + done",
        'message 2 (assistant "a-1"), call find "c1", output',
        '  + {"found":2}',
    ]
    assert ended.err.startswith("2 changes.\n")
    assert "talkfold steps order-17 --from 6 --to 6" in ended.err


def test_a_message_that_came_or_went_is_told(world: Talkfold) -> None:
    assert 'message 1 (user "u-1") is new\n  + Two blue mugs, please.\n' in world("diff", "order-17", "0", "1").out
    assert 'message 1 (user "u-1") is gone\n  - Two blue mugs, please.\n' in world("diff", "order-17", "1", "0").out


def texts(talkfold: Talkfold, one: str, other: str) -> list[str]:
    """How two sessions that only say another thing differ, without the title."""
    for name, text in (("one", one), ("other", other)):
        log = [{"talkfold": 1, "session": {"id": name}}, {"type": "send", "id": "u-1", "text": text}]
        assert talkfold("import", "-", stdin=jsonl(log)).code == 0
    return talkfold("diff", "one", "--with", "other").out.splitlines()[2:]


def test_in_a_long_text_the_words_around_a_change_are_shown(talkfold: Talkfold) -> None:
    thanks = "Many thanks! " * 6
    text = f"Would you be so kind and send me two of those {{}} mugs? {thanks}And {{}} would be good.{' So!' * 9}"
    assert texts(talkfold, text.format("blue", "one bowl"), text.format("white", "some")) == [
        'message 1 (user "u-1"), part 1, at 46',
        "  - …and send me two of those blue mugs? Many thanks! Many…",
        "  + …and send me two of those white mugs? Many thanks! Many…",
        'message 1 (user "u-1"), part 1, at 139',
        "  - …thanks! Many thanks! And one bowl would be good. So! So! So!…",
        "  + …thanks! Many thanks! And some would be good. So! So! So!…",
    ]


def test_text_that_was_appended_follows_its_last_words(talkfold: Talkfold) -> None:
    assert texts(talkfold, "Two mugs", "Two mugs, please\x1b[2J.") == [
        'message 1 (user "u-1"), part 1, at 8',
        r"  + Two mugs, please\x1b[2J.",
    ]


def test_a_session_without_actions(talkfold: Talkfold) -> None:
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl([{"talkfold": 1, "session": {"id": "none"}}])).jsonl
    ended = talkfold("diff", row["id"])
    assert (ended.code, ended.out) == (0, "")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["order-17", "3", "99"], "99"),
        (["order-17", "99"], "99"),
        (["order-17", "--at", "99"], "99"),
        (["order-17", "--at", "0"], "--at"),
        (["order-17", "3", "--at", "4"], "--at"),
        (["order-17", "--with-at", "4"], "--with-at"),
        (["order-17", "3", "--with", "chat-1"], "FROM"),
        (["order-17", "--with", "chat-1", "--with-at", "99"], "99"),
        (["order-17", "--with", "chat-1", "--with-at=-1"], "--with-at"),
    ],
)
def test_what_makes_no_sense_is_refused(world: Talkfold, wrong: list[str], named: str) -> None:
    ended = world("diff", *wrong)
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err


def test_unknown_sessions_are_not_found(world: Talkfold) -> None:
    assert world("diff", "nobody").code == 3
    assert world("diff", "order-17", "--with", "nobody").code == 3
    assert world("diff", "order-17", "--owner", "nobody").code == 3


def test_colours(world: Talkfold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = world("diff", "order-17", "5", "6").out
    assert "\x1b[31mrunning" in out
    assert "\x1b[32mdone" in out
