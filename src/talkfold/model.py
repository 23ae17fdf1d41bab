"""What a conversation is: messages, their parts, and the state of a session.

Every type is a frozen ``msgspec.Struct``. In Python the fields are snake_case, on the wire they are
camelCase; a field that is not set is absent on the wire, never null.

Two kinds of "not set" exist, on purpose. A typed optional field (``error``, ``prompt``, ``agent`` …) is
``None`` when it is not set. A field that may hold *any* JSON value (``output``, ``provider_metadata``) is
``UNSET`` when it is not set, because ``None`` is the legal JSON value ``null`` there.

``gc=False``: what is frozen and made of JSON has no cycles, so the garbage collector need not walk through long
conversations again and again; reading one is a fifth faster.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct

__all__ = (
    "DELEGATE_PREFIX",
    "EMPTY_SESSION",
    "UNSET",
    "AgentMessage",
    "AgentPart",
    "AgentRun",
    "ErrorCode",
    "Json",
    "ReasoningPart",
    "Role",
    "SessionError",
    "SessionState",
    "SessionStatus",
    "TextPart",
    "ToolCallState",
    "ToolPart",
)

Json: TypeAlias = Any
"""Any JSON value, exactly as it came: numbers of any size, key order, unknown fields."""

Role: TypeAlias = Literal["user", "assistant"]
SessionStatus: TypeAlias = Literal["idle", "streaming", "error"]
ToolCallState: TypeAlias = Literal["running", "awaiting-confirmation", "done", "error", "cancelled"]
ErrorCode: TypeAlias = Literal["chat_disabled", "rate_limited", "bad_request", "network"]

DELEGATE_PREFIX = "delegate_to_"
"""A tool call whose name starts with this is a sub-agent's run; the rest of the name is the agent's id."""


class TextPart(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="text"):
    """Plain text. Strings are JavaScript's: a lone surrogate half is legal and kept as it came."""

    text: str


class ReasoningPart(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="reasoning"
):
    """The model's reasoning: kept for the next request, not shown as the reply."""

    text: str
    provider_metadata: Json = UNSET


class AgentRun(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A sub-agent's nested run behind a ``delegate_to_<id>`` call: its own messages, with ids of their own."""

    id: str
    messages: tuple[AgentMessage, ...]


class ToolPart(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", tag_field="type", tag="tool"):
    """A tool call and where it is.

    *Open* means ``running`` or ``awaiting-confirmation``; *finished* means ``done`` or ``error``;
    ``cancelled`` is neither. ``output`` is set when done, ``error`` when it failed or was cancelled with a
    text, ``prompt`` only while it waits for the person, ``agent`` only for a ``delegate_to_<id>`` call.
    """

    id: str
    name: str
    input: Json
    state: ToolCallState
    output: Json = UNSET
    error: str | None = None
    prompt: str | None = None
    agent: AgentRun | None = None
    provider_metadata: Json = UNSET


AgentPart: TypeAlias = TextPart | ReasoningPart | ToolPart


class AgentMessage(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """One turn of a conversation, its parts in the order in which they came."""

    id: str
    role: Role
    parts: tuple[AgentPart, ...]


class SessionError(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Why the last run failed: a text for people and, when known, a code that a client can explain."""

    message: str
    code: ErrorCode | None = None


class SessionState(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A conversation at one point of its log. Made only by folding actions."""

    messages: tuple[AgentMessage, ...]
    status: SessionStatus
    error: SessionError | None = None


EMPTY_SESSION = SessionState(messages=(), status="idle")
"""Where every conversation starts, and what ``reset`` goes back to."""
