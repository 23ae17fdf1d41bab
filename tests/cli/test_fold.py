"""``fold`` and ``resumable``: files in, JSON out, no database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_world import CHATS, ORDER, Talkfold, jsonl

from talkfold import decode_action, decode_messages, decode_state, encode_state, fold, resumable, session_reducer
from talkfold.model import EMPTY_SESSION

ACTIONS = [decode_action(json.dumps(action)) for action in ORDER]
CONFORMANCE = Path(__file__).parents[1] / "conformance"


@pytest.mark.parametrize("from_stdin", [True, False])
def test_fold_prints_the_state_as_one_document(talkfold: Talkfold, tmp_path: Path, from_stdin: bool) -> None:
    (tmp_path / "run.jsonl").write_bytes(jsonl(ORDER))
    ended = talkfold("fold", "-", stdin=jsonl(ORDER)) if from_stdin else talkfold("fold", "run.jsonl")
    assert (ended.code, ended.err) == (0, "")
    assert decode_state(ended.out) == fold(ACTIONS)
    assert ended.out.count("\n") == 1


def test_each_prints_the_state_after_every_action(talkfold: Talkfold) -> None:
    expected, state = [], EMPTY_SESSION
    for action in ACTIONS:
        state = session_reducer(state, action)
        expected.append(encode_state(state).decode())
    assert talkfold("fold", "--each", "-", stdin=jsonl(ORDER)).out.splitlines() == expected


def test_an_empty_log_is_the_empty_session(talkfold: Talkfold) -> None:
    assert talkfold("fold", "-").json == {"messages": [], "status": "idle"}
    assert talkfold("fold", "--each", "-").out == ""


def test_it_folds_what_export_writes(world: Talkfold) -> None:
    exported = world("export", "order-17").out
    assert world("fold", "-", stdin=exported.encode()).out == world("fold", "-", stdin=jsonl(ORDER)).out


def test_several_sessions_are_no_log(world: Talkfold) -> None:
    everything = world("export", "--all").out.encode()
    ended = world("fold", "-", stdin=everything)
    assert (ended.code, ended.out) == (2, "")
    assert "several sessions" in ended.err
    assert "`talkfold import FILE`" in ended.err


@pytest.mark.parametrize("each", [(), ("--each",)])
def test_a_torn_last_line_is_told_and_left_out(talkfold: Talkfold, each: tuple[str, ...]) -> None:
    whole = talkfold("fold", *each, "-", stdin=jsonl(ORDER[:5]))
    torn = talkfold("fold", *each, "-", stdin=jsonl(ORDER[:5]) + b'{"type":"part","pa')
    assert (torn.code, torn.out) == (0, whole.out)
    assert "line 6 was cut short" in torn.err


@pytest.mark.parametrize("bad", [b"nonsense\n", b'{"type":"unheard-of"}\n', b'{"type":"send","id":"u","text":NaN}\n'])
def test_damage_in_the_middle_ends_with_6_and_its_line(talkfold: Talkfold, bad: bytes) -> None:
    ended = talkfold("fold", "-", stdin=jsonl(ORDER[:3]) + bad + jsonl(ORDER[3:]))
    assert (ended.code, ended.out) == (6, "")
    assert "line 4" in ended.err


@pytest.mark.parametrize(
    "other",
    [
        jsonl(CHATS),
        b"\n" + jsonl(CHATS[1:]).rstrip(),
        jsonl([{"messages": [], "status": "idle"}]),
        jsonl([[{"id": "u", "role": "user", "parts": []}]]),
    ],
    ids=["conversations", "one conversation", "state", "messages"],
)
def test_a_file_of_another_form_is_told_which_command_reads_it(
    talkfold: Talkfold, tmp_path: Path, other: bytes
) -> None:
    (tmp_path / "other.jsonl").write_bytes(other)
    for ended in (talkfold("fold", "other.jsonl"), talkfold("fold", "--each", "-", stdin=other)):
        assert (ended.code, ended.out) == (6, "")
        assert "`talkfold import --format openai FILE` reads whole conversations" in ended.err
        assert "`talkfold resumable FILE` reads an array of messages" in ended.err


@pytest.mark.parametrize(
    "damaged",
    [
        jsonl(ORDER[:1]) + jsonl(CHATS),
        jsonl([{"type": "unheard-of"}]),
        jsonl([{"talkfold": 1, "session": {"id": "a"}}]) + jsonl(CHATS),
        b"nonsense\n",
    ],
)
def test_a_damaged_log_is_still_a_log(talkfold: Talkfold, damaged: bytes) -> None:
    ended = talkfold("fold", "-", stdin=damaged)
    assert ended.code == 6
    assert "Repair or remove line" in ended.err
    assert "talkfold import" not in ended.err


def test_a_file_that_is_not_there(talkfold: Talkfold) -> None:
    ended = talkfold("fold", "absent.jsonl")
    assert (ended.code, ended.out) == (2, "")
    assert "absent.jsonl" in ended.err


def test_lone_surrogates_and_large_numbers_come_back(talkfold: Talkfold) -> None:
    line = b'{"type":"part","part":{"type":"tool-call","messageId":"a","id":"c","name":"t","input":%s}}\n'
    start = jsonl([{"type": "part", "part": {"type": "message-start", "messageId": "a"}}])
    value = b'{"half":"\\ud83d","nul":"\\u0000","big":123456789012345678901234567890,"one":1.0}'
    out = talkfold("fold", "-", stdin=start + line % value).out
    read = json.loads(out)["messages"][0]["parts"][0]["input"]
    assert read == json.loads(value)
    assert isinstance(read["one"], float)


@pytest.mark.parametrize(
    "case",
    json.loads((CONFORMANCE / "resumable.json").read_text()),
    ids=lambda case: case["name"],
)
def test_resumable_as_the_conformance_cases_say(talkfold: Talkfold, case: dict[str, object]) -> None:
    given = json.dumps(case["messages"]).encode()
    ended = talkfold("resumable", "-", stdin=given)
    assert ended.code == 0
    assert (
        decode_messages(ended.out)
        == resumable(decode_messages(given))
        == decode_messages(json.dumps(case["resumable"]))
    )


@pytest.mark.parametrize("bad", [b"", b"[", b"{}", b'[{"id":1}]'])
def test_what_is_no_array_of_messages_ends_with_6(talkfold: Talkfold, bad: bytes) -> None:
    ended = talkfold("resumable", "-", stdin=bad)
    assert (ended.code, ended.out) == (6, "")
