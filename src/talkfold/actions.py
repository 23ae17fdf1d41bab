"""Everything that can happen to a session: the actions of its log, and the stream parts inside them.

The wire names are the ``type`` tags; the effect of each is in ``reducer.py`` and, as a table, in ``machine.py``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct

from .model import ErrorCode, Json

__all__ = (
    "AgentStreamPart",
    "Finish",
    "FinishReason",
    "MessageStart",
    "Part",
    "Reasoning",
    "Reset",
    "Retry",
    "RunError",
    "Send",
    "SessionAction",
    "StepFinish",
    "Stop",
    "TextDelta",
    "ToolCall",
    "ToolError",
    "ToolPhase",
    "ToolResult",
)

FinishReason: TypeAlias = Literal["stop", "max-steps", "aborted"]

# ---- stream parts: what an agent reports while it runs ------------------------------------------------


class MessageStart(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="message-start"
):
    """A new, empty assistant message begins."""

    message_id: str


class TextDelta(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="text-delta"):
    """More text for a message: joins its last part when that is text, else opens a new text part."""

    message_id: str
    delta: str


class Reasoning(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="reasoning"):
    """A reasoning part of its own, with the provider's data that must travel with it (a signature, say)."""

    message_id: str
    text: str
    provider_metadata: Json = UNSET


class ToolCall(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="tool-call"):
    """The model calls a tool; the call is running."""

    message_id: str
    id: str
    name: str
    input: Json
    provider_metadata: Json = UNSET


class ToolResult(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="tool-result"
):
    """The call is done. ``isError`` inside the output changes nothing: an answer is an answer."""

    id: str
    output: Json


class ToolError(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="tool-error"):
    """The call failed, or was cancelled when the text starts with ``Error [cancelled]``."""

    id: str
    error: str


class StepFinish(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="step-finish"
):
    """One model step and its calls are over. Changes nothing."""

    step: int | float


class Finish(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="finish"):
    """The run is over; ``aborted`` also cancels what is open."""

    reason: FinishReason


class RunError(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="error"):
    """The run failed; what is open is cancelled."""

    error: str
    code: ErrorCode | None = None


AgentStreamPart: TypeAlias = (
    MessageStart | TextDelta | Reasoning | ToolCall | ToolResult | ToolError | StepFinish | Finish | RunError
)

# ---- actions: what the log stores, one row each --------------------------------------------------------


class Send(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="send"):
    """The person says something."""

    id: str
    text: str


class Part(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="part"):
    """The agent reports one stream part; ``within`` names the delegate call whose nested run it belongs to."""

    part: AgentStreamPart
    within: str | None = None


class ToolPhase(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="toolPhase"):
    """A running tool parks on a control that the person must use, or goes on. Matched by tool name."""

    name: str
    state: Literal["running", "awaiting-confirmation"]
    prompt: str | None = None


class Stop(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="stop"):
    """The person stops the run, or a reload settles one whose process is gone."""


class Retry(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="retry"):
    """Try the last turn again, from its last finished call."""


class Reset(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="reset"):
    """Back to the empty session."""


SessionAction: TypeAlias = Send | Part | ToolPhase | Stop | Retry | Reset
