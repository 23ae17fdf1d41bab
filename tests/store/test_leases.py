"""Leases between processes: who begins, and what becomes of the session of one that was killed or froze."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from children import all_at_once, started
from raw_database import as_left_by, raw

from talkfold.actions import Finish, MessageStart, Part, Send, Stop
from talkfold.errors import CallNotWaiting, DatabaseTooOld, RunInProgress
from talkfold.store import Hold, OpenedSession, Waiting, open_store
from talkfold.store.sqlite.alive import AliveByte
from talkfold.testing.store_contract import Clock
from talkfold.testing.store_contract.samples import CONVERSATION

HELLO = Send("u", "hello")
HOLD = Hold("the run", 3_600)

RUN = """
async def main():
    async with open_store(path) as store:
        hold = Hold("the run", float(args[0]))
        await store.start("s", Send("u", "hello"), hold=hold)
        await store.append("s", [Part(MessageStart("a")), Part(ToolCall("a", "c", "pay", {}))], hold=hold)
        await store.park("s", [], hold=hold, waiting=Waiting(3, "c", "pay", "approval"))
        say("running", os.getpid())
        sys.stdin.readline()
        await then(store, hold)
"""
"""A process that runs session ``s``, parked on a call, until it is told to go on with ``then``."""


def heard(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    words = process.stdout.readline().split()
    assert words, process.communicate()[1]
    return words


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


async def made(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")


def is_the_stop(opened: OpenedSession, log: tuple[Any, ...], number: int = 4) -> None:
    """The session was settled by one stop under the dead run's id, and nothing came after it."""
    assert (opened.session.number, opened.session.lease, opened.state.status) == (number, None, "idle")
    stop = log[-1]
    assert (stop.number, stop.action, stop.run, stop.actor) == (number, Stop(), "the run", "talkfold")


# ---- who begins ------------------------------------------------------------------------------------------


async def test_of_processes_that_begin_together_exactly_one_does(path: Path) -> None:
    rounds = 60
    async with open_store(path) as store:
        for index in range(rounds):
            await store.create(f"s{index}", actions=CONVERSATION[:6])
        await store.create("done")
    answers = all_at_once(
        path,
        2,
        f"""
from talkfold.errors import RunInProgress
async def main():
    async with open_store(path) as store:
        wait_for_start()
        for index in range({rounds}):
            try:
                begun = await store.start(f"s{{index}}", Send("u", args[0]), hold=Hold(f"run {{args[0]}}"))
                say(index, args[0], "began", begun.number, begun.settled)
            except RunInProgress as error:
                say(index, args[0], "refused", error.lease.run)
        await store.append("done", [Stop()])
        while (await store.get("done")).number < 2:  # a process that ends lets go of its sessions
            await asyncio.sleep(0.005)
run(main())
""",
    )
    began = [line for answer in answers for line in answer if line[2] == "began"]
    refused = [line for answer in answers for line in answer if line[2] == "refused"]
    assert sorted(int(line[0]) for line in began) == list(range(rounds))
    assert sorted(int(line[0]) for line in refused) == list(range(rounds))
    winners = {line[0]: line[1] for line in began}
    assert all(line[4] == winners[line[0]] != line[1] for line in refused)
    assert all(line[3:] == ["8", "True"] for line in began)
    async with open_store(path) as store:
        for index in range(rounds):
            first, last = await store.read(f"s{index}", after=6)
            assert (first.action, last.action) == (Stop(), Send("u", winners[str(index)]))


async def test_a_living_process_is_seen_by_others(path: Path) -> None:
    await made(path)
    with started(path, RUN + "async def then(store, hold): pass\nrun(main())", 3_600) as process:
        _, pid = heard(process)
        async with open_store(path) as store:
            opened = await store.open_session("s")
            lease = opened.session.lease
            assert not opened.settled
            assert lease is not None
            assert lease.holder.endswith(f", process {pid}")
            assert lease.waiting == Waiting(3, "c", "pay", "approval")
            with pytest.raises(RunInProgress, match=f"process {pid}"):
                await store.start("s", HELLO, hold=HOLD)
            assert (await store.answer("s", [CONVERSATION[7]], number=3)) == 4  # from here to the run there
            with pytest.raises(CallNotWaiting):
                await store.answer("s", [CONVERSATION[7]], number=3)


# ---- killed ----------------------------------------------------------------------------------------------


async def test_a_killed_run_is_settled_at_once_and_only_once(path: Path) -> None:
    await made(path)
    with started(path, RUN + "run(main())", 3_600) as process:
        heard(process)
        async with open_store(path) as store:
            assert (await store.get("s")).lease is not None
            process.kill()
            process.wait()
            assert (await store.get("s")).lease is None
    answers = all_at_once(
        path,
        6,
        """
async def main():
    async with open_store(path) as store:
        wait_for_start()
        opened = await store.open_session("s")
        say(opened.settled, opened.session.number, opened.state.status)
run(main())
""",
    )
    assert sorted(answer[0][0] for answer in answers) == ["False"] * 5 + ["True"]
    assert {tuple(answer[0][1:]) for answer in answers} == {("4", "idle")}
    async with open_store(path) as store:
        is_the_stop(await store.open_session("s"), await store.read("s"))
        assert (await store.check("s")).problems == ()


async def test_a_killed_run_makes_room_for_the_next(path: Path) -> None:
    await made(path)
    with started(path, RUN + "run(main())", 3_600) as process:
        heard(process)
        process.kill()
        process.wait()
    async with open_store(path) as store:
        with pytest.raises(CallNotWaiting):
            await store.answer("s", [CONVERSATION[7]], number=3)
        begun = await store.start("s", HELLO, hold=Hold("the next"))
        assert (begun.number, begun.settled) == (5, True)


async def test_a_store_that_is_closed_lets_go_of_its_sessions(path: Path) -> None:
    async with open_store(path) as store:
        async with open_store(path) as other:
            await other.create("s", actions=[])
            await other.start("s", HELLO, hold=HOLD)
            assert not (await store.open_session("s")).settled
        assert (await store.open_session("s")).settled


async def test_whoever_writes_by_a_lease_keeps_it_alive(path: Path) -> None:
    async with open_store(path) as store:
        async with open_store(path) as other:
            await other.create("s")
            await other.start("s", HELLO, hold=HOLD)
        assert (await store.get("s")).lease is None
        await store.append("s", [Part(MessageStart("a"))], hold=HOLD)  # long before a third is over
        assert (await store.get("s")).lease is not None


# ---- frozen ----------------------------------------------------------------------------------------------


async def test_a_frozen_run_is_settled_by_its_end_and_writes_nothing_more(path: Path) -> None:
    await made(path)
    then = """
from talkfold.errors import LeaseLost
async def then(store, hold):
    part = Part(Finish("stop"))
    for call in (
        store.append("s", [part], hold=hold),
        store.renew("s", hold=hold),
        store.park("s", [part], hold=hold, waiting=Waiting(3, "c", "pay", "approval")),
        store.release("s", [part], hold=hold),
    ):
        try:
            await call
            say("written")
        except LeaseLost as error:
            say("lost", error.session_id)
    say("end")
"""
    with started(path, RUN + then + "run(main())", 1) as process:
        heard(process)
        os.kill(process.pid, signal.SIGSTOP)
        async with open_store(path) as store:
            opened = await store.open_session("s")
            for _ in range(500):
                if opened.settled:
                    break
                await anyio.sleep(0.02)
                opened = await store.open_session("s")
            tell(process)
            os.kill(process.pid, signal.SIGCONT)
            assert [heard(process) for _ in range(5)] == [["lost", "s"]] * 4 + [["end"]]
            log = await store.read("s")
            is_the_stop(opened, log)
            assert log[3].time - log[2].time >= 1_000  # not before the lease's end


async def test_a_frozen_run_that_nobody_settled_goes_on(path: Path) -> None:
    await made(path)
    then = """
async def then(store, hold):
    say((await store.append("s", [Part(Finish("stop"))], hold=hold)).last)
    say("kept" if (await store.get("s")).lease else "lost")
    sys.stdin.readline()
"""
    with started(path, RUN + then + "run(main())", 0.5) as process:
        heard(process)
        os.kill(process.pid, signal.SIGSTOP)
        await anyio.sleep(0.7)
        tell(process)
        os.kill(process.pid, signal.SIGCONT)
        assert [heard(process), heard(process)] == [["4"], ["kept"]]


# ---- forked ----------------------------------------------------------------------------------------------

FORKING = """
import warnings
warnings.simplefilter("ignore")  # newer Pythons warn of a fork beside threads; that is what is tested
async def then(store, hold):
    child = os.fork()
    if not child:
        if args[1] == "stays":
            time.sleep(60)
        os._exit(0)
    if args[1] == "goes":
        os.waitpid(child, 0)
    say("forked", child)
    sys.stdin.readline()
run(main())
"""


async def test_a_forked_child_that_ends_does_not_free_the_byte(path: Path) -> None:
    await made(path)
    with started(path, RUN + FORKING, 3_600, "goes") as process:
        heard(process)
        tell(process)
        heard(process)
        async with open_store(path) as store:
            assert not (await store.open_session("s")).settled


async def test_a_forked_child_that_stays_does_not_keep_the_byte(path: Path) -> None:
    await made(path)
    with started(path, RUN + FORKING, 3_600, "stays") as process:
        heard(process)
        tell(process)
        _, child = heard(process)
        try:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            async with open_store(path) as store:
                is_the_stop(await store.open_session("s"), await store.read("s"))
        finally:
            os.kill(int(child), signal.SIGKILL)


# ---- the byte --------------------------------------------------------------------------------------------


def test_a_byte_lives_as_long_as_its_store(path: Path) -> None:
    first, second = AliveByte(f"{path}-lock"), AliveByte(f"{path}-lock")
    assert first.offset is not None
    assert second.offset not in (None, first.offset)
    for one in (first, second):
        assert one.lives(first.offset)
        assert one.lives(second.offset)
        assert not one.lives(first.offset ^ 1)
    first.close()
    assert not second.lives(first.offset)
    assert second.lives(second.offset)
    first.close()
    second.close()


def test_where_nobody_can_tell_every_process_may_live(path: Path) -> None:
    alive = AliveByte(f"{path}-lock", shared=True)
    assert alive.offset is None
    assert alive.lives(12345)
    alive.close()


async def test_without_a_byte_only_the_end_counts(path: Path) -> None:
    clock = Clock()
    now = clock.stop()
    async with open_store(path, clock=clock) as store:
        async with open_store(path, clock=clock) as other:
            await other.create("s")
            await other.start("s", HELLO, hold=Hold("the run", 9))
        with raw(path) as connection:
            connection.execute("UPDATE lease SET alive = NULL")
        lease = (await store.get("s")).lease
        assert lease is not None
        assert lease.expires == now + 9_000
        assert not (await store.open_session("s")).settled
        clock.forward(9_000)
        assert (await store.open_session("s")).settled


# ---- the rows --------------------------------------------------------------------------------------------


def leases(path: Path) -> int:
    with raw(path) as connection:
        return int(connection.execute("SELECT count(*) FROM lease").fetchone()[0])


async def test_no_row_outlives_its_use(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
        await store.start("s", HELLO, hold=HOLD)
        await store.fork("s", new_id="f")
        assert leases(path) == 1
        await store.release("s", [Part(Finish("stop"))], hold=HOLD)
        assert leases(path) == 0
        await store.start("s", HELLO, hold=HOLD)
        await store.erase("s")
        assert leases(path) == 0


async def test_a_spoilt_wait_hides_no_session(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s")
        await store.start("s", HELLO, hold=HOLD)
        await store.park("s", [], hold=HOLD, waiting=Waiting(1, "c", "pay", "approval"))
        with raw(path) as connection:
            connection.execute("UPDATE lease SET waiting = '{'")
        lease = (await store.get("s")).lease
        assert lease is not None
        assert (lease.run, lease.waiting) == ("the run", None)
        with pytest.raises(CallNotWaiting):
            await store.answer("s", [HELLO], number=1)
        assert (await store.append("s", [Stop()])).last == 2


async def test_another_process_changes_the_lease_behind_a_warm_head(path: Path) -> None:
    clock = Clock()
    clock.stop()
    async with open_store(path, clock=clock) as store, open_store(path, clock=clock) as other:
        await store.create("s")
        await store.start("s", HELLO, hold=HOLD)
        await store.append("s", [Part(MessageStart("a"))], hold=HOLD)
        await other.release("s", hold=HOLD)
        await other.start("s", HELLO, hold=Hold("another"))
        with pytest.raises(Exception, match="does not own"):
            await store.append("s", [Part(MessageStart("a"))], hold=HOLD)


async def test_a_database_from_before_leases(path: Path) -> None:
    async with open_store(path) as store:
        await store.create("s", actions=CONVERSATION[:6], title="kept")
        before = await store.get("s"), await store.read("s")
    with raw(path) as connection:
        as_left_by(connection, 1)
    with pytest.raises(DatabaseTooOld):
        async with open_store(path, migrate=False):
            pytest.fail("this must not open")
    async with open_store(path) as store:
        assert (await store.get("s"), await store.read("s")) == before
        assert (await store.start("s", HELLO, hold=HOLD)).number == 8
        assert (await store.get("s")).lease is not None
        assert (await store.check("s")).problems == ()
    assert path.with_name(f"{path.name}-lock").stat().st_size == 0  # a locked byte need not be there
