"""The processes of the crash tests: one that has imported everything and forks a child for each line it is told.

A line is a JSON object; ``do`` names what the child does with a database of its own opening. What it tells are lines
on the standard output, each with its process id. A child that is killed tells nothing more.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import msgspec

from talkfold import AgentStreamPart, MessageStart
from talkfold.errors import CallNotWaiting, TalkfoldError
from talkfold.runs import (
    AgentRunRequest,
    ClientTools,
    RunSettings,
    SubAgent,
    Toolbox,
    ToolContext,
    ToolDescriptor,
    approve,
    deny,
    follow,
    give_result,
    parked_call,
    retry_run,
    start_run,
    stop_run,
    tool,
)
from talkfold.store import SessionStore, open_store
from talkfold.testing.scripted import ScriptedAdapter, call, say, script, wait

_path, _lines = sys.argv[1:] if __name__ == "__main__" else ("", "")


def tell(**what: object) -> None:
    """One line, in one write, so that lines of several processes do not mix."""
    os.write(1, json.dumps({"pid": os.getpid(), **what}).encode() + b"\n")


def _append(*words: object) -> None:
    descriptor = os.open(_lines, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
    finally:
        os.close(descriptor)


# ---- the agents ----------------------------------------------------------------------------------------------


class Deaf:
    """An agent that never looks at its signal."""

    id, label = "deaf", "Deaf"

    async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield MessageStart("m")
        tell(event="deaf")
        await anyio.sleep_forever()


def _team(kind: str, session: str, run: str, pace: float) -> tuple[Any, dict[str, Any]]:
    async def mark(line: str, context: ToolContext) -> str:
        """Mark a line; its work is in the middle."""
        tell(event="tool", line=line)
        try:
            await anyio.sleep(pace)
            _append(session, run, context.call_id, line)
            await anyio.sleep(pace)
        except BaseException:
            tell(event="tool-cancelled", line=line)
            raise
        return f"marked {line}"

    pay = tool(mark, name="pay", confirm="Pay?")
    sign = ClientTools([ToolDescriptor("sign", "Sign.", {"type": "object"})])
    box = Toolbox(mark, pay, sign)
    nested = script(call("mark", line="n1"), say("Half. "), call("mark", line="n2"), say("Helped."))
    helper = SubAgent("helper", ScriptedAdapter(nested), "Helps.", tools=box)
    adapters: dict[str, Any] = {
        "deaf": Deaf(),
        "pays": ScriptedAdapter(script(say("I pay."), call("pay", line="p1"), say("Paid."))),
        "signs": ScriptedAdapter(script(call("sign", paper=1), say("Signed."))),
        "marks": ScriptedAdapter(
            script(
                say("One, ", "two, "),
                call("mark", line="t1"),
                wait(pace),
                say("three, "),
                call("mark", line="t2"),
                call("delegate_to_helper", task="Mark two lines."),
                wait(pace),
                say("x" * 500, "y" * 500),
                call("mark", line="t3"),
                say("done."),
            )
        ),
    }
    return adapters[kind], {"tools": box, "agents": (helper,)}


# ---- what a child does ---------------------------------------------------------------------------------------


async def _run(store: SessionStore, told: dict[str, Any]) -> None:
    session, name = told["session"], told["run"]
    adapter, around = _team(told.get("agent", "marks"), session, name, told.get("pace", 0.004))
    around["settings"] = RunSettings(
        lease_seconds=told.get("lease", 30), grace_seconds=told.get("grace", 5), new_run_id=lambda: name
    )
    again = (await store.get(session)).number > 0
    running = retry_run(store, session, adapter, **around) if again else None
    raised: str | None = None
    run: Any = None
    try:
        async with running or start_run(store, session, adapter, text="Mark them.", **around) as run:
            tell(event="begun")
            await run.wait()
    except TalkfoldError as error:
        raised = type(error).__name__
    ending = msgspec.to_builtins(run.ending) if run and run.ending else None
    tell(event="ended", raised=raised, ending=ending)


async def _open(store: SessionStore, told: dict[str, Any]) -> None:
    opened = await store.open_session(told["session"])
    lease = opened.session.lease
    tell(
        event="opened",
        settled=opened.settled,
        number=opened.session.number,
        status=opened.state.status,
        run=lease and lease.run,
    )


async def _follow(store: SessionStore, told: dict[str, Any]) -> None:
    async for row in follow(store, told["session"]):
        tell(event="row", number=row.number, type=type(row.action).__name__, run=row.run)
    tell(event="followed")


async def _stop(store: SessionStore, told: dict[str, Any]) -> None:
    await stop_run(store, told["session"], actor="another process")
    tell(event="stopped")


async def _parked(store: SessionStore, told: dict[str, Any]) -> None:
    while (parked := await parked_call(store, told["session"])) is None:  # noqa: ASYNC110 - it is in a row
        await anyio.sleep(0.005)
    tell(event="parked", call=parked.waiting.call_id, input=parked.input)


async def _answer(store: SessionStore, told: dict[str, Any]) -> None:
    session, call_id, given = told["session"], told["call"], told["input"]
    answers: dict[str, Callable[[], Awaitable[int]]] = {
        "approve": lambda: approve(store, session, call_id, given, by=f"process {os.getpid()}"),
        "deny": lambda: deny(store, session, call_id, given, by=f"process {os.getpid()}", reason="too dear"),
        "give": lambda: give_result(store, session, call_id, f"from {os.getpid()}", input=given),
    }
    try:
        number: int | None = await answers[told["how"]]()
    except CallNotWaiting:
        number = None
    tell(event="answered", number=number)


_DO = {"run": _run, "open": _open, "follow": _follow, "stop": _stop, "parked": _parked, "answer": _answer}


async def _child(told: dict[str, Any]) -> None:
    time.sleep(max(0, told.get("at", 0) - time.time()))  # noqa: ASYNC251 - several begin at one moment
    async with open_store(_path, timeout=told.get("timeout", 10)) as store:
        await _DO[told["do"]](store, told)


def main() -> None:
    """Fork for each line, until there are no more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not waited for
    tell(event="ready")
    for line in sys.stdin:
        told = json.loads(line)
        if child := os.fork():
            tell(event="forked", child=child)
            continue
        try:
            asyncio.run(_child(told))
        except BaseException as error:
            tell(event="broken", error=f"{type(error).__name__}: {error}")
            raise
        finally:
            tell(event="gone")
            os._exit(0)


if __name__ == "__main__":
    main()
