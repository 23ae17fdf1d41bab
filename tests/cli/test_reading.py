"""``list``, ``show``, ``steps``, ``retry``: looking, which changes nothing."""

from __future__ import annotations

import json

import pytest
from cli_world import ORDER, Talkfold, jsonl

from talkfold import decode_action, encode_state, fold, retry_plan

ACTIONS = [decode_action(json.dumps(action)) for action in ORDER]


def test_looking_changes_nothing(world: Talkfold) -> None:
    before = world("list", "--json").json
    for command in ("show", "steps", "retry", "export", "check"):
        assert world(command, "order-17").code == 0
    assert world("list", "--json").json == before


# ---- list -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ((), {"order-17", "chat-1", "chat-2"}),
        (("--title", "BLUE"), {"order-17"}),
        (("--status", "idle"), {"order-17", "chat-1", "chat-2"}),
        (("--status", "streaming"), set[str]()),
        (("--where", "shop=north"), {"order-17"}),
        (("--where", "shop=south"), set[str]()),
        (("--where", "n=7"), {"order-17"}),
        (("--where", 'n="7"'), set[str]()),
        (("--where", "shop=north", "--where", "n=8"), set[str]()),
        (("--owner", "nobody"), set[str]()),
    ],
)
def test_list_filters(world: Talkfold, filters: tuple[str, ...], found: set[str]) -> None:
    assert {session["id"] for session in world("list", "--json", *filters).json["sessions"]} == found


def test_list_pages(world: Talkfold) -> None:
    seen: list[str] = []
    cursor: list[str] = []
    while True:
        page = world("list", "--json", "--limit", "1", *cursor).json
        seen += [session["id"] for session in page["sessions"]]
        if "next" not in page:
            break
        cursor = ["--cursor", page["next"]]
    assert seen == ["chat-2", "chat-1", "order-17"]
    assert "--cursor" in world("list", "--limit", "1").err


@pytest.mark.parametrize("wrong", [["--limit", "0"], ["--cursor", "nonsense"], ["--where", "no-equals"]])
def test_list_refuses_what_makes_no_sense(world: Talkfold, wrong: list[str]) -> None:
    ended = world("list", *wrong)
    assert (ended.code, ended.out) == (2, "")


# ---- ids ------------------------------------------------------------------------------------------------


def test_the_beginning_of_an_id_is_enough_when_it_is_the_only_one(world: Talkfold) -> None:
    assert world("show", "ord").out == world("show", "order-17").out
    ambiguous = world("show", "chat")
    assert (ambiguous.code, ambiguous.out) == (2, "")
    assert "chat-1" in ambiguous.err
    assert "chat-2" in ambiguous.err
    unknown = world("show", "nothing")
    assert (unknown.code, unknown.out) == (3, "")
    assert "'nothing'" in unknown.err


def test_a_whole_id_wins_over_longer_ones(world: Talkfold) -> None:
    assert world("fork", "chat-1", "--new-id", "chat-10").code == 0
    assert world("show", "chat-1", "--json").json["session"]["id"] == "chat-1"


# ---- show -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(len(ORDER) + 1))
def test_show_at_every_number_is_the_fold_of_the_log_up_to_there(world: Talkfold, at: int) -> None:
    shown = world("show", "order-17", "--at", str(at), "--json").json
    assert shown["number"] == at
    assert shown["state"] == json.loads(encode_state(fold(ACTIONS[:at])))


def test_show_says_who_said_what(world: Talkfold) -> None:
    out = world("show", "order-17").out
    for words in ("you ", "Two blue mugs, please.", "I look for mugs.", "find", "[done]", "pay", "[cancelled]", "idle"):
        assert words in out


@pytest.mark.parametrize("command", ["show", "retry"])
def test_beyond_the_end_is_refused(world: Talkfold, command: str) -> None:
    ended = world(command, "order-17", "--at", "99")
    assert (ended.code, ended.out) == (2, "")
    assert str(len(ORDER)) in ended.err


# ---- steps ----------------------------------------------------------------------------------------------


def test_steps_are_the_logged_actions(world: Talkfold) -> None:
    rows = world("steps", "order-17", "--jsonl").jsonl
    assert [row["number"] for row in rows] == list(range(1, len(ORDER) + 1))
    assert [row["action"] for row in rows] == ORDER
    assert world("steps", "order-17", "--json").json == rows
    assert world("steps", "order-17", "--from", "3", "--to", "5", "--jsonl").jsonl == rows[2:5]


def test_steps_for_people_join_a_streamed_text(world: Talkfold) -> None:
    lines = world("steps", "order-17").out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["1", "2", "3-4", "5", "6", "7", "8", "9"]
    assert "I look for mugs." in lines[2]
    assert "idle" in lines[-1]
    every = world("steps", "order-17", "--every").out.splitlines()[1:]
    assert [line.split()[0] for line in every] == [str(number) for number in range(1, 10)]


def test_steps_name_what_changed_nothing(talkfold: Talkfold) -> None:
    log = [*ORDER[:1], {"type": "part", "part": {"type": "step-finish", "step": 1}}]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    effects = [line.split()[-1] for line in talkfold("steps", row["id"]).out.splitlines()[1:]]
    assert effects == ["streaming", "none"]


@pytest.mark.parametrize("wrong", [["--from", "0"], ["--to", "99"]])
def test_steps_outside_the_log_are_refused(world: Talkfold, wrong: list[str]) -> None:
    ended = world("steps", "order-17", *wrong)
    assert (ended.code, ended.out) == (2, "")


# ---- retry ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(len(ORDER) + 1))
def test_retry_is_the_plan_of_the_state(world: Talkfold, at: int) -> None:
    shown = world("retry", "order-17", "--at", str(at), "--json").json
    plan = retry_plan(fold(ACTIONS[:at]).messages)
    assert [message["id"] for message in shown["messages"]] == [message.id for message in plan.messages]
    assert [(part["messageId"], part["reason"]) for part in shown["dropped"]] == [
        (part.message_id, part.reason) for part in plan.dropped
    ]
    assert shown["atRisk"] == []


def test_retry_says_what_goes_and_why(world: Talkfold) -> None:
    out = world("retry", "order-17").out
    sent, dropped = out.split("and drops")
    assert "find" in sent
    assert "There are two." in dropped
    assert "comes after the last finished call" in dropped
    assert "the call was cancelled" in dropped


def test_retry_names_what_a_sub_agent_might_do_twice(talkfold: Talkfold) -> None:
    def part(within: str | None = None, **part: object) -> dict[str, object]:
        return {"type": "part", "part": part, **({"within": within} if within else {})}

    log = [
        {"type": "send", "id": "u", "text": "Send it."},
        part(type="message-start", messageId="a"),
        part(type="tool-call", messageId="a", id="d", name="delegate_to_post", input={}),
        part("d", type="message-start", messageId="n"),
        part("d", type="tool-call", messageId="n", id="s", name="book_courier", input={}),
        part("d", type="tool-result", id="s", output={}),
        {"type": "stop"},
    ]
    (row,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    (risk,) = talkfold("retry", row["id"], "--json").json["atRisk"]
    assert (risk["path"], risk["call"]["id"]) == (["d"], "s")
    assert "At risk: 1 finished call" in talkfold("retry", row["id"]).out


def test_show_has_the_newest_messages_of_a_long_conversation(talkfold: Talkfold) -> None:
    said = [{"type": "send", "id": f"u-{n}", "text": f"message {n}."} for n in range(150)]
    talkfold("import", "-", stdin=jsonl([{"talkfold": 1, "session": {"id": "long"}}, *said]))
    shown = talkfold("show", "long")
    assert [word for word in ("message 49.", "message 50.", "message 149.") if word in shown.out] == [
        "message 50.",
        "message 149.",
    ]
    assert "50 messages before these: --last 0 shows all." in shown.err
    whole = talkfold("show", "long", "--last", "0")
    assert "message 0." in whole.out
    assert "before these" not in whole.err
    assert len(talkfold("show", "long", "--json").json["state"]["messages"]) == 150
    assert talkfold("show", "long", "--last", "-1").code == 2
