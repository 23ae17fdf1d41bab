"""``search``: what it finds and how it says so, its pages, and its switch."""

from __future__ import annotations

import pytest
from cli_world import Talkfold


def test_hits_stand_under_their_sessions(world: Talkfold) -> None:
    ended = world("search", "mug*")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "chat-1",
        "  3  tool-call  find q: mug",
        "  1  send       Is there a blue mug?",
        "order-17  Blue mugs",
        "    5  tool-call   find q: mug",
        "  3-4  text-delta  I look for mugs.",
        "    1  send        Two blue mugs, please.",
    ]
    assert ended.err == "5 texts in 2 sessions. In its place: talkfold show chat-1 --at 3\n"
    assert world("show", "order-17", "--at", "4").code == 0


def test_what_the_shell_left_of_a_phrase_is_a_phrase(world: Talkfold) -> None:
    assert [hit["first"] for hit in world("search", "blue mug", "--json").json["hits"]] == [1]
    assert [hit["first"] for hit in world("search", "mug blue", "--json").json["hits"]] == []
    assert [hit["first"] for hit in world("search", "mug", "blue", "--json").json["hits"]] == [1]
    assert [hit["first"] for hit in world("search", '"blue mug" there', "--json").json["hits"]] == [1]


def test_one_session_and_some_kinds(world: Talkfold) -> None:
    found = world("search", "mug*", "--session", "order", "--kind", "send", "--kind", "text-delta", "--jsonl")
    assert found.jsonl == [
        {
            "sessionId": "order-17",
            "first": 3,
            "last": 4,
            "kind": "text-delta",
            "excerpt": "I look for mugs.",
            "matches": [[11, 15]],
            "messageId": "a-1",
        },
        {
            "sessionId": "order-17",
            "first": 1,
            "last": 1,
            "kind": "send",
            "excerpt": "Two blue mugs, please.",
            "matches": [[9, 13]],
            "messageId": "u-1",
        },
    ]


def test_pages(world: Talkfold) -> None:
    first = world("search", "mug*", "--limit", "3", "--json").json
    assert f"There are more: --cursor {first['next']}\n" in world("search", "mug*", "--limit", "3").err
    rest = world("search", "mug*", "--cursor", first["next"], "--json").json
    assert "next" not in rest
    assert [*first["hits"], *rest["hits"]] == world("search", "mug*", "--json").json["hits"]


def test_nothing_found_is_no_fault(world: Talkfold) -> None:
    ended = world("search", "mu")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("Nothing was found")
    assert world("search", "mu", "--json").json == {"hits": []}


def test_off_and_on(world: Talkfold) -> None:
    refused = world("search", "--off")
    assert (refused.code, "nobody here to ask" in refused.err) == (2, True)
    assert world("search", "mug").code == 0
    assert world("search", "--off", "--yes").err == "Search is off: its index is removed, the logs are as they were.\n"
    ended = world("search", "mug")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith("talkfold: search is switched off in this database\n  Switch it on")
    assert world("import", "--format", "openai", "chats.jsonl").code == 0
    assert world("search", "--on", "--json").json == {"search": True}
    assert len(world("search", "mug", "--json").json["hits"]) == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "WORDS"),
        (["..."], "query"),
        (["--on", "mug"], "--on"),
        (["--on", "--off"], "--on"),
        (["mug", "--limit", "0"], "limit"),
        (["mug", "--cursor", "x"], "'x' is no cursor"),
        (["mug", "--kind", "nonsense"], "nonsense"),
    ],
)
def test_what_is_no_search_is_refused(world: Talkfold, arguments: list[str], said: str) -> None:
    ended = world("search", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_session_that_is_not_there(world: Talkfold) -> None:
    assert world("search", "mug", "--session", "nowhere").code == 3
