"""The smallest adapter: no model. It calls the first tool, if there is one, and then says what it found.

Every adapter has this shape: ``message-start``, the parts, then ``finish``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

from talkfold import AgentStreamPart, Finish, MessageStart, TextDelta, ToolCall, ToolPart
from talkfold.runs import AdapterStatus, AgentRunRequest, Ready, tool_outcome


class EchoAdapter:
    """Make it once and use it for every run."""

    id = "echo"
    label = "Echo"

    def status(self) -> AdapterStatus:
        return Ready()

    async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        message_id = str(uuid4())
        yield MessageStart(message_id)

        # Retry gives back what finished after the last message of the person: a model sees that, and so must this.
        done = any(isinstance(part, ToolPart) for part in request.messages[-1].parts)
        if request.tools and not done and not request.signal.aborted:  # read anew on every access: tools come and go
            call = ToolCall(message_id, str(uuid4()), request.tools[0].name, {})
            yield call
            output = await request.call_tool(call)  # never raises
            yield tool_outcome(call.id, output)

        if request.signal.aborted:  # the person pressed Stop
            yield Finish("aborted")
            return
        yield TextDelta(message_id, f"There are {len(request.tools)} tools.")
        yield Finish("stop")


echo = EchoAdapter()
