"""``stats``: what sessions took and used."""

from __future__ import annotations

from typing import Any

import pytest
from cli_world import Talkfold, jsonl

import talkfold.cli.feeding as feeding
from talkfold.cli.wording import moment

START = 1_700_000_000_000


def row(after: int, run: str, action: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """A line of a log: so many milliseconds after the start of it."""
    return {"time": moment(START + after), "run": run, "action": action} | ({"meta": meta} if meta else {})


def numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"number": number, **row} for number, row in enumerate(rows, 1)]


def part(**part: object) -> dict[str, object]:
    return {"type": "part", "part": part}


def asked(state: str) -> dict[str, object]:
    return {"type": "toolPhase", "name": "pay", "state": state}


USED = {"inputTokens": 100, "outputTokens": 20, "cost": 0.1}

BUSY: list[dict[str, Any]] = numbered(
    [
        row(0, "r1", {"type": "send", "id": "u-1", "text": "Two mugs, please."}),
        row(0, "r1", part(type="message-start", messageId="a-1")),
        row(100, "r1", part(type="tool-call", messageId="a-1", id="c1", name="find", input={})),
        row(300, "r1", part(type="tool-result", id="c1", output=1)),
        row(300, "r1", part(type="tool-call", messageId="a-1", id="c2", name="find", input={})),
        row(1_300, "r1", part(type="tool-error", id="c2", error="no")),
        row(
            1_300,
            "r1",
            part(type="step-finish", step=1),
            model="m-1",
            usage={"inputTokens": 100, "outputTokens": 20, "cost": 0.1},
        ),
        row(1_400, "r1", part(type="tool-call", messageId="a-1", id="c3", name="pay", input={})),
        row(1_500, "r1", asked("awaiting-confirmation")),
        row(61_500, "r1", asked("running")),
        row(61_600, "r1", part(type="tool-result", id="c3", output=1)),
        row(61_700, "r1", part(type="text-delta", messageId="a-1", delta="Done.")),
        row(61_800, "r1", part(type="finish", reason="stop"), model="m-2", usage={"inputTokens": 200, "cost": 0.2}),
    ]
)
"""Calls of two tools, one of them failed; a person was waited for; two models."""

CUT: list[dict[str, Any]] = numbered(
    [
        row(0, "r2", {"type": "send", "id": "u-1", "text": "Three mugs."}),
        row(0, "r2", part(type="message-start", messageId="a-1")),
        row(
            0,
            "r2",
            part(type="tool-call", messageId="a-1", id="c1", name="find", input={}),
            usage={"inputTokens": "many"},
        ),
        row(400, "r2", {"type": "stop"}),
        row(300, "r3", {"type": "send", "id": "u-2", "text": "Well?"}),
    ]
)
"""A call that was stopped, a usage that cannot be read, a clock that went back, a run without an end."""


@pytest.fixture
def shop(talkfold: Talkfold) -> Talkfold:
    """The sessions ``busy`` and ``cut``."""
    for name, log in (("busy", BUSY), ("cut", CUT)):
        header = {"talkfold": 1, "session": {"id": name}}
        assert talkfold("import", "-", stdin=jsonl([header, *log])).code == 0
    return talkfold


def by(rows: list[dict[str, Any]], key: str) -> dict[Any, dict[str, Any]]:
    return {row.get(key): row for row in rows}


# ---- for programs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [1, 4, 1000])
def test_one_session(shop: Talkfold, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(feeding, "_PAGE", page)
    told = shop("stats", "busy", "--json").json
    assert (told["id"], told["sessions"], told["actions"], told["steps"]) == ("busy", 1, len(BUSY), 2)
    assert told["runs"] == {"count": 1, "ended": {"stop": 1}, "ms": 61_800, "waitingMs": 60_000}
    assert told["subAgents"]["count"] == 0
    tools = by(told["tools"], "name")
    assert list(tools) == ["find", "pay"]
    assert tools["find"] == {
        "name": "find",
        "calls": 2,
        "failed": 1,
        "cancelled": 0,
        "open": 0,
        "medianMs": 200,
        "longestMs": 1_000,
        "totalMs": 1_200,
        "waitingMs": 0,
    }
    assert (tools["pay"]["longestMs"], tools["pay"]["waitingMs"]) == (200, 60_000)
    assert (told["clockBack"], told["unreadUsage"]) == (0, 0)


def test_tokens_and_cost_add_up_as_on_paper(shop: Talkfold) -> None:
    told = shop("stats", "busy", "--json").json
    assert told["usage"] == {"inputTokens": 300, "outputTokens": 20, "totalTokens": 320, "cost": 0.3}
    models = by(told["models"], "model")
    assert models["m-1"]["usage"]["totalTokens"] == 120
    assert models["m-2"]["usage"] == {"inputTokens": 200, "totalTokens": 200, "cost": 0.2}


def test_all_sessions_are_the_sum_of_each(shop: Talkfold) -> None:
    told = shop("stats", "--all", "--json").json
    each = shop("stats", "--all", "--jsonl").jsonl
    assert {row["id"] for row in each} == {"busy", "cut"}
    assert "id" not in told
    for key in ("sessions", "actions", "steps", "clockBack", "unreadUsage"):
        assert told[key] == sum(row[key] for row in each)
    assert told["runs"]["ended"] == {"stop": 1, "stopped": 1, "open": 1}
    find = by(told["tools"], "name")["find"]
    assert (find["calls"], find["failed"], find["cancelled"]) == (3, 1, 1)
    assert (find["medianMs"], find["longestMs"]) == (400, 1_000)
    assert (told["clockBack"], told["unreadUsage"]) == (1, 1)
    assert shop("stats", "cut", "--jsonl").jsonl == [row for row in each if row["id"] == "cut"]


def test_the_slowest_steps(shop: Talkfold) -> None:
    slow = shop("stats", "--all", "--json").json["slowestSteps"]
    assert [(row["sessionId"], row["ms"]) for row in slow] == [("busy", 60_500), ("busy", 1_300), ("cut", 400)]
    assert shop("stats", "--all", "--slowest", "1", "--json").json["slowestSteps"] == slow[:1]
    assert shop("stats", "--all", "--slowest", "0", "--json").json["slowestSteps"] == []


def test_only_the_owners_sessions(shop: Talkfold) -> None:
    assert shop("stats", "--all", "--owner", "nobody", "--json").json["sessions"] == 0
    assert shop("stats", "busy", "--owner", "nobody").code == 3


# ---- for people -----------------------------------------------------------------------------------------


def test_it_reads_well(shop: Talkfold) -> None:
    ended = shop("stats", "busy")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[:4] == [
        "busy  13 actions",
        "runs        1 (1 stop), 1 min 2 s, 1 min of it waiting for a person",
        "steps       2",
        "used        300 tokens in, 20 out, 320 in all, cost 0.3",
    ]
    assert "tool  calls  failed  median  longest  waited" in lines
    assert "find  2      1       200 ms  1.0 s" in lines
    assert "m-1    1        100        20   120     0.1" in lines
    assert lines[-3:] == [
        "number  took   first letter  model  tokens",
        "8-13    1 min  1 min         m-2    200",
        "2-7     1.3 s                m-1    120",
    ]


def test_what_could_not_be_counted_is_said(shop: Talkfold) -> None:
    ended = shop("stats", "--all")
    assert ended.out.startswith("2 sessions  18 actions\n")
    assert "1 time the clock went back" in ended.err
    assert "usage of 1 action could not be read" in ended.err


def test_without_times_no_step_is_the_slowest(talkfold: Talkfold) -> None:
    log = [{**line, "time": moment(START)} for line in BUSY]
    (made,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    assert "slowest" not in talkfold("stats", made["id"]).out


def test_a_long_log_is_read_to_its_end(talkfold: Talkfold) -> None:
    words = [part(type="text-delta", messageId="a-1", delta=f"{number} ") for number in range(2_500)]
    log = [each["action"] for each in BUSY[:2]] + words
    (made,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    assert talkfold("stats", made["id"], "--json").json["actions"] == 2_502


@pytest.mark.parametrize(
    ("wrong", "named"), [([], "ID"), (["busy", "--all"], "ID"), (["busy", "--slowest=-1"], "--slowest")]
)
def test_what_makes_no_sense_is_refused(shop: Talkfold, wrong: list[str], named: str) -> None:
    ended = shop("stats", *wrong)
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err
