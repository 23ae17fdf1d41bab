"""The abort signal: heard once, by everyone, from anywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest

from talkfold.runs import AbortController, AbortSignal
from talkfold.runs.threads import in_thread, to_loop


def test_it_changes_once_and_keeps_the_first_reason() -> None:
    controller = AbortController()
    signal = controller.signal
    assert (signal.aborted, signal.reason) == (False, None)
    assert controller.abort("stop") is True
    assert controller.abort("timeout") is False
    assert (signal.aborted, signal.reason) == (True, "stop")


def test_a_listener_hears_it_once_and_a_late_one_at_once() -> None:
    controller, heard = AbortController(), list[str | None]()
    controller.signal.subscribe(lambda: heard.append(controller.signal.reason))
    assert heard == []
    controller.abort("stop")
    controller.abort("again")
    assert heard == ["stop"]
    controller.signal.subscribe(lambda: heard.append("late"))
    assert heard == ["stop", "late"]
    assert controller.signal._listeners == {}, "who was told is let go"


def test_who_has_unsubscribed_hears_nothing() -> None:
    controller, heard = AbortController(), list[str]()
    gone = controller.signal.subscribe(lambda: heard.append("gone"))
    controller.signal.subscribe(lambda: heard.append("there"))
    gone()
    gone()
    controller.abort()
    assert heard == ["there"]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), KeyboardInterrupt()])
def test_a_listener_that_raises_keeps_nobody_from_hearing_it(error: BaseException) -> None:
    def raising() -> None:
        raise error

    controller, heard = AbortController(), list[str]()
    controller.signal.subscribe(raising)
    controller.signal.subscribe(lambda: heard.append("second"))
    assert controller.abort() is True
    controller.signal.subscribe(raising)
    assert heard == ["second"]


def test_of_many_threads_one_aborts() -> None:
    controller, start, won = AbortController(), threading.Barrier(8), list[str]()

    def abort(name: str) -> None:
        start.wait()
        if controller.abort(name):
            won.append(name)

    threads = [threading.Thread(target=abort, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [controller.signal.reason]


async def test_waiting_for_what_was_aborted_before_ends_at_once() -> None:
    controller = AbortController()
    controller.abort("before")
    with anyio.fail_after(5):
        assert await controller.signal.wait() == "before"


def _in_this_task(abort: Callable[[], object]) -> None:
    abort()


def _in_another_thread(abort: Callable[[], object]) -> None:
    threading.Thread(target=abort).start()


@pytest.mark.parametrize("somewhere", [_in_this_task, _in_another_thread])
async def test_all_who_wait_are_woken(somewhere: Callable[[Callable[[], object]], None]) -> None:
    controller, reasons = AbortController(), list[str]()

    async def waiting(signal: AbortSignal) -> None:
        reasons.append(await signal.wait())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(waiting, controller.signal)
            await anyio.wait_all_tasks_blocked()
            assert reasons == []
            somewhere(lambda: controller.abort("stop"))
    assert reasons == ["stop"] * 3


async def test_who_stops_waiting_stops_listening() -> None:
    controller = AbortController()
    with anyio.move_on_after(0.01):
        await controller.signal.wait()
    assert controller.signal._listeners == {}


def test_nobody_is_there_any_more(anyio_backend: str) -> None:
    """An abort, or a late call into a loop, after that loop is over: nothing happens and nothing is raised."""
    called = list[str]()

    async def main() -> Callable[[], None]:
        return to_loop(lambda: called.append("called"))

    late = anyio.run(main, backend=anyio_backend)
    controller = AbortController()
    controller.signal.subscribe(late)
    late()
    assert controller.abort() is True
    assert called == []


def test_a_call_into_a_loop_needs_a_loop() -> None:
    with pytest.raises(RuntimeError):
        to_loop(lambda: None)


async def test_a_call_from_a_thread_runs_in_the_loops_thread() -> None:
    where, done = list[int](), anyio.Event()

    def here() -> None:
        where.append(threading.get_ident())
        done.set()

    threading.Thread(target=to_loop(here)).start()
    with anyio.fail_after(5):
        await done.wait()
    assert where == [threading.get_ident()]


async def test_a_thread_says_how_its_call_ended() -> None:
    def raising() -> None:
        raise SystemExit(3)

    assert (await in_thread(lambda: 7, "seven")).value == 7
    assert isinstance((await in_thread(raising, "raising")).error, SystemExit)


async def test_a_thread_that_is_left_behind_keeps_nobody() -> None:
    hang, names = threading.Event(), list[bool]()

    def hanging() -> None:
        names.append(threading.current_thread().daemon)
        hang.wait(30)

    try:
        with anyio.fail_after(10), anyio.move_on_after(0.05) as scope:
            await in_thread(hanging, "hanging")
        assert scope.cancelled_caught
        assert names == [True]
    finally:
        hang.set()
