"""What the tests of a run's events have in common: an observer that keeps them, and the order that they must have."""

from __future__ import annotations

import threading
from typing import Any

from talkfold.runs import (
    AgentEnded,
    AgentStarted,
    CallEnded,
    CallStarted,
    RunEnded,
    RunEvent,
    RunSettings,
    RunStarted,
)

STARTED = (RunStarted, AgentStarted, CallStarted)
ENDED: dict[type, type] = {RunEnded: RunStarted, AgentEnded: AgentStarted, CallEnded: CallStarted}


class Observer:
    """Keeps every event, and whether it came in the thread of the run."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []
        self.thread = threading.get_ident()
        self.elsewhere: list[RunEvent] = []

    def __call__(self, event: RunEvent) -> None:
        self.events.append(event)
        if threading.get_ident() != self.thread:
            self.elsewhere.append(event)

    @property
    def settings(self) -> RunSettings:
        return RunSettings(observe=self, grace_seconds=0.2)

    def only(self, kind: type[Any]) -> Any:
        (event,) = [event for event in self.events if type(event) is kind]
        return event

    def story(self) -> str:
        """What starts and ends, as brackets: R for the run, A for an agent, C for a call."""
        said = ""
        for event in self.events:
            name = type(event).__name__
            if isinstance(event, STARTED):
                said += name[0] + "("
            elif type(event) in ENDED:
                said += ")"
        return said


def whose(event: Any) -> tuple[object, ...]:
    return tuple(getattr(event, name, None) for name in ("run", "agent_id", "call_id", "within", "depth"))


def assert_nested(events: list[RunEvent]) -> None:
    """Each end is that of the newest start that has none yet; at the end none is open."""
    open_: list[RunEvent] = []
    for event in events:
        if isinstance(event, STARTED):
            open_.append(event)
        elif (start := ENDED.get(type(event))) is not None:
            assert type(open_[-1]) is start
            assert whose(open_.pop()) == whose(event)
        else:
            assert isinstance(open_[-1], CallStarted)
    assert open_ == []
