"""Runs in real processes that are killed, frozen, followed, stopped and answered by others."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from crew import Crew, crew
from run_world import at_rest, whole_log

from talkfold import Finish, Part, RunError, Stop, ToolCall, ToolResult
from talkfold.log import LoggedAction
from talkfold.store import open_store


class World:
    """A database, the file that tools write to, and a crew."""

    def __init__(self, folder: Path, made: Crew) -> None:
        self.path, self.lines, self.crew = folder / "db" / "chat.db", folder / "lines", made

    def make(self, *sessions: str) -> None:
        async def make() -> None:
            async with open_store(self.path) as store:
                for session in sessions:
                    await store.create(session)

        anyio.run(make)

    def log(self, session: str) -> list[LoggedAction]:
        """The whole log of a session that is at rest (which is checked)."""

        async def look() -> list[LoggedAction]:
            async with open_store(self.path) as store:
                await at_rest(store, session)
                return await whole_log(store, session)

        return anyio.run(look)

    def written(self, session: str) -> list[tuple[str, str, str]]:
        """The lines of a session: run, call id, line."""
        text = self.lines.read_text() if self.lines.exists() else ""
        rows = [tuple(line.split()) for line in text.splitlines()]
        return [(run, call, line) for where, run, call, line in rows if where == session]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "db").mkdir()
    with crew(tmp_path / "db" / "chat.db", tmp_path / "lines") as made:
        yield World(tmp_path, made)


def settling(rows: list[LoggedAction]) -> list[LoggedAction]:
    return [row for row in rows if isinstance(row.action, Stop) and row.actor == "talkfold"]


def results(rows: list[LoggedAction]) -> dict[str, tuple[str, str]]:
    """The lines whose ``mark`` has a result in a log, and the run and call that had it first."""
    made: dict[tuple[str | None, str | None, str], str] = {}
    found: dict[str, tuple[str, str]] = {}
    for row in rows:
        if not isinstance(row.action, Part):
            continue
        part, within = row.action.part, row.action.within
        if isinstance(part, ToolCall) and part.name == "mark":
            made[row.run, within, part.id] = part.input["line"]  # type: ignore[index, call-overload]
        elif isinstance(part, ToolResult) and (row.run, within, part.id) in made:
            found.setdefault(made[row.run, within, part.id], (str(row.run), part.id))
    return found


def nothing_ran_twice(world: World, session: str, rows: list[LoggedAction]) -> None:
    """Each result in the log is one line in the file, and no later run did that again, in a sub-agent neither."""
    written = world.written(session)
    for line, (run, call_id) in results(rows).items():
        assert written.count((run, call_id, line)) == 1, (session, run, line)
        assert not [each for each in written if each[2] == line and each[0] > run], (session, line, written)
    assert all(count == 1 for count in Counter((run, line) for run, _, line in written).values())


# ---- killed --------------------------------------------------------------------------------------------------


def kill_often(world: World, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    sessions = [f"s{number}" for number in range(rounds)]
    world.make(*sessions)
    settled = 0
    for session in sessions:
        pid = world.crew.do("run", session, run="first", lease=1)
        if chance.random() < 0.95:
            world.crew.hears(pid, "begun")
            time.sleep(chance.random() * 0.11)
        else:
            time.sleep(chance.random() * 0.02)  # it may not even have begun
        world.crew.kill(pid)
        openers = world.crew.at_once(6, "open", session)
        opened = [world.crew.hears(opener, "opened") for opener in openers]
        assert len({(each["number"], each["status"]) for each in opened}) == 1, opened
        assert {each["status"] for each in opened} == {"idle"}
        assert {each["run"] for each in opened} == {None}
        assert sum(each["settled"] for each in opened) <= 1
        settled += any(each["settled"] for each in opened)
        again = world.crew.asks("run", "ended", session, run="second")
        assert again["raised"] is None
        assert again["ending"]["part"] == {"type": "finish", "reason": "stop"}, again
    for session in sessions:
        rows = world.log(session)
        assert len(settling(rows)) <= 1
        nothing_ran_twice(world, session, rows)
        assert {"t1", "t2", "t3"} <= {line for _, _, line in world.written(session)}
    assert settled > rounds // 2, "too few were killed at work for this to mean anything"


def test_killed_sixty_times(world: World) -> None:
    kill_often(world, 60, seed=60)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_killed_five_hundred_times(world: World) -> None:
    kill_often(world, 500, seed=500)


# ---- interrupted ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_process_leaves_a_session_that_goes_on(world: World, times: int) -> None:
    """Ctrl-C: the run says its end itself. Whoever presses twice may leave that to the next opener, and may have to
    press once more: asyncio may lose what a task waits for when it is interrupted while it cancels."""
    chance = random.Random(times)
    sessions = [f"s{number}" for number in range(15 if times == 1 else 8)]
    world.make(*sessions)
    aborted = 0
    for session in sessions:
        pid = world.crew.do("run", session, run="first", pace=0.005)
        world.crew.hears(pid, "begun")
        time.sleep(chance.random() * 0.08)
        for _ in range(times):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
            time.sleep(chance.random() * 0.003)
        if times > 1:
            time.sleep(0.5)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        world.crew.gone(pid, 3)
        opened = world.crew.asks("open", "opened", session)
        assert (opened["status"], opened["run"]) == ("idle", None)
        rows = world.log(session)
        assert len(settling(rows)) == opened["settled"] <= times - 1
        if rows[-1].action == Part(Finish("aborted")):
            assert rows[-1].meta is not None
            assert rows[-1].meta["cause"] == "cancelled"
            aborted += 1
        again = world.crew.asks("run", "ended", session, run="second")
        assert again["ending"]["part"] == {"type": "finish", "reason": "stop"}, again
        nothing_ran_twice(world, session, world.log(session))
    assert times == 2 or aborted > 7, "too few were interrupted at work for this to mean anything"


# ---- frozen, and without its database ------------------------------------------------------------------------


def settled_or_ended(world: World, session: str, pid: int, seconds: float = 15) -> bool:
    """Look, as other processes do, until the session has no living run; whether one of them settled it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        opened = world.crew.asks("open", "opened", session)
        if opened["run"] is None:
            return bool(opened["settled"])
        time.sleep(0.05)
    raise AssertionError(f"process {pid} still owns {session}")


def test_a_frozen_run_writes_nothing_once_others_have_settled_it(world: World) -> None:
    chance = random.Random(3)
    sessions = [f"s{number}" for number in range(8)]
    world.make(*sessions)
    frozen: dict[str, tuple[int, set[str]]] = {}
    for session in sessions:
        pid = world.crew.do("run", session, run="first", lease=0.4, pace=0.05)
        world.crew.hears(pid, "tool")
        time.sleep(chance.random() * 0.5)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.01)
        frozen[session] = pid, {told["line"] for told in world.crew.told(pid, "tool")}
    time.sleep(0.5)
    settled = {session: settled_or_ended(world, session, frozen[session][0]) for session in sessions}
    for session in sessions:
        again = world.crew.asks("run", "ended", session, run="second")
        assert again["ending"]["part"] == {"type": "finish", "reason": "stop"}, again
    before = {session: world.log(session) for session in sessions}
    for session, (pid, begun) in frozen.items():
        os.kill(pid, signal.SIGCONT)
        ended = world.crew.hears(pid, "ended")
        world.crew.gone(pid)
        rows = world.log(session)
        assert rows == before[session], "the frozen run wrote when it woke up"
        assert len(settling(rows)) == settled[session]
        if settled[session]:
            stop = settling(rows)[0]
            assert (ended["raised"], ended["ending"]["cause"]) == ("LeaseLost", "lease-lost")
            assert stop.run == "first"
            assert not [row for row in rows if row.run == "first" and row.number > stop.number]
            assert {told["line"] for told in world.crew.told(pid, "tool")} == begun, "a tool began after the freeze"
        nothing_ran_twice(world, session, rows)
    assert sum(settled.values()) >= 6, "too few were frozen at work for this to mean anything"


def either_way(world: World, session: str, pid: int, settled: bool) -> None:
    """The run lost its session, or nobody else wanted it: in both cases the log has one end of it."""
    ended = world.crew.hears(pid, "ended")
    world.crew.gone(pid)
    rows = world.log(session)
    assert len(settling(rows)) == settled
    if settled:
        how = (ended["raised"], ended["ending"]["cause"])
        assert how in (("LeaseLost", "lease-lost"), ("StoreUnavailable", "store")), ended
        assert rows[-1].action == Stop()
    elif ended["raised"] == "StoreUnavailable":  # the store said so, and was there again for the end
        last = rows[-1].action
        assert ended["ending"]["cause"] == "store", ended
        assert isinstance(last, Part)
        assert isinstance(last.part, RunError)
    else:
        assert ended["raised"] is None, ended
        assert rows[-1].action == Part(Finish("stop"))
    nothing_ran_twice(world, session, rows)


def test_a_database_that_is_locked_for_longer_than_the_lease(world: World) -> None:
    sessions = [f"s{number}" for number in range(4)]
    world.make(*sessions)
    pids = {session: world.crew.do("run", session, run="first", lease=0.3, pace=0.02) for session in sessions}
    for pid in pids.values():
        world.crew.hears(pid, "tool", line="t1")
    code = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(1)
connection.execute("ROLLBACK")
"""
    locking = subprocess.Popen([sys.executable, "-c", code, str(world.path)], stdout=subprocess.PIPE, text=True)
    try:
        assert locking.stdout is not None
        assert locking.stdout.readline() == "locked\n"
        settled = {session: settled_or_ended(world, session, pid) for session, pid in pids.items()}
    finally:
        locking.communicate()
    for session, pid in pids.items():
        either_way(world, session, pid, settled[session])


def test_a_folder_that_is_moved_away_for_longer_than_the_lease(world: World) -> None:
    """What is open stays open: some runs go on as if nothing had happened. Those that must open a file wait."""
    sessions = [f"s{number}" for number in range(4)]
    world.make(*sessions)
    settings = {"run": "first", "lease": 0.3, "pace": 0.02, "timeout": 1}
    pids = {session: world.crew.do("run", session, **settings) for session in sessions}
    for pid in pids.values():
        world.crew.hears(pid, "tool", line="t1")
    folder = world.path.parent
    away = folder.rename(folder.with_name("away"))
    time.sleep(0.8)
    away.rename(folder)
    settled = {session: settled_or_ended(world, session, pid) for session, pid in pids.items()}
    for session, pid in pids.items():
        either_way(world, session, pid, settled[session])


# ---- followed ------------------------------------------------------------------------------------------------


def followed(world: World, pid: int) -> list[dict[str, Any]]:
    """What a follower saw, in order, when it has come to the end."""
    world.crew.hears(pid, "followed")
    return world.crew.told(pid, "row")


def test_followers_get_every_action_through_the_end(world: World) -> None:
    world.make("s")
    runner = world.crew.do("run", "s", run="first", pace=0.02)
    world.crew.hears(runner, "begun")
    followers: list[int] = []
    for _ in range(6):
        followers.append(world.crew.do("follow", "s"))
        time.sleep(0.06)
    world.crew.hears(runner, "ended")
    rows = world.log("s")
    for follower in followers:
        seen = followed(world, follower)
        assert [row["number"] for row in seen] == list(range(1, len(rows) + 1))
    assert rows[-1].action == Part(Finish("stop"))


def test_a_follower_of_a_killed_run_gets_the_settling_stop(world: World) -> None:
    chance = random.Random(9)
    sessions = [f"s{number}" for number in range(6)]
    world.make(*sessions)
    for session in sessions:
        runner = world.crew.do("run", session, run="first", pace=0.03, lease=60)
        world.crew.hears(runner, "tool")
        followers = [world.crew.do("follow", session) for _ in range(2)]
        for follower in followers:
            world.crew.hears(follower, "row", number=1)
        time.sleep(chance.random() * 0.2)
        world.crew.kill(runner)
        for follower in followers:
            seen = followed(world, follower)
            rows = world.log(session)
            assert [row["number"] for row in seen] == list(range(1, len(rows) + 1))
            assert (seen[-1]["type"], seen[-1]["run"]) == ("Stop", "first")
        assert len(settling(rows)) == 1


# ---- stopped -------------------------------------------------------------------------------------------------


def test_stop_from_another_process_ends_the_run_within_a_second(world: World) -> None:
    world.make("s")
    runner = world.crew.do("run", "s", run="first", pace=30)
    world.crew.hears(runner, "tool", line="t1")
    stopped = world.crew.asks("stop", "stopped", "s")
    ended = world.crew.hears(runner, "ended")
    assert ended["heard"] - stopped["heard"] < 1
    assert (ended["ending"]["cause"], ended["ending"]["part"]["reason"]) == ("stop", "aborted")
    assert [told["line"] for told in world.crew.told(runner, "tool-cancelled")] == ["t1"]
    rows = world.log("s")
    (stop,) = [row for row in rows if isinstance(row.action, Stop)]
    assert stop.actor == "another process"
    assert rows[-1].action == Part(Finish("aborted"))
    assert world.written("s") == []


def test_an_agent_that_ignores_the_stop_is_cancelled_after_its_grace_time(world: World) -> None:
    world.make("s")
    runner = world.crew.do("run", "s", run="first", agent="deaf", grace=0.6)
    world.crew.hears(runner, "deaf")
    stopped = world.crew.asks("stop", "stopped", "s")
    ended = world.crew.hears(runner, "ended")
    assert 0.4 < ended["heard"] - stopped["heard"] < 1.6
    assert ended["ending"]["part"] == {"type": "finish", "reason": "aborted"}
    assert world.log("s")[-1].action == Part(Finish("aborted"))


# ---- answered ------------------------------------------------------------------------------------------------

AGENT_OF = {"approve": "pays", "deny": "pays", "give": "signs"}


@pytest.mark.parametrize("how", AGENT_OF)
def test_of_six_answers_from_other_processes_one_wins(world: World, how: str) -> None:
    sessions = [f"s{number}" for number in range(4)]
    world.make(*sessions)
    for session in sessions:
        runner = world.crew.do("run", session, run="first", agent=AGENT_OF[how], pace=0.01)
        parked = world.crew.asks("parked", "parked", session)
        answer = {"how": how, "call": parked["call"], "input": parked["input"]}
        answering = world.crew.at_once(6, "answer", session, **answer)
        numbers = [world.crew.hears(pid, "answered")["number"] for pid in answering]
        (won,) = [number for number in numbers if number is not None]
        ended = world.crew.hears(runner, "ended")
        assert ended["ending"]["part"] == {"type": "finish", "reason": "stop"}
        rows = world.log(session)
        assert [row.number for row in rows if row.meta and row.meta.get("answers")] == [won]
        written = [line for _, _, line in world.written(session)]
        assert written == (["p1"] if how == "approve" else [])
        late = world.crew.asks("answer", "answered", session, **answer)
        assert late["number"] is None


def test_approve_and_deny_at_once(world: World) -> None:
    sessions = [f"s{number}" for number in range(6)]
    world.make(*sessions)
    for session in sessions:
        runner = world.crew.do("run", session, run="first", agent="pays", pace=0.01)
        parked = world.crew.asks("parked", "parked", session)
        moment = time.time() + 0.05
        asked = {"call": parked["call"], "input": parked["input"], "at": moment}
        pids = {how: world.crew.do("answer", session, how=how, **asked) for how in ("approve", "deny")}
        numbers = {how: world.crew.hears(pid, "answered")["number"] for how, pid in pids.items()}
        world.crew.hears(runner, "ended")
        world.log(session)
        (how,) = [how for how, number in numbers.items() if number is not None]
        assert len(world.written(session)) == (how == "approve")
