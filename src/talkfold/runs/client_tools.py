"""Tools that a connected client runs: a web page, an editor, a phone.

The run cannot call them. It parks the call, the client sees it in the log (and in the session's lease), does the work
and posts the result with ``give_result``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Protocol, runtime_checkable

from ..errors import InvalidArgument
from .adapter import ToolCallRequest, ToolDescriptor
from .output import ToolOutput, error_output
from .tool import ToolContext

__all__ = ("CLIENT_SECONDS", "ClientTools", "Parking")

CLIENT_SECONDS = 300.0
"""How long a call waits for a client's result, unless the tools say otherwise."""


@runtime_checkable
class Parking(Protocol):
    """A source whose calls wait for a client."""

    def patience(self, call: ToolCallRequest) -> float | None:
        """How many seconds the call waits for its result; ``None``: as long as the run lives."""
        ...


class ClientTools:
    """The tools that a client said it has. Replace them at any time: ``tools`` may be set anew while a run lives.

    ``timeout`` is in seconds. Raises InvalidArgument when it is not above zero. Outside a run nobody parks a call:
    there it fails as ``unavailable``.
    """

    def __init__(self, tools: Sequence[ToolDescriptor] = (), *, timeout: float | None = CLIENT_SECONDS) -> None:
        if timeout is not None and not (timeout > 0 and isfinite(timeout)):
            raise InvalidArgument("timeout", f"{timeout} is not above zero")
        self.tools: Sequence[ToolDescriptor] = tools
        self.timeout = timeout

    def descriptors(self) -> Sequence[ToolDescriptor]:
        """The client's tools right now."""
        return self.tools

    def patience(self, call: ToolCallRequest) -> float | None:
        """The same for every call: ``timeout``."""
        return self.timeout

    async def call(self, call: ToolCallRequest, context: ToolContext) -> ToolOutput:
        """What is left when nobody parks the call."""
        return error_output("unavailable", f"{call.name}: it runs in a client, and none is connected here")
