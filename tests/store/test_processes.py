"""Several processes on one file."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import time
from pathlib import Path

import pytest
from children import all_at_once, ended, started

from talkfold.actions import Send, Stop
from talkfold.errors import SessionErased, StoreBusy
from talkfold.store import SessionStore, open_store
from talkfold.testing.store_contract.samples import CONVERSATION, has_open_calls

HELLO = Send("u", "hello")


async def test_forty_processes_open_one_new_file(path: Path) -> None:
    answers = all_at_once(
        path,
        40,
        """
async def main():
    async with open_store(path) as store:
        await store.append("s", [Send("u", args[0])], expected=ANY)
        say("opened")
wait_for_start()
run(main())
""",
    )
    assert answers == [[["opened"]]] * 40
    async with open_store(path) as store:
        assert (await store.get("s")).number == 40
        assert (await store.check("s")).problems == ()
        texts = {row.action.text for row in await store.read("s") if isinstance(row.action, Send)}
        assert texts == {str(index) for index in range(40)}


async def test_four_processes_append_to_one_session(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
    answers = all_at_once(
        path,
        4,
        """
async def main():
    longest = 0.0
    async with open_store(path) as store:
        for step in range(250):
            before = time.monotonic()
            appended = await store.append("s", [Send("u", f"{args[0]}.{step}")], actor=args[0])
            longest = max(longest, time.monotonic() - before)
            say(appended.first, f"{args[0]}.{step}")
    say("longest", longest)
wait_for_start()
run(main())
""",
    )
    told = {int(number): text for answer in answers for number, text in answer[:-1]}
    assert sorted(told) == list(range(1, 1_001))
    async with open_store(path) as store:
        log = await store.read("s")
        assert {row.number: row.action.text for row in log if isinstance(row.action, Send)} == told
        assert (await store.check("s")).problems == ()
    # Fair: nobody starves while the others write. (Unfair locking shows waits of as long as the others take.)
    assert max(float(answer[-1][1]) for answer in answers) < 3


async def test_expected_numbers_hold_between_processes(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
    answers = all_at_once(
        path,
        4,
        """
from talkfold.errors import VersionConflict
async def main():
    head = won = 0
    async with open_store(path) as store:
        while won < 25:
            try:
                head = (await store.append("s", [Send("u", args[0])], expected=head)).last
                won += 1
                say(head)
            except VersionConflict as conflict:
                assert [row.number for row in conflict.missing] == list(range(head + 1, conflict.actual + 1))
                head = conflict.actual
wait_for_start()
run(main())
""",
    )
    assert sorted(int(number) for answer in answers for (number,) in answer) == list(range(1, 101))


async def test_one_key_in_many_processes_writes_once(path: Path) -> None:
    answers = all_at_once(
        path,
        6,
        """
async def main():
    async with open_store(path) as store:
        for step in range(20):
            appended = await store.append("s", [Send("u", str(step))] * 2, key=f"k{step}", expected=ANY)
            say(step, appended.first, appended.last, appended.repeated)
wait_for_start()
run(main())
""",
    )
    for step in range(20):
        told = [tuple(line[1:]) for answer in answers for line in answer if int(line[0]) == step]
        assert len({line[:2] for line in told}) == 1
        assert sorted(line[2] for line in told) == ["False"] + ["True"] * 5
    async with open_store(path) as store:
        assert (await store.get("s")).number == 40


async def test_eight_processes_open_one_dead_session(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
        await store.append("s", CONVERSATION[:6])
    answers = all_at_once(
        path,
        8,
        """
async def main():
    async with open_store(path) as store:
        wait_for_start()
        opened = await store.open_session("s", cause="the process died")
        say(opened.settled, opened.session.number, opened.state.status)
run(main())
""",
    )
    assert sorted(line for ((line, *_),) in answers) == ["False"] * 7 + ["True"]
    assert {tuple(answer[0][1:]) for answer in answers} == {("7", "idle")}
    async with open_store(path) as store:
        log = await store.read("s")
        assert [row.action for row in log].count(Stop()) == 1
        assert log[-1].meta == {"cause": "the process died"}
        assert not has_open_calls((await store.state("s")).state)


async def test_a_follower_sees_what_other_processes_write(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
        await store.create("t")
        with started(
            path,
            """
async def main():
    async with open_store(path) as store:
        for step in range(150):
            await store.append("s", [Send("u", str(step))] * (1 + step % 3))
            await store.append("t", [Send("u", str(step))])
        await store.erase("t")
wait_for_start()
run(main())
""",
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

            async def follow(name: str, total: int) -> list[int]:
                seen: list[int] = []
                try:
                    async for logged in store.subscribe(name):
                        seen.append(logged.number)
                        if len(seen) == total:
                            break
                except SessionErased:
                    seen.append(-1)
                return seen

            followers = [asyncio.create_task(follow("s", 320)) for _ in range(10)]
            erased = asyncio.create_task(follow("t", 1_000))
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            for _ in range(10):
                await store.append("s", [HELLO] * 2)  # and this process writes as well
                await asyncio.sleep(0.01)
            for seen in await asyncio.wait_for(asyncio.gather(*followers), 60):
                assert seen == list(range(1, 321))
            seen = await asyncio.wait_for(erased, 60)
            assert seen == [*range(1, len(seen)), -1]
            assert ended(process) == []


async def test_heads_that_another_process_moved(path: Path) -> None:
    """What a store remembers of a log's end is worth nothing once another process has written."""
    async with open_store(path) as here, open_store(path) as elsewhere:
        await here.create("s")
        await here.append("s", [HELLO])
        await elsewhere.append("s", [HELLO] * 3)
        assert (await here.append("s", [HELLO])).last == 5
        await elsewhere.erase("s")
        for call in (here.append("s", [HELLO]), here.get("s"), here.state("s"), here.open_session("s")):
            with pytest.raises(SessionErased):
                await call


def _lock_file(path: Path) -> int:
    descriptor = os.open(f"{path}-lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _lock_database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


async def _refused(store: SessionStore) -> float:
    """Seconds until all of many callers were told that the database is busy; readers are served meanwhile."""
    begun = time.monotonic()
    calls = [asyncio.create_task(store.append("s", [HELLO])) for _ in range(20)]
    calls += [asyncio.create_task(store.open_session("s")), asyncio.create_task(store.update("s", title="t"))]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert (await store.state("s")).number == (await store.get("s")).number
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(answer, StoreBusy)
    return time.monotonic() - begun


@pytest.mark.parametrize("how", ["talkfold's lock", "SQLite's lock"])
async def test_somebody_keeps_the_database_locked(path: Path, how: str) -> None:
    async with open_store(path, timeout=0.5) as store:
        await store.create("s")
        await store.append("s", CONVERSATION[:5])
        if how == "talkfold's lock":
            held = _lock_file(path)
            waited = await _refused(store)
            os.close(held)
        else:
            connection = _lock_database(path)
            waited = await _refused(store)
            connection.rollback()
            connection.close()
        assert 0.4 < waited < 5  # not the time-out once for every caller
        assert (await store.append("s", [HELLO])).last == 6
        assert (await store.get("s")).title is None
        assert (await store.check("s")).problems == ()


@pytest.mark.parametrize("how", ["talkfold's lock", "SQLite's lock"])
async def test_opening_while_somebody_keeps_the_database_locked(path: Path, how: str) -> None:
    async with open_store(path) as store:
        await store.create("s")
    if how == "talkfold's lock":
        held = _lock_file(path)
        with pytest.raises(StoreBusy):
            async with open_store(path, timeout=0.2):
                pytest.fail("nobody may come in")
        os.close(held)
    else:
        connection = _lock_database(path)
        async with open_store(path, timeout=0.2) as store:  # nothing has to be written for it
            assert (await store.get("s")).number == 0
        connection.rollback()
        connection.close()
    async with open_store(path, timeout=0.2) as store:
        await store.append("s", [HELLO])


async def test_a_lock_that_is_let_go_in_time_is_waited_for(path: Path) -> None:
    async with open_store(path, timeout=10) as store:
        await store.create("s")
        for lock in (_lock_file, _lock_database):
            held = lock(path)
            call = asyncio.create_task(store.append("s", [HELLO]))
            await asyncio.sleep(0.3)
            assert not call.done()
            os.close(held) if isinstance(held, int) else held.close()
            await asyncio.wait_for(call, 5)
        assert (await store.get("s")).number == 2


@pytest.mark.parametrize("where", ["inside", "after", "without"])
async def test_a_store_that_nobody_closed_lets_the_interpreter_end(path: Path, where: str) -> None:
    code = """
import warnings
warnings.simplefilter("ignore", ResourceWarning)  # aiosqlite says that it was not closed; so it was not
async def main():
    global opened, store, pending
    opened = open_store(path)
    store = await opened.__aenter__()
    await store.append("s", [Send("u", "x")] * 3, expected=ANY)
    pending = [asyncio.ensure_future(store.append("s", [Send("u", "x")])) for _ in range(50)]
    await asyncio.sleep(0)
    say("written")
    if args == ["inside"]:
        sys.exit(0)
if args == ["without"]:  # asyncio.run would close the generator behind open_store; this loop just stops
    asyncio.new_event_loop().run_until_complete(main())
else:
    asyncio.run(main())
"""
    with started(path, code, where) as process:
        said, _ = process.communicate(timeout=20)
        assert (process.returncode, said) == (0, "written\n")
    async with open_store(path) as store:
        assert (await store.get("s")).number >= 3
        assert (await store.check("s")).problems == ()


async def test_a_store_does_not_cross_a_fork(path: Path) -> None:
    """Every call in the child is refused with a name; the parent's connections are not touched by it."""
    code = """
import signal, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
from talkfold.errors import ForkedProcess
async def refused(store, name, call):
    try:
        await call()
        say(name, "answered")
    except ForkedProcess as error:
        say(name, "refused")

async def in_child(store, opened):
    for name, call in {
        "create": lambda: store.create(), "get": lambda: store.get("s"), "list": lambda: store.list(),
        "update": lambda: store.update("s", title="t"), "append": lambda: store.append("s", [Send("u", "child")]),
        "read": lambda: store.read("s"), "state": lambda: store.state("s"), "open": lambda: store.open_session("s"),
        "fork": lambda: store.fork("s"), "erase": lambda: store.erase("s"), "check": lambda: store.check("s"),
        "subscribe": lambda: anext(store.subscribe("s")),
        "start": lambda: store.start("s", Send("u", "child"), hold=Hold("r")),
        "park": lambda: store.park("s", [], hold=Hold("r"), waiting=Waiting(1, "c", "n", "client")),
        "answer": lambda: store.answer("s", [Stop()], number=1), "renew": lambda: store.renew("s", hold=Hold("r")),
        "release": lambda: store.release("s", hold=Hold("r")), "watch": store.watch("s", print).__aenter__,
    }.items():
        await refused(store, name, call)
    try:
        await opened.__aexit__(None, None, None)
    except ForkedProcess:
        pass
    say("close ended")
    async with open_store(path) as own:
        await own.append("s", [Send("u", "child, own store")])

async def main():
    opened = open_store(path)
    store = await opened.__aenter__()
    await store.append("s", [Send("u", "parent")], expected=ANY)
    child = os.fork()
    if not child:
        signal.alarm(20)
        asyncio.run(in_child(store, opened))
        os._exit(0)
    status = await asyncio.to_thread(os.waitpid, child, 0)
    say("child", status[1])
    appended = await store.append("s", [Send("u", "parent")] * 2)
    assert appended.first == 3, appended
    assert not (await store.check("s")).problems
    await opened.__aexit__(None, None, None)
run(main())
"""
    with started(path, code) as process:
        said = ended(process, 30)
    names = (
        "create get list update append read state open fork erase check subscribe start park answer renew release watch"
    ).split()
    assert said == [*([name, "refused"] for name in names), ["close", "ended"], ["child", "0"]]
    async with open_store(path) as store:
        assert (await store.get("s")).number == 4
        assert (await store.check("s")).problems == ()


async def test_a_child_of_a_fork_does_not_keep_the_lock(path: Path) -> None:
    """A process that dies while it writes frees the lock, even when a child that it forked before lives on."""
    code = """
import fcntl, warnings
warnings.simplefilter("ignore", DeprecationWarning)
async def main():
    async with open_store(path) as store:
        await store.append("s", [Send("u", "parent")], expected=ANY)
        with store._writer._lock:  # as in the middle of a transaction
            child = os.fork()
            if not child:
                os.close(1)
                time.sleep(30)
                os._exit(0)
            say(child)
            os.kill(os.getpid(), 9)
run(main())
"""
    with started(path, code) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            process.wait(10)
            async with open_store(path, timeout=3) as store:
                await store.append("s", [HELLO])
        finally:
            os.kill(child, 9)
