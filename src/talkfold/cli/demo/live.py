"""The acts of the demo in which an agent runs, is killed, and goes on. Each gives back what really happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import anyio
from anyio.abc import Process

from ...actions import Finish, Part, SessionAction, ToolCall, ToolPhase
from ...calls import is_open
from ...errors import SessionExists
from ...model import AgentMessage, Json, TextPart, ToolPart
from ...resumable import Dropped, RetryPlan, retry_plan
from ...runs import parked_call
from ...store.protocol import SessionStore
from ..output import Line, line
from ..plan import plan_json
from ..wording import count, state_lines
from .process import Watching, agent_process, command
from .stage import Stage
from .tools import MAP_FILE, NOTEBOOK, mcp_is_installed

__all__ = ("LiveRun",)

_LIVE = "weekend"
_TITLE = "A weekend in the hills"
_ROWS_BEFORE_KILL = 2
_DEEP = 5


class LiveRun:
    """One conversation with the demo's agent, from the first word through its death to its end."""

    def __init__(self, stage: Stage, store: SessionStore, database: Path, folder: Path) -> None:
        self.session_id: str = _LIVE
        self._stage = stage
        self._store = store
        self._database = database
        self._folder = folder

    async def until_killed(self) -> Json:
        """Acts one to three: the agent works, asks, and its process is killed."""
        stage, store = self._stage, self._store
        try:
            await store.create(_LIVE, title=_TITLE)
        except SessionExists:  # the person's file has it
            self.session_id = (await store.create(title=_TITLE)).id
        stage.act("An agent plans a weekend")
        async with agent_process(self._database, self.session_id, self._folder, "start") as process:
            stage.tell(
                f"It runs in a process of its own ({process.pid}). This process watches: every line below was safe "
                "on the disk before it appears here."
            )
            if mcp_is_installed():
                stage.tell("The weather comes from a tool server, one more process (MCP). Packing is another agent's.")
            else:
                stage.tell("Packing is another agent's.")
                stage.tell(
                    ("It would ask a tool server for the weather, too, but that needs the MCP SDK: ", "yellow"),
                    ("pip install 'talkfold[mcp]'", "bold"),
                )
            watching = Watching(stage, store, self.session_id, self._folder)
            stage.gap()
            await watching.begin(process)
            await watching.until(_waits)
            await self._approve()
            await watching.until(_draws)
            await self._kill(process)
        return await self._left(watching.number)

    async def _approve(self) -> None:
        stage = self._stage
        parked = await parked_call(self._store, self.session_id)
        assert parked is not None
        call = parked.waiting.call_id
        stage.act("It asks before it spends money")
        stage.tell("The agent stands still until somebody says yes, in any terminal. The demo types it in your place:")
        arguments = ["approve", self.session_id, call, "--yes"]
        stage.command(" ".join(["$ talkfold", *arguments]))
        said = await command(*arguments, "--db", str(self._database))
        stage.lines((line((row, "dim")) for row in said), indent=_DEEP)
        stage.gap()

    async def _kill(self, process: Process) -> None:
        drawn = self._folder / MAP_FILE
        with self._stage.waiting("draw_map is at work"), anyio.fail_after(30):
            while len(_rows(drawn)) < _ROWS_BEFORE_KILL:  # noqa: ASYNC110 - a file tells nobody that it grew
                await anyio.sleep(0.02)
        process.kill()
        await process.wait()

    async def _left(self, number: int) -> Json:
        stage = self._stage
        session = await self._store.get(self.session_id)
        then = await self._store.state(self.session_id)
        left = [call for call in _calls(then.state.messages) if is_open(call)]
        stage.act("Its process is killed")
        stage.tell(
            ("SIGKILL, in the middle of the drawing. ", "bold red"),
            "No goodbye, no clean-up. What is left is what the tools did:",
        )
        stage.lines(self._files())
        stage.tell("and the conversation, as `talkfold list` and `talkfold show` find it:")
        owner = "nobody runs it" if session.lease is None else f"run {session.lease.run} goes on"
        stage.lines(
            [
                line((session.id, "bold"), "  ", (session.status, "yellow"), f"  {count(number, 'action')}  {owner}"),
                *(line((call.name, "bold"), " ", (f"[{call.state}]", "yellow"), " without a result") for call in left),
            ],
            indent=_DEEP,
        )
        stage.tell("Sent as it is, a model provider refuses this conversation from now on.")
        return {
            "number": session.number,
            "status": session.status,
            "owned": session.lease is not None,
            "open": [call.name for call in left],
            "notebook": _rows(self._folder / NOTEBOOK),
            "map": _rows(self._folder / MAP_FILE),
        }

    async def open_again(self) -> tuple[Json, Json]:
        """Act four: whoever opens it next settles it, once; and what Retry is going to do."""
        stage, store = self._stage, self._store
        stage.act("Somebody opens it again")
        opened = await store.open_session(self.session_id)
        again = await store.open_session(self.session_id)
        stage.tell(
            f"Opening it finds that its process is dead and writes down one stop (action {opened.session.number}). "
            f"Opening it once more writes {'another' if again.settled else 'nothing'}. What Retry is going to do:"
        )
        plan = retry_plan(opened.state.messages)
        stage.lines(_plan_in_short(plan), indent=_DEEP)
        settled: Json = {
            "number": again.session.number,
            "settled": opened.settled,
            "settledAgain": again.settled,
        }
        return settled, plan_json(plan)

    async def retry(self, before: Json) -> Json:
        """Act five: a new process goes on, and nothing that was finished is done again."""
        stage, store = self._stage, self._store
        stage.act("Retry, in a new process")
        number = (await store.get(self.session_id)).number
        async with agent_process(self._database, self.session_id, self._folder, "retry") as process:
            stage.tell(f"Process {process.pid} reads the conversation and goes on where the other one got to.")
            stage.gap()
            watching = Watching(stage, store, self.session_id, self._folder, number)
            await watching.begin(process)
            await watching.until(_ends)
            with anyio.fail_after(30):
                await process.wait()
        stage.gap()
        after = _rows(self._folder / NOTEBOOK)
        twice = sum(after.count(row) - 1 for row in set(after))
        stage.tell(
            f"{NOTEBOOK} had {count(len(before['notebook']), 'line')} before and has {len(after)} now: ",
            ("nothing was packed or booked twice.", "bold green")
            if not twice
            else (f"{count(twice, 'line')} too many!", "bold red"),
            " The drawing, which had not finished, was made anew:",
        )
        stage.lines(self._drawing(), indent=_DEEP)
        stage.tell("The whole conversation, as a person reads it:")
        stage.lines(state_lines((await store.state(self.session_id)).state), indent=_DEEP)
        return {"notebook": after, "map": _rows(self._folder / MAP_FILE)}

    def _files(self) -> Iterator[Line]:
        for name, style in ((NOTEBOOK, ""), (MAP_FILE, "cyan")):
            for place, row in enumerate(_rows(self._folder / name)):
                yield line((row, style), lead=(f"{'' if place else name:<10}", "dim"))

    def _drawing(self) -> Iterator[Line]:
        for row in _rows(self._folder / MAP_FILE):
            yield line((row, "cyan"))


def _plan_in_short(plan: RetryPlan) -> Iterator[Line]:
    """What ``talkfold retry`` shows in full."""
    finished = ", ".join(call.name for call in _calls(plan.messages))
    yield line((finished, "bold"), ": they finished, and are not called again", lead=("keeps  ", "green"))
    for dropped in plan.dropped:
        yield line(*_what(dropped), lead=("drops  ", "red"))


def _what(dropped: Dropped) -> tuple[str | tuple[str, str], ...]:
    if isinstance(dropped.part, ToolPart):
        return (dropped.part.name, "bold"), ": nobody knows how it ended, so the model may call it again"
    said = dropped.part.text if isinstance(dropped.part, TextPart) else dropped.message_id
    return f"“{said.strip()}”", ": said after the last finished call; the model says it anew"


def _rows(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def _calls(messages: Iterable[AgentMessage]) -> Iterator[ToolPart]:
    return (part for message in messages for part in message.parts if isinstance(part, ToolPart))


def _waits(action: SessionAction) -> bool:
    return isinstance(action, ToolPhase) and action.state == "awaiting-confirmation"


def _draws(action: SessionAction) -> bool:
    return isinstance(action, Part) and isinstance(action.part, ToolCall) and action.part.name == "draw_map"


def _ends(action: SessionAction) -> bool:
    return isinstance(action, Part) and action.within is None and isinstance(action.part, Finish)
