"""``blame``: which actions made what stands in a conversation."""

from __future__ import annotations

from typing import Any

import pytest
from cli_world import ORDER, Talkfold, jsonl

from talkfold.audit import Blame, place_at
from talkfold.cli.wording import moment
from talkfold.codec import decode_logged


def part(within: str | None = None, **part: object) -> dict[str, object]:
    return {"type": "part", "part": part} | ({} if within is None else {"within": within})


NESTED: list[dict[str, Any]] = [
    {"type": "send", "id": "u-1", "text": "Pack, please."},
    part(type="message-start", messageId="a-1"),
    part(type="tool-call", messageId="a-1", id="d1", name="delegate_to_packer", input={"task": "Pack 🎒 socks"}),
    part("d1", type="message-start", messageId="n-1"),
    part("d1", type="tool-call", messageId="n-1", id="c1", name="pack", input={"item": "socks"}),
    part("d1", type="tool-result", id="c1", output="packed"),
    part("d1", type="text-delta", messageId="n-1", delta="🎒 Socks "),
    part("d1", type="text-delta", messageId="n-1", delta="are packed."),
    part(type="tool-result", id="d1", output="done"),
    part(type="text-delta", messageId="a-1", delta="All is packed."),
    part(type="tool-call", messageId="a-1", id="c1", name="look", input={}),
    part(type="tool-error", id="c1", error="dark"),
    part(type="finish", reason="stop"),
]
"""A sub-agent, and an id that is used twice."""


@pytest.fixture
def nested(world: Talkfold) -> Talkfold:
    header = {"talkfold": 1, "session": {"id": "nested"}}
    assert world("import", "-", stdin=jsonl([header, *NESTED])).code == 0
    return world


def numbers(talkfold: Talkfold, *arguments: str) -> list[int]:
    ended = talkfold("blame", *arguments, "--json")
    assert ended.code == 0, ended.err
    return [row["number"] for row in ended.json]


# ---- for programs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pointer",
    ["/messages/1/parts/0/text", "/messages/1/parts/1", "/messages/1/parts/1/output", "/messages/0", "/status"],
)
def test_a_place_is_told_as_the_library_does(world: Talkfold, pointer: str) -> None:
    rows = [decode_logged(row) for row in world("steps", "order-17", "--jsonl").out.splitlines()]
    expected = Blame(rows).of(place_at(pointer))
    ended = world("blame", "order-17", pointer, "--json")
    assert [(row["number"], row["by"]) for row in ended.json] == [(each.number, each.by) for each in expected]
    assert {row["place"] for row in ended.json} == {pointer}
    assert world("blame", "order-17", pointer, "--jsonl").jsonl == ended.json
    times = {each.number: moment(each.time) for each in rows}
    assert all(row["time"] == times[row["number"]] for row in ended.json)


def test_every_action_that_made_something_is_in_the_whole(world: Talkfold) -> None:
    rows = world("blame", "order-17", "--json").json
    assert [row["number"] for row in rows] == [1, 3, 4, 5, 6, 7, 8, 9]
    assert rows == world("blame", "order-17", "--jsonl").jsonl
    by = {row["number"]: row["by"] for row in rows}
    assert by[5] == "tool-call"
    assert by[9] == "stop"


def test_a_message_and_a_part_are_counted_from_1(nested: Talkfold) -> None:
    assert numbers(nested, "nested", "--message", "1") == [1]
    every = numbers(nested, "nested")
    assert numbers(nested, "nested", "--message", "a-1") == numbers(nested, "nested", "--message", "2") == every[1:]
    assert numbers(nested, "nested", "--message", "2", "--part", "2") == [10]
    assert numbers(nested, "nested", "--message", "n-1", "--part", "2") == [7, 8]
    assert numbers(nested, "nested", "--message", "n-1") == [5, 6, 7, 8]
    assert numbers(nested, "nested", "/messages/1") == [2]


def test_a_call_by_its_newest_id_or_its_number(nested: Talkfold) -> None:
    assert numbers(nested, "nested", "--call", "d1") == [3, 9]
    assert numbers(nested, "nested", "--call", "c1") == [11, 12]
    assert numbers(nested, "nested", "--call", "5") == [5, 6]
    assert numbers(nested, "nested", "--call", "5", "--field", "output") == [6]
    assert numbers(nested, "nested", "--call", "c1", "--field", "error") == [12]
    assert numbers(nested, "nested", "--call", "c1", "--message", "n-1") == [5, 6]
    assert numbers(nested, "nested", "--call", "d1", "--field", "agent") == [4]


def test_words_are_found_where_they_stand(nested: Talkfold) -> None:
    rows = nested("blame", "nested", "--text", "packed", "--json").json
    assert [(row["number"], row["place"].rsplit("/", 1)[1]) for row in rows] == [
        (6, "output"),
        (8, "text"),
        (10, "text"),
    ]
    assert numbers(nested, "nested", "--text", "Socks are") == [7, 8]
    (row,) = nested("blame", "nested", "--text", "Socks", "--json").json
    assert row["inText"] == [3, 8]  # the rucksack counts as two
    assert numbers(nested, "nested", "--text", "packed", "--message", "2") == [6, 8, 10]
    assert numbers(nested, "nested", "--text", "packed", "--message", "2", "--part", "2") == [10]
    assert numbers(nested, "nested", "--text", "packed", "--call", "d1") == [6, 8]
    assert numbers(nested, "nested", "--text", "packed", "--field", "output") == [6]
    assert numbers(nested, "nested", "--text", "🎒 socks", "--call", "d1") == [3]


def test_words_that_stand_there_twice_are_told_twice(talkfold: Talkfold) -> None:
    log = [*ORDER[:2], *(part(type="text-delta", messageId="a-1", delta=each) for each in ("tea, ", "more tea"))]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    assert numbers(talkfold, row["id"], "--text", "tea") == [3, 4]


def test_as_it_was_earlier(nested: Talkfold) -> None:
    assert numbers(nested, "nested", "--call", "c1", "--at", "10") == [5, 6]
    assert numbers(nested, "nested", "--at", "3") == [1, 3]
    assert numbers(nested, "nested", "--at", "0") == []
    assert numbers(nested, "nested", "/status") == [1, 13]
    assert numbers(nested, "nested", "--field", "status", "--at", "9") == [1]


def test_run_and_actor_are_told(waiting: Talkfold) -> None:
    rows = waiting("blame", "order-18", "--call", "c1", "--json").json
    assert [(row["number"], row["run"], row["state"]) for row in rows] == [
        (3, "run-1", "running"),
        (4, "run-1", "awaiting-confirmation"),
    ]


# ---- for people -----------------------------------------------------------------------------------------


def test_the_conversation_stands_beside_its_numbers(nested: Talkfold) -> None:
    title, *lines = nested("blame", "nested").out.splitlines()
    assert title.split() == ["number", "time", "(UTC)", "conversation"]
    told = {line.split()[0]: line[len("number  2026-11-30 21:23:30  ") :] for line in lines}
    assert told["1"] == "you: Pack, please."
    assert told["3"].startswith("assistant: delegate_to_packer ")
    assert told["5"] == '  assistant: pack {"item": "socks"}'
    assert told["6"] == "    → packed"
    assert told["7-8"] == "    🎒 Socks are packed."
    assert told["9"] == "  → done"
    assert told["12"] == "  → dark"
    every = nested("blame", "nested", "--every").out.splitlines()
    assert {"7", "8"} <= {line.split()[0] for line in every}


def test_a_place_has_its_name(nested: Talkfold) -> None:
    nested_call = nested("blame", "nested", "--call", "5").out.splitlines()[0]
    pointer = "/messages/1/parts/0/agent/messages/0/parts/0/state"
    assert nested_call == f"delegate_to_packer d1 > call pack c1, state  {pointer}"
    text = nested("blame", "nested", "--message", "2", "--part", "2").out.splitlines()[0]
    assert text == "message 2, part 2, text  /messages/1/parts/1/text"


def test_what_nobody_set_is_said(nested: Talkfold) -> None:
    ended = nested("blame", "nested", "--call", "d1", "--field", "prompt")
    assert ended.code == 0
    assert ended.err == "No action has ever set that.\n"


def test_an_empty_conversation_is_said(nested: Talkfold) -> None:
    ended = nested("blame", "nested", "--at", "0")
    assert (ended.code, ended.out, ended.err) == (0, "", "There is no conversation yet.\n")


def test_what_retry_took_away_is_told_by_its_number(world: Talkfold) -> None:
    log = [*ORDER, {"type": "retry"}]
    (row,) = world("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    assert numbers(world, row["id"], "/messages/1/parts/3") == [10]
    ended = world("blame", row["id"], "/messages/1/parts/3")
    assert "took it away" in ended.out
    gone = world("blame", row["id"], "--call", "c2")
    assert gone.code == 2
    assert "--at NUMBER" in gone.err
    assert numbers(world, row["id"], "--call", "c2", "--at", "9") == [8, 9]


# ---- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["/messages/99"], "PLACE"),
        (["/nonsense"], "PLACE"),
        (["/messages/0", "--call", "c1"], "PLACE"),
        (["--call", "nobody"], "--call"),
        (["--call", "c1", "--message", "1"], "no call 'c1'"),
        (["--call", "c1", "--message", "2", "--part", "1"], "--part"),
        (["--call", "c1", "--field", "text"], "--field"),
        (["--message", "nobody"], "--message"),
        (["--message", "0"], "--message"),
        (["--message", "9" * 5000], "--message"),
        (["--call", "9" * 5000], "--call"),
        ([f"/messages/{'9' * 5000}"], "PLACE"),
        (["--message", "3"], "--message"),
        (["--message", "2", "--field", "text"], "--field"),
        (["--message", "2", "--part", "99"], "--part"),
        (["--part", "1"], "--part"),
        (["--field", "output"], "--field"),
        (["--text", "nowhere"], "--text"),
        (["--text", ""], "--text"),
        (["--at", "99"], "99"),
        (["--at=-1"], "-1"),
    ],
)
def test_what_makes_no_sense_is_refused(world: Talkfold, wrong: list[str], named: str) -> None:
    ended = world("blame", "order-17", *wrong)
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err
