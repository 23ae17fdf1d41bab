"""What a misbehaviour is, and how one is written down."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

from ...actions import AgentStreamPart, ToolCall
from ...runs import AgentAdapter, AgentFaultCode, AgentRunRequest

__all__ = ("NO_PARTS", "STUBBORN_SECONDS", "Act", "Misbehaviour", "Parts", "Table", "first_call")

STUBBORN_SECONDS = 2.5
"""For how long the adapters that cannot be cancelled hold out. Longer than a run waits for them."""

Parts: TypeAlias = AsyncGenerator[Any]
"""What most of them yield: parts, and what is none."""

NO_PARTS: tuple[object, ...] = ()
"""What an adapter yields that says nothing."""

Act: TypeAlias = Callable[[AgentRunRequest], Any]
"""An adapter's ``run``."""


class _Acting(Struct, frozen=True):
    id: str
    label: str
    act: Act

    def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        return cast("AsyncIterator[AgentStreamPart]", self.act(request))


class Misbehaviour(Struct, frozen=True):
    """One way to misbehave, and how a run that survives it ends.

    - ``does``: what the adapter does, in words.
    - ``reason``: of the terminal part; ``error`` when that is an error.
    - ``faults``: the codes in ``run.ending.faults``, in any order. Empty where nothing but the cancellation is to tell,
      or where the fold takes it as it is.
    - ``until_stop``: it never ends by itself. The host must press Stop, and cancel it after its grace time.
    """

    name: str
    does: str
    act: Act
    reason: Literal["stop", "aborted", "error"]
    faults: frozenset[AgentFaultCode]
    until_stop: bool

    @property
    def status(self) -> Literal["idle", "error"]:
        """What the session is when the run is over."""
        return "error" if self.reason == "error" else "idle"

    def adapter(self) -> AgentAdapter:
        """A new adapter that does it."""
        return _Acting(self.name, self.does, self.act)


class Table:
    """The misbehaviours of one kind, each put in by ``ends``, a decorator."""

    def __init__(self) -> None:
        self.rows: dict[str, Misbehaviour] = {}

    def ends(
        self, reason: Literal["stop", "aborted", "error"], *faults: AgentFaultCode, until_stop: bool = False
    ) -> Callable[[Act], Act]:
        """How a run of this adapter ends. Its name is the function's, its description the docstring."""

        def put(act: Act) -> Act:
            name = act.__name__.removeprefix("_").replace("_", "-")
            self.rows[name] = Misbehaviour(name, act.__doc__ or "", act, reason, frozenset(faults), until_stop)
            return act

        return put


def first_call(request: AgentRunRequest, message_id: str = "m", call_id: str = "c") -> ToolCall:
    """A call of the first tool that the host gives."""
    return ToolCall(message_id, call_id, request.tools[0].name, {})
