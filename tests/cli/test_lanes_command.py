"""``lanes``: runs, sub-agents and calls as intervals; and how durations and bars are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_world import Talkfold, jsonl
from msgspec import to_builtins

import talkfold.cli.feeding as feeding
from talkfold.audit import lanes
from talkfold.cli.durations import duration
from talkfold.cli.waterfall import bar
from talkfold.cli.wording import moment
from talkfold.codec import decode_logged

START = 1_700_000_000_000


def row(after: int, run: str | None, action: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """A line of a log: so many milliseconds after the start of it."""
    line: dict[str, Any] = {"time": moment(START + after), "action": action}
    return line | ({} if run is None else {"run": run}) | ({"meta": meta} if meta else {})


def numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"number": number, **row} for number, row in enumerate(rows, 1)]


def part(within: str | None = None, **part: object) -> dict[str, object]:
    return {"type": "part", "part": part} | ({} if within is None else {"within": within})


RUNS: list[dict[str, Any]] = numbered(
    [
        row(0, "r1", {"type": "send", "id": "u-1", "text": "Pack, please."}),
        row(100, "r1", part(type="message-start", messageId="a-1")),
        row(1_000, "r1", part(type="tool-call", messageId="a-1", id="d1", name="delegate_to_packer", input={})),
        row(1_100, "r1", part("d1", type="message-start", messageId="n-1")),
        row(1_200, "r1", part("d1", type="tool-call", messageId="n-1", id="c1", name="pack", input={})),
        row(3_200, "r1", part("d1", type="tool-result", id="c1", output="packed")),
        row(3_500, "r1", part(type="tool-result", id="d1", output="done")),
        row(4_000, "r1", part(type="finish", reason="stop"), model="m", usage={"inputTokens": 10, "outputTokens": 5}),
        row(10_000, "r2", {"type": "send", "id": "u-2", "text": "And now?"}),
        row(10_200, "r2", part(type="message-start", messageId="a-2")),
        row(10_300, "r2", part(type="tool-call", messageId="a-2", id="c2", name="pack", input={})),
        row(10_900, "r2", part(type="tool-error", id="c2", error="no room")),
        row(11_000, "r2", {"type": "stop"}),
    ]
)
"""Two runs; the first one has a sub-agent in it."""


@pytest.fixture
def runs(talkfold: Talkfold) -> Talkfold:
    """The session ``runs``."""
    header = {"talkfold": 1, "session": {"id": "runs", "title": "Packing"}}
    assert talkfold("import", "-", stdin=jsonl([header, *RUNS])).code == 0
    return talkfold


def told(talkfold: Talkfold, session: str) -> list[dict[str, Any]]:
    """What the library tells of the log, as the command line gives it out."""
    rows = [decode_logged(row) for row in talkfold("steps", session, "--jsonl").out.splitlines()]
    found = [{**to_builtins(each), "ms": each.end - each.start} for each in lanes(rows)]
    return json.loads(json.dumps([{"lane": index, **each} for index, each in enumerate(found)]))


# ---- for programs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [1, 3, 1000])
def test_they_are_those_of_the_library(runs: Talkfold, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(feeding, "_PAGE", page)
    expected = told(runs, "runs")
    assert len(expected) == 5
    assert runs("lanes", "runs", "--json").json == expected
    assert runs("lanes", "runs", "--jsonl").jsonl == expected


def test_one_run_with_what_is_in_it(runs: Talkfold) -> None:
    every = told(runs, "runs")
    assert runs("lanes", "runs", "--run", "r1", "--json").json == every[:3]
    assert runs("lanes", "runs", "--run", "r2", "--json").json == every[3:]
    assert runs("lanes", "runs", "--run", "r", "--json").json == every


@pytest.mark.parametrize("depth", [0, 1, 2, 9])
def test_only_so_deep(runs: Talkfold, depth: int) -> None:
    expected = [lane for lane in told(runs, "runs") if lane.get("depth", 0) <= depth]
    assert runs("lanes", "runs", "--depth", str(depth), "--json").json == expected


# ---- for people -----------------------------------------------------------------------------------------


def test_a_pipe_gets_columns(runs: Talkfold) -> None:
    ended = runs("lanes", "runs")
    assert [line.split("  2023")[0].rstrip() for line in ended.out.splitlines()[1:]] == [
        "1-8     run r1",
        "3-7       packer (agent) d1",
        "5-6         pack c1",
        "9-13    run r2",
        "11-12     pack c2",
    ]
    assert [line.split()[-1] for line in ended.out.splitlines()[1:]] == ["stop", "done", "done", "stopped", "error"]
    assert " 2.0 s " in ended.out
    assert ended.err.startswith("2 runs, 1 sub-agent, 2 calls.")


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_terminal_gets_bars_that_fit(runs: Talkfold, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    title, *lines = runs("lanes", "runs").out.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert "11.0 s in all" in title
    assert all(len(line) <= width for line in lines)
    begins = [len(line) - len(line[line.rindex("  ") :].lstrip()) for line in lines]
    assert begins == sorted(begins)
    first, last = (line[line.rindex("  ") :].strip() for line in (lines[0], lines[3]))
    assert len(first) > len(last) >= 1
    assert len(lines[3]) >= width - 1  # the last run goes on to the end


def test_without_times_the_bars_go_by_number(talkfold: Talkfold, monkeypatch: pytest.MonkeyPatch) -> None:
    log = [{**line, "time": moment(START)} for line in RUNS]
    (made,) = talkfold("import", "-", "--jsonl", stdin=jsonl(log)).jsonl
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = talkfold("lanes", made["id"]).out
    assert "by number" in out
    assert "█" in out


def test_a_run_that_lives_is_said(waiting: Talkfold) -> None:
    ended = waiting("lanes", "order-18")
    assert ended.out.splitlines()[-1].endswith("open")
    assert "Run run-1 is still at it" in ended.err


def test_an_empty_log_is_said(talkfold: Talkfold) -> None:
    assert talkfold("import", "-", stdin=jsonl([{"talkfold": 1, "session": {"id": "none"}}])).code == 0
    ended = talkfold("lanes", "none")
    assert (ended.code, ended.out, ended.err) == (0, "", "Nothing went on yet.\n")


@pytest.mark.parametrize(
    ("wrong", "named"), [(["--run", "r9"], "it has r1, r2"), (["--depth=-1"], "--depth"), (["--depth", "x"], "--depth")]
)
def test_what_makes_no_sense_is_refused(runs: Talkfold, wrong: list[str], named: str) -> None:
    ended = runs("lanes", "runs", *wrong)
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err


# ---- durations and bars ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_949, "59.9 s"),
        (59_950, "1 min"),
        (125_000, "2 min 5 s"),
        (3_600_000, "1 h"),
        (11_400_000, "3 h 10 min"),
        (187_200_000, "2 d 4 h"),
    ],
)
def test_durations(ms: int, said: str) -> None:
    assert duration(ms) == said


@pytest.mark.parametrize("width", [8, 30])
def test_bars_are_there_and_stay_within(width: int) -> None:
    places = [number / 40 for number in range(41)]
    for begin in places:
        for end in [each for each in places if each >= begin]:
            drawn = bar(begin, end, width)
            assert drawn.strip()
            assert len(drawn) <= width
            assert len(drawn) - len(drawn.lstrip()) <= begin * width
            assert len(drawn) <= max(end * width, len(drawn) - len(drawn.lstrip())) + 1
    assert bar(0, 1, 8) == "█" * 8
    assert bar(0.5, 1, 8) == "    ████"
    assert bar(0, 1 / 16, 8) == "▌"
