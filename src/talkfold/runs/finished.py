"""What sub-agents had finished when their run was cut off: kept for the retry, so that it is not done twice.

Retry drops a delegate call that did not finish, with all that its sub-agent did (``resumable``). The model then gives
the task again, and the sub-agent begins from nothing. A call that it had finished, made again by the same agent with
the same name and input, gets the outcome that it had: once for each time it was finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..codec.values import same_json
from ..machine import FINISHED
from ..model import AgentMessage, Json, ToolPart
from ..redaction import Redaction
from ..redaction.values import redact_value
from ..resumable import retry_plan

__all__ = ("FinishedCalls",)


class _Finished(NamedTuple):
    """``agents`` are the ids of the sub-agents around the call, outermost first."""

    agents: tuple[str, ...]
    call: ToolPart


class FinishedCalls:
    """Finished calls of dropped sub-agents' runs, each to be taken once, oldest first."""

    def __init__(self, messages: Iterable[AgentMessage] = (), redaction: Redaction | None = None) -> None:
        """``messages`` is the conversation before the retry; its inputs are as this redaction left them."""
        self._redaction = redaction
        dropped = (entry.part for entry in retry_plan(messages).dropped)
        self._left = [each for part in dropped if isinstance(part, ToolPart) for each in _inside(part, ())]

    def take(self, agents: tuple[str, ...], name: str, given: Json) -> ToolPart | None:
        """The finished call of these agents with this name and input, which is then no longer here. Inputs that
        differ only in what the log does not keep are the same."""
        if self._left and self._redaction is not None:
            given = redact_value(self._redaction, given)
        for index, (around, call) in enumerate(self._left):
            if around == agents and call.name == name and same_json(call.input, given):
                del self._left[index]
                return call
        return None


def _inside(call: ToolPart, agents: tuple[str, ...]) -> Iterator[_Finished]:
    if call.agent is None:
        return
    inner = (*agents, call.agent.id)
    for message in call.agent.messages:
        for part in message.parts:
            if not isinstance(part, ToolPart):
                continue
            if part.state in FINISHED:
                yield _Finished(inner, part)
            else:
                yield from _inside(part, inner)
