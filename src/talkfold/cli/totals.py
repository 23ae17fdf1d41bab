"""Sums of what logs took and used: of one session, or of many that are read one after the other."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from heapq import heappush, heappushpop
from statistics import median_low
from typing import NamedTuple

from msgspec import to_builtins

from ..audit.lanes import LaneEnd
from ..audit.timings import RunTiming, StepTiming, Sum, Timings, Usage
from ..model import Json

__all__ = ("ModelTotal", "SlowStep", "ToolTotal", "Totals")

_CANCELLED: frozenset[LaneEnd] = frozenset(("aborted", "stopped", "settled", "reset", "cancelled", "dropped"))
"""How a call ends that was not let go on."""


class ToolTotal:
    """The calls of one tool. ``ms`` is how long each of them ran, without the time that it waited for a person."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ms: array[int] = array("q")
        self.ended: Counter[LaneEnd] = Counter()
        self.waiting_ms: int = 0

    @property
    def calls(self) -> int:
        """How many there were."""
        return len(self.ms)

    @property
    def failed(self) -> int:
        """Those that ended with an error."""
        return self.ended["error"]

    @property
    def cancelled(self) -> int:
        """Those that were cancelled, by whatever."""
        return sum(number for end, number in self.ended.items() if end in _CANCELLED)

    @property
    def open(self) -> int:
        """Those that the log knows no end of."""
        return self.ended["open"]

    @property
    def median_ms(self) -> int:
        """Half of them took at most so long."""
        return median_low(self.ms)

    def json(self) -> dict[str, Json]:
        """As a row of JSON."""
        return {
            "name": self.name,
            "calls": self.calls,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "open": self.open,
            "medianMs": self.median_ms,
            "longestMs": max(self.ms),
            "totalMs": sum(self.ms),
            "waitingMs": self.waiting_ms,
        }


class ModelTotal:
    """What one model used; ``name`` is None where the log names none."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.rows: int = 0
        self.sum: Sum = Sum()

    @property
    def usage(self) -> Usage:
        """Tokens and cost, all together."""
        return self.sum.usage() or Usage()

    def json(self) -> dict[str, Json]:
        """As a row of JSON."""
        name = {} if self.name is None else {"model": self.name}
        return {**name, "rows": self.rows, "usage": to_builtins(self.usage)}


class SlowStep(NamedTuple):
    """A model step and the session that it is in; the slowest of two is the greater one."""

    ms: int
    place: int
    session: str
    step: StepTiming

    def json(self) -> dict[str, Json]:
        """As a row of JSON."""
        return {"sessionId": self.session, **to_builtins(self.step)}


class _Runs:
    """Runs (and turns without one), or sub-agents."""

    def __init__(self) -> None:
        self.ended: Counter[LaneEnd] = Counter()
        self.ms: int = 0
        self.waiting_ms: int = 0

    @property
    def number(self) -> int:
        """How many there were."""
        return self.ended.total()

    def add(self, run: RunTiming) -> None:
        self.ended[run.ended] += 1
        self.ms += run.ms
        self.waiting_ms += run.waiting_ms

    def json(self) -> dict[str, Json]:
        """As a row of JSON."""
        return {"count": self.number, "ended": dict(self.ended), "ms": self.ms, "waitingMs": self.waiting_ms}


class Totals:
    """The sum over the sessions that were added. It keeps a number for each call and the ``slowest`` steps."""

    def __init__(self, slowest: int) -> None:
        self.sessions: int = 0
        self.actions: int = 0
        self.runs: _Runs = _Runs()
        self.agents: _Runs = _Runs()
        self.steps: int = 0
        self.clock_back: int = 0
        self.unread_usage: int = 0
        self._all = Sum()
        self._tools: dict[str, ToolTotal] = {}
        self._models: dict[str | None, ModelTotal] = {}
        self._slowest = slowest
        self._slow: list[SlowStep] = []

    def add(self, session: str, actions: int, found: Timings) -> None:
        """One session more."""
        self.sessions += 1
        self.actions += actions
        for run in found.runs:
            self.runs.add(run)
        for agent in found.agents:
            self.agents.add(agent)
        for call in found.calls:
            tool = self._tools.setdefault(call.name, ToolTotal(call.name))
            tool.ms.append(call.running_ms)
            tool.ended[call.ended] += 1
            tool.waiting_ms += call.waiting_ms
        for model in found.models:
            total = self._models.setdefault(model.model, ModelTotal(model.model))
            total.rows += model.rows
            total.sum.add(model.usage)
        if found.usage is not None:
            self._all.add(found.usage)
        for step in found.steps:
            self.steps += 1
            self._see(SlowStep(step.ms, -self.steps, session, step))
        self.clock_back += len(found.clock_back)
        self.unread_usage += len(found.unread_usage)

    def _see(self, step: SlowStep) -> None:
        """Keep a step while it is among the slowest; of equals the earlier one."""
        if len(self._slow) < self._slowest:
            heappush(self._slow, step)
        elif self._slow:
            heappushpop(self._slow, step)

    @property
    def tools(self) -> list[ToolTotal]:
        """Those that were called: first that with the most time, of equals that with the most calls."""
        return sorted(self._tools.values(), key=lambda it: (-sum(it.ms), -it.calls, it.name))

    @property
    def models(self) -> list[ModelTotal]:
        """Those that used something, in the order in which they came up."""
        return [*self._models.values()]

    @property
    def usage(self) -> Usage | None:
        """All that was used; None where the logs tell nothing."""
        return self._all.usage()

    @property
    def slowest(self) -> list[SlowStep]:
        """The slowest steps, the slowest first."""
        return sorted(self._slow, reverse=True)

    def json(self) -> dict[str, Json]:
        """All of it as JSON."""
        return dict(self._items())

    def _items(self) -> Iterator[tuple[str, Json]]:
        yield "sessions", self.sessions
        yield "actions", self.actions
        yield "runs", self.runs.json()
        yield "subAgents", self.agents.json()
        yield "steps", self.steps
        yield "tools", [tool.json() for tool in self.tools]
        yield "models", [model.json() for model in self.models]
        if self.usage is not None:
            yield "usage", to_builtins(self.usage)
        yield "slowestSteps", [step.json() for step in self.slowest]
        yield "clockBack", self.clock_back
        yield "unreadUsage", self.unread_usage
