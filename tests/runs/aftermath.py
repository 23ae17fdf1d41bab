"""What must hold of a session when its run is over, whatever happened to it: looked at in this process or another.

As a program it opens a database, examines the sessions that are named on its standard input, and tells what it found.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import msgspec
from fault_play import team
from msgspec import Struct
from run_world import all_calls, whole_log

from talkfold import Finish, Part, RunError, Stop, ToolPart, fold
from talkfold.audit import findings
from talkfold.calls import is_open
from talkfold.errors import SessionErased
from talkfold.healing import heal
from talkfold.machine import FINISHED
from talkfold.model import AgentMessage, Json
from talkfold.protocols.anthropic_messages import check_anthropic, to_anthropic
from talkfold.protocols.openai_chat import check_openai_chat, to_openai_chat
from talkfold.resumable import resumable
from talkfold.runs import retry_run
from talkfold.store import SessionStore, open_store


class Asked(Struct, frozen=True):
    """A session, and the deepest level of the agents that ran in it."""

    session: str
    level: int


class Found(Struct, frozen=True):
    """What was found: every breach in words; whether this look settled the session, or that it is erased; the reason
    of the run's terminal part and the ``meta`` of its last action; the error of the second call, else its state; the
    codes of what the audit finds in the log."""

    session: str
    problems: list[str]
    settled: bool = False
    erased: bool = False
    reason: str | None = None
    meta: dict[str, Json] = {}
    second: str | None = None
    findings: list[str] = []


async def examine(store: SessionStore, asked: Asked, lines: Path) -> Found:
    """Open a session as a new process would, look at everything, and try the last turn again."""
    problems: list[str] = []

    def must(holds: object, text: str) -> None:
        if not holds:
            problems.append(text)

    try:
        opened = await store.open_session(asked.session)
    except SessionErased:
        return Found(asked.session, [], erased=True)
    await _at_rest(store, asked.session, must)
    rows = await whole_log(store, asked.session)
    stops = [row for row in rows if isinstance(row.action, Stop) and row.actor == "talkfold"]
    told = [each.code for each in findings(rows)]
    must(len(stops) == opened.settled, f"{len(stops)} settling stops")
    must(not opened.settled or rows[-1].action == Stop(), "something comes after the settling stop")
    must(len({row.run for row in rows if row.run}) == 1, "several runs")
    last = rows[-1]
    part = last.action.part if isinstance(last.action, Part) and last.action.within is None else None
    reason = "error" if isinstance(part, RunError) else part.reason if isinstance(part, Finish) else None
    kept = resumable(opened.state.messages)
    _fit_for_providers(kept, must)

    named = {"line": f"{asked.level}-second"}
    second = next((each.error or each.state for each in all_calls(opened.state.messages) if each.input == named), None)

    before = _count(lines, asked.session)
    marks = [each for each in all_calls(opened.state.messages) if each.name == "mark" and each.state in FINISHED]
    finished = {str(each.input["line"]): each.state for each in marks}  # type: ignore[index, call-overload]
    adapter, around = team(asked.level, lines, asked.session)
    async with retry_run(store, asked.session, adapter, **around) as run:
        ending = await run.wait()
    must(ending.part == Finish("stop") and not ending.faults, f"the retry ended with {ending}")
    after = _count(lines, asked.session)
    for line, state in finished.items():
        if line != "said only":  # what an agent says of a call that it never made
            must(before[line] == 1 or state != "done", f"{line!r} is done and ran {before[line]} times")
            must(after[line] == before[line], f"{line!r} had an outcome, and ran again")
    must(after["0-first"] == 1, f"the first call ran {after['0-first']} times")
    must(after[f"{asked.level}-second"] >= (not asked.level), "the retry did not make the second call")
    await _at_rest(store, asked.session, must)
    return Found(asked.session, problems, opened.settled, False, reason, last.meta or {}, second, told)


async def _at_rest(store: SessionStore, session_id: str, must: Any) -> None:
    session, state = await store.get(session_id), (await store.state(session_id)).state
    must(session.lease is None, f"a lease is left: {session.lease}")
    must(state.status == session.status != "streaming", f"the status is {state.status}, in the row {session.status}")
    left = [each.id for each in all_calls(state.messages) if is_open(each)]
    must(not left, f"open calls: {left}")
    rows = await whole_log(store, session_id)
    must(fold([row.action for row in rows]) == state, "the log does not fold to the state")
    report = await store.check(session_id)
    must(not report.problems, f"the check found {report.problems}")


def _fit_for_providers(kept: tuple[AgentMessage, ...], must: Any) -> None:
    healed = heal(kept).messages
    made, sent = _calls(kept), _calls(healed)
    must(len(made) == len(sent), "healing lost or made a call")
    must(len({each.id for each in sent}) == len(sent), "two calls share an id")
    for each in sent:
        has = (each.output is not msgspec.UNSET, each.error is not None)
        must(has == ((True, False) if each.state == "done" else (False, True)), f"the outcomes of {each.id} are {has}")
    must(heal(healed).healed == (), "healing twice heals more")
    openai, anthropic = to_openai_chat(kept), to_anthropic(kept)
    must(check_openai_chat(openai.request) == (), f"OpenAI: {check_openai_chat(openai.request)}")
    must(check_anthropic(anthropic.request) == (), f"Anthropic: {check_anthropic(anthropic.request)}")


def _calls(messages: Iterable[AgentMessage]) -> list[ToolPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolPart)]


def _count(lines: Path, session_id: str) -> Counter[str]:
    text = lines.read_text() if lines.exists() else ""
    rows = (row.partition(" ") for row in text.splitlines())
    return Counter(line for session, _, line in rows if session == session_id)


async def examine_all(store: SessionStore, wanted: list[Asked], lines: Path) -> list[Found]:
    """All of them at once, in the order in which they were asked for."""
    found: dict[str, Found] = {}

    async def one(asked: Asked) -> None:
        found[asked.session] = await examine(store, asked, lines)

    async with anyio.create_task_group() as tasks:
        for asked in wanted:
            tasks.start_soon(one, asked)
    return [found[asked.session] for asked in wanted]


def examine_in_new_process(path: Path, wanted: list[Asked], lines: Path) -> list[Found]:
    """The same, in a process of its own."""
    command = [sys.executable, "-W", "error", __file__, str(path), str(lines)]
    ended = subprocess.run(command, input=msgspec.json.encode(wanted), capture_output=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (0, b""), ended.stderr.decode()
    return msgspec.json.decode(ended.stdout, type=list[Found])


async def _main(path: str, lines: str) -> None:
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Asked])
    async with open_store(path) as store:
        found = await examine_all(store, wanted, Path(lines))
    os.write(1, json.dumps(msgspec.to_builtins(found)).encode())


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
