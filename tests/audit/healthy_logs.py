"""Logs in which nothing is wrong, of every shape that a well-behaved run leaves: what faults are then put into."""

from __future__ import annotations

from itertools import count

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from talkfold.actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Retry,
    RunError,
    Send,
    SessionAction,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from talkfold.codec import encode_action
from talkfold.log import LoggedAction
from talkfold.model import DELEGATE_PREFIX, Json

TOOLS = ("search", "book", "pay")
TEXTS = st.sampled_from(("Hello", "there", "שלום", "\U0001f600", " ", "x\0", "line\n"))


def rows_of(actions: list[SessionAction]) -> list[LoggedAction]:
    """Actions as a log without runs."""
    return [LoggedAction(n, 1_000 + n, action, encode_action(action), None) for n, action in enumerate(actions, 1)]


class _Play:
    """One conversation that is being made up. Ids are used once."""

    def __init__(self, draw: DrawFn, with_runs: bool) -> None:
        self.draw = draw
        self.rows: list[LoggedAction] = []
        self.with_runs = with_runs
        self.run: str | None = None
        self.ids = count(1)
        self.open: list[str] = []  # the names of the calls that are open

    def log(
        self,
        action: SessionAction,
        *,
        foreign: bool = False,
        actor: str | None = None,
        meta: dict[str, Json] | None = None,
    ) -> int:
        number = len(self.rows) + 1
        run = None if foreign else self.run
        self.rows.append(LoggedAction(number, 1_000 * number, action, encode_action(action), None, run, actor, meta))
        return number

    def id(self, kind: str) -> str:
        return f"{kind}{next(self.ids)}"

    def turn(self, first: bool) -> None:
        draw = self.draw
        if self.with_runs:
            self.run = self.id("run")
        self.log(Retry() if not first and draw(st.booleans()) else Send(self.id("u"), draw(TEXTS)))
        self.steps(None, 0)
        ending = draw(st.sampled_from(("stop", "stop", "stop", "max-steps", "error", "stopped")))
        match ending:
            case "error":
                self.log(Part(RunError("the connection was lost", "network")))
            case "stopped":
                self.log(Stop(), foreign=True, actor="the person")
                if self.with_runs:
                    self.log(Part(Finish("aborted")), meta={"cause": "stop"})
            case "max-steps":
                self.log(Part(Finish("max-steps")))
            case _:
                self.say(None)
                self.log(Part(Finish("stop")))

    def say(self, within: str | None) -> str:
        message = self.id("m")
        self.log(Part(MessageStart(message), within))
        if self.draw(st.booleans()):
            self.log(Part(Reasoning(message, self.draw(TEXTS), {"signature": "sig"}), within))
        self.log(Part(TextDelta(message, "Well"), within))
        for _ in range(self.draw(st.integers(0, 4))):
            self.log(Part(TextDelta(message, self.draw(TEXTS | st.just(""))), within))
        return message

    def steps(self, within: str | None, depth: int) -> None:
        for step in range(self.draw(st.integers(0 if depth else 1, 2))):
            message = self.say(within)
            calls = [self.call(message, within, depth) for _ in range(self.draw(st.integers(0, 2)))]
            for call in self.draw(st.permutations(calls)):
                self.carry_out(call, within, depth)
            self.log(Part(StepFinish(step + 1), within))

    def call(self, message: str, within: str | None, depth: int) -> tuple[str, str, int]:
        name = self.draw(st.sampled_from(TOOLS if depth == 2 else (*TOOLS, f"{DELEGATE_PREFIX}clerk")))
        call = self.id("c")
        self.open.append(name)
        return call, name, self.log(Part(ToolCall(message, call, name, {"q": [1.0, None]}), within))

    def carry_out(self, call: tuple[str, str, int], within: str | None, depth: int) -> None:
        draw = self.draw
        call_id, name, number = call
        if name.startswith(DELEGATE_PREFIX):
            self.steps(call_id, depth + 1)
            self.say(call_id)
            self.log(Part(draw(st.sampled_from((Finish("stop"), Finish("max-steps"), RunError("lost")))), call_id))
        elif self.open.count(name) == 1 and draw(st.booleans()):  # else its phase might show on another
            self.log(ToolPhase(name, "awaiting-confirmation", "Really?"), meta={"call": number})
            self.log(ToolPhase(name, "running"), meta={"answers": number, "decision": "approved"})
        outcome = draw(st.sampled_from((ToolResult(call_id, {"content": []}), ToolError(call_id, "Error [failed] no"))))
        if name.startswith(DELEGATE_PREFIX):
            outcome = ToolResult(call_id, draw(TEXTS))
        self.log(Part(outcome, within))
        self.open.remove(name)


@st.composite
def healthy_logs(draw: DrawFn) -> list[LoggedAction]:
    """The log of a conversation in which all is well: runs with ids, or rows without."""
    play = _Play(draw, draw(st.booleans()))
    for turn in range(draw(st.integers(1, 3))):
        play.turn(turn == 0)
    return play.rows
