"""``whatif``: a log with some actions skipped, replaced or added, folded again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_world import ORDER, Talkfold, jsonl

from talkfold.audit import apply, decode_diff
from talkfold.codec import decode_action, decode_state, encode_state
from talkfold.fold import fold
from talkfold.resumable import retry_plan


def part(within: str | None = None, **part: object) -> dict[str, Any]:
    return {"type": "part", "part": part} | ({} if within is None else {"within": within})


NESTED: list[dict[str, Any]] = [
    {"type": "send", "id": "u-1", "text": "Pack, please."},
    part(type="message-start", messageId="a-1"),
    part(type="tool-call", messageId="a-1", id="d1", name="delegate_to_packer", input={}),
    part("d1", type="message-start", messageId="n-1"),
    part("d1", type="tool-call", messageId="n-1", id="c1", name="pack", input={}),
    part("d1", type="tool-result", id="c1", output="packed"),
    part(type="tool-result", id="d1", output="done"),
    part(type="tool-call", messageId="a-1", id="c1", name="look", input={}),
    part(type="tool-result", id="c1", output="seen"),
    part(type="finish", reason="stop"),
]
"""A sub-agent, and an id that is used twice."""

FAILED = part(type="tool-error", id="c1", error="sold out")


@pytest.fixture
def nested(world: Talkfold) -> Talkfold:
    assert world("import", "-", stdin=jsonl([{"talkfold": 1, "session": {"id": "nested"}}, *NESTED])).code == 0
    return world


def folded(actions: list[dict[str, Any]]) -> bytes:
    return encode_state(fold(decode_action(json.dumps(action)) for action in actions))


def without(actions: list[dict[str, Any]], *numbers: int) -> list[dict[str, Any]]:
    return [action for number, action in enumerate(actions, 1) if number not in numbers]


def state(told: dict[str, Any]) -> bytes:
    return encode_state(decode_state(json.dumps(told["state"])))


# ---- for programs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "skipped"),
    [
        (["--skip", "5"], [5]),
        (["--skip", "5-6", "--skip", "8"], [5, 6, 8]),
        (["--skip", "5-7", "--skip", "6-9"], [5, 6, 7, 8, 9]),
        (["--skip-type", "text-delta"], [3, 4, 7]),
        (["--skip-type", "stop", "--skip-type", "send"], [1, 9]),
        (["--skip-call", "c1"], [5, 6]),
        (["--skip-call", "8", "--skip", "7-8"], [7, 8]),
    ],
)
def test_what_is_skipped_is_not_folded(world: Talkfold, arguments: list[str], skipped: list[int]) -> None:
    told = world("whatif", "order-17", *arguments, "--json").json
    assert state(told) == folded(without(ORDER, *skipped))
    assert told["first"] == skipped[0]
    assert (told["id"], told["number"]) == ("order-17", len(ORDER))


def test_a_call_goes_with_all_that_went_on_inside(nested: Talkfold) -> None:
    told = nested("whatif", "nested", "--skip-call", "d1", "--json").json
    assert state(told) == folded(without(NESTED, 3, 4, 5, 6, 7))
    both = nested("whatif", "nested", "--skip-call", "c1", "--json").json
    assert state(both) == folded(without(NESTED, 5, 6, 8, 9))
    inner = nested("whatif", "nested", "--skip-call", "5", "--json").json
    assert state(inner) == folded(without(NESTED, 5, 6))


def test_a_run_is_skipped_by_the_beginning_of_its_id(waiting: Talkfold) -> None:
    told = waiting("whatif", "order-18", "--skip-run", "run", "--json").json
    assert state(told) == folded([])


def test_another_action_in_its_place(world: Talkfold, tmp_path: Path) -> None:
    expected = folded([*ORDER[:5], FAILED, *ORDER[6:]])
    told = world("whatif", "order-17", "--replace", f"6={json.dumps(FAILED)}", "--json").json
    assert state(told) == expected
    (tmp_path / "failed.json").write_text(json.dumps(FAILED, indent=2))
    assert world("whatif", "order-17", "--replace", "6=failed.json", "--json").json == told
    logged = {"number": 3, "action": FAILED}
    assert world("whatif", "order-17", "--replace", f"6={json.dumps(logged)}", "--json").json == told


def test_more_actions_in_between(world: Talkfold, tmp_path: Path) -> None:
    more = [{"type": "send", "id": "u-0", "text": "Hello!"}, part(type="finish", reason="stop")]
    (tmp_path / "more.jsonl").write_bytes(jsonl(more))
    for number in (0, 4, 9):
        expected = folded([*ORDER[:number], *more, *ORDER[number:]])
        inline = world("whatif", "order-17", "--insert", f"{number}={json.dumps(more)}", "--json").json
        assert state(inline) == expected
        assert world("whatif", "order-17", "--insert", f"{number}=more.jsonl", "--json").json == inline
        assert inline["first"] == number


def test_the_differences_lead_there(world: Talkfold) -> None:
    told = world("whatif", "order-17", "--skip-call", "c1", "--json").json
    before = fold(decode_action(json.dumps(action)) for action in ORDER)
    assert encode_state(apply(before, decode_diff(json.dumps(told["diff"])))) == state(told)
    at_first = fold(decode_action(json.dumps(action)) for action in ORDER[:5])
    there = encode_state(apply(at_first, decode_diff(json.dumps(told["firstDiff"]))))
    assert there == folded(ORDER[:4])


def test_actions_that_lose_their_effect_are_named(world: Talkfold) -> None:
    assert world("whatif", "order-17", "--skip", "5", "--json").json["lost"] == [6]
    assert world("whatif", "order-17", "--skip", "2", "--json").json["lost"] == [3, 4, 5, 6, 7, 8]


def test_what_retry_would_send(world: Talkfold) -> None:
    retry = world("whatif", "order-17", "--skip-call", "c1", "--json").json["retry"]
    as_it_is = world("retry", "order-17", "--json").json
    assert retry["before"] == {key: as_it_is[key] for key in ("messages", "dropped", "atRisk")}
    after = retry_plan(decode_state(folded(without(ORDER, 5, 6))).messages)
    assert len(retry["after"]["dropped"]) == len(after.dropped)
    assert retry["diff"] != {}
    same = world("whatif", "order-17", "--skip", "7", "--json").json["retry"]
    assert same["diff"] == {}
    assert same["before"]["messages"] == same["after"]["messages"]


def test_only_a_part_of_the_log(world: Talkfold) -> None:
    told = world("whatif", "order-17", "--skip", "5", "--at", "6", "--json").json
    assert (state(told), told["number"]) == (folded(without(ORDER[:6], 5)), 6)


def test_what_makes_no_difference(world: Talkfold) -> None:
    log = [*ORDER[:2], part(type="step-finish", step=1), *ORDER[2:]]
    (row,) = world("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    told = world("whatif", row["id"], "--skip", "3", "--json").json
    assert (told["diff"], told["lost"]) == ({}, [])
    assert "first" not in told
    ended = world("whatif", row["id"], "--skip", "3")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("Nothing would be different: skipping 1 action makes no difference")


def test_nothing_is_changed(world: Talkfold) -> None:
    before = world("list", "--json").json
    assert world("whatif", "order-17", "--skip-type", "send").code == 0
    assert world("list", "--json").json == before
    assert [row["action"] for row in world("steps", "order-17", "--jsonl").jsonl] == ORDER


# ---- for people -----------------------------------------------------------------------------------------


def test_it_says_where_why_and_what_comes_of_it(world: Talkfold) -> None:
    ended = world("whatif", "order-17", "--skip", "5")
    assert ended.out.splitlines() == [
        'It first differs at 5: tool-call c1 find {"q": "mug"}, which is skipped',
        '  message 2 (assistant "a-1")',
        '    - find "c1" running {"q":"mug"}',
        '6  tool-result c1 → {"found": 2}  has no effect any more',
        "At the end, after 9:",
        '  message 2 (assistant "a-1")',
        '    - find "c1" done {"q":"mug"}',
        "    - There are two.",
        '  message 2 (assistant "a-1"), part 1, at 16',
        "    + I look for mugs.There are two.",
        "What Retry sends would differ:",
        '  message 2 (assistant "a-1") is gone',
        '    - I look for mugs. · find "c1" done {"q":"mug"}',
    ]
    assert ended.err == "Nothing was changed.\n"


def test_it_says_what_was_supposed(world: Talkfold) -> None:
    replaced = world("whatif", "order-17", "--replace", f"6={json.dumps(FAILED)}").out
    assert 'at 6: tool-result c1 → {"found": 2}, which is now: tool-error c1 → sold out\n' in replaced
    assert "this very difference" in replaced
    inserted = world("whatif", "order-17", "--insert", '0={"type": "send", "id": "u-0", "text": "Hello!"}').out
    assert "at 0: the start, which is followed by: send Hello!\n" in inserted
    skipped = world("whatif", "order-17", "--skip", "9").out
    assert "Retry would send the same." in skipped


def test_what_comes_right_again_is_said(world: Talkfold) -> None:
    (row,) = world("import", "-", "--jsonl", stdin=jsonl([*ORDER, {"type": "reset"}])).jsonl
    assert "all the same again" in world("whatif", row["id"], "--skip", "5").out


def test_only_some_of_many_that_lose_their_effect_are_named(talkfold: Talkfold) -> None:
    words = [part(type="text-delta", messageId="a-1", delta=f"{number} ") for number in range(25)]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl([*ORDER[:2], *words])).jsonl
    out = talkfold("whatif", row["id"], "--skip", "2").out
    assert out.count("has no effect any more") == 10
    assert "and 15 more\n" in out


# ---- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ([], "--skip"),
        (["--skip", "x"], "'x' is no action's number"),
        (["--skip", "0"], "--skip"),
        (["--skip", "9" * 5000], "--skip"),
        (["--replace", "9" * 5000 + '={"type": "stop"}'], "--replace"),
        (["--skip", "5-4"], "--skip"),
        (["--skip", "10"], "ends at 9"),
        (["--skip", "6", "--at", "5"], "ends at 5"),
        (["--skip", "1", "--at", "10"], "10"),
        (["--skip-type", "tool-cal"], "did you mean tool-call?"),
        (["--skip-type", "reset"], "no action of the type 'reset'"),
        (["--skip-call", "c9"], "no call 'c9'"),
        (["--skip-run", "r"], "no run 'r'"),
        (["--replace", "6"], "--replace"),
        (["--replace", '0={"type": "stop"}'], "1 to 9"),
        (["--replace", '10={"type": "stop"}'], "1 to 9"),
        (["--replace", '6={"type": "sto"}'], "--replace"),
        (["--replace", "6={"], "--replace: not valid JSON"),
        (["--replace", "6=[]"], "no action"),
        (["--replace", '6=[{"type": "stop"}, {"type": "stop"}]'], "2 actions"),
        (["--replace", '6={"type": "stop"}', "--replace", '6={"type": "stop"}'], "replaced twice"),
        (["--replace", '6={"type": "stop"}', "--skip", "5-7"], "skipped as well"),
        (["--insert", "6=no-such-file"], "no-such-file"),
        (["--insert", "6=messages.json"], "messages.json"),
        (["--insert", 'x={"type": "stop"}'], "--insert"),
    ],
)
def test_what_makes_no_sense_is_refused(world: Talkfold, wrong: list[str], named: str) -> None:
    ended = world("whatif", "order-17", *wrong)
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err
