"""The contract between talkfold and the agent behind a conversation.

An adapter owns the model and tool loop and reports what happens as a stream of parts; everything else stores and
renders them. What every adapter does (``talkfold.testing.adapter_contract`` checks it):

- **Messages.** Each assistant message begins with ``message-start``; text, reasoning and calls name it by its id.
- **Calls.** One at a time. Yield ``tool-call``, then await ``request.call_tool``, then yield ``tool-result`` or
  ``tool-error`` with the same id (``tool_outcome`` makes the right one). The call is in the log before the tool runs.
- **Tools.** Read ``request.tools`` before every model call: tools come and go while a run lives.
- **End.** The last part is ``finish`` or ``error``; nothing comes after it.
- **Stop.** When ``request.signal`` is aborted, end soon, with ``finish`` and the reason ``aborted``. An adapter that
  goes on is cancelled after a grace time.
- **One object.** Make an adapter once, not for each run: what it says about its status is said by that object.

Only ``id``, ``label`` and ``run`` are required. What an adapter may have besides is a protocol of its own below, with
a function that gives the default for adapters without it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Protocol, TypeAlias, runtime_checkable

import msgspec
from msgspec import Meta, Struct

from ..actions import AgentStreamPart, ToolCall, ToolResult
from ..errors import AdapterBusy, InvalidArgument
from ..model import AgentMessage, Json
from .active import is_running
from .output import ToolOutput
from .signal import AbortSignal

__all__ = (
    "LEGAL_TOOL_NAME",
    "AdapterStatus",
    "AgentAdapter",
    "AgentRunRequest",
    "Downloading",
    "HasModels",
    "HasPreparation",
    "HasStatus",
    "HasStatusChanges",
    "Loading",
    "ModelChoice",
    "NeedsDownload",
    "Ready",
    "SetupFailed",
    "ToolCallRequest",
    "ToolDescriptor",
    "Unavailable",
    "WebAgent",
    "logged_part",
    "models_of",
    "prepare",
    "select_model",
    "status_of",
    "subscribe_to",
)

_log = logging.getLogger(__name__)

# ---- whether an adapter can run -----------------------------------------------------------------------------

_Progress: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class Ready(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="state", tag="ready"):
    """It can run."""


class Unavailable(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="state", tag="unavailable"):
    """It cannot run, and why."""

    reason: str


class NeedsDownload(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="state", tag="needs-download"):
    """A download, of ``bytes`` bytes when that is known, must start first; ``note`` is a caveat to show with it."""

    bytes: int | None = None
    note: str | None = None


class Downloading(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="state", tag="downloading"):
    """A download goes on; ``progress`` is 0 to 1 (else InvalidArgument)."""

    progress: _Progress

    def __post_init__(self) -> None:
        _refuse_progress(self.progress)


class Loading(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="state", tag="loading"):
    """It starts up: without ``progress`` a check of the connection, with it (0 to 1, else InvalidArgument) a model
    that is already here being read."""

    progress: _Progress | None = None

    def __post_init__(self) -> None:
        if self.progress is not None:
            _refuse_progress(self.progress)


class SetupFailed(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="state", tag="error"):
    """Setting it up failed; ``error`` is a text for people."""

    error: str


AdapterStatus: TypeAlias = Ready | Unavailable | NeedsDownload | Downloading | Loading | SetupFailed
"""Whether an adapter can run right now; on the wire ``{"state": "ready" | "needs-download" | …}``."""


def _refuse_progress(progress: float) -> None:
    if not 0 <= progress <= 1:  # NaN is refused here too: on the wire it would become null
        raise InvalidArgument("progress", f"{progress} is not from 0 to 1")


class ModelChoice(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One model that the person can pick. ``None`` means not said; ``bytes`` is the size of its download."""

    id: str
    label: str
    brief: str
    bytes: int | None = None
    cached: bool | None = None
    recommended: bool | None = None
    selected: bool | None = None


# ---- what an adapter gets for one run -----------------------------------------------------------------------


LEGAL_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes as the name of a tool."""


class ToolDescriptor(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A tool as the model sees it; ``input_schema`` is a JSON Schema of type object."""

    name: str
    description: str
    input_schema: dict[str, Json]


class ToolCallRequest(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A call that a model wants made: the call's id, the tool's name, and the arguments as JSON."""

    id: str
    name: str
    input: Json


class WebAgent(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The agent that a page or an application defined: what the model is told, and how many steps it may take."""

    id: str
    instructions: str | None = None
    max_steps: int | None = None


class AgentRunRequest(Struct, frozen=True):
    """One run: one user message, possibly many model steps.

    ``messages`` is the conversation so far, healed for a provider: it ends with the new user message, on Retry with
    the last finished call. ``signal`` is aborted when the person presses Stop. ``agent`` is set where one was defined.
    ``list_tools`` and ``run_tool`` are what ``tools`` and ``call_tool`` ask; ``run_tool`` must never raise.
    """

    messages: tuple[AgentMessage, ...]
    signal: AbortSignal
    list_tools: Callable[[], Sequence[ToolDescriptor]]
    run_tool: Callable[[ToolCallRequest], Awaitable[ToolOutput]]
    agent: WebAgent | None = None

    @property
    def tools(self) -> tuple[ToolDescriptor, ...]:
        """The tools right now, asked anew on every access: read it before every model call."""
        return tuple(self.list_tools())

    async def call_tool(self, call: ToolCallRequest | ToolCall) -> ToolOutput:
        """Run a tool. Never raises: every failure is an output with ``is_error``, whose text begins with its code."""
        if isinstance(call, ToolCall):
            call = ToolCallRequest(call.id, call.name, call.input)
        return await self.run_tool(call)


# ---- the adapter ------------------------------------------------------------------------------------------------


class AgentAdapter(Protocol):
    """An agent that a conversation can talk to: the model and tool loop behind a stream of parts."""

    @property
    def id(self) -> str:
        """Stable: a page remembers the chosen adapter by it."""
        ...

    @property
    def label(self) -> str:
        """Shown where the person chooses an adapter."""
        ...

    def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        """Handle one user message: the parts in order, ending with ``finish`` or ``error``. An async generator does."""
        ...


@runtime_checkable
class HasStatus(Protocol):
    """An adapter that is not always ready."""

    def status(self) -> AdapterStatus:
        """Whether it can run right now."""
        ...


@runtime_checkable
class HasStatusChanges(Protocol):
    """An adapter whose status changes by itself (a download goes on, a check ends)."""

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call the listener after every change of status; returns the function that unsubscribes."""
        ...


@runtime_checkable
class HasPreparation(Protocol):
    """An adapter with heavy set-up that only the person starts, such as a download."""

    async def prepare(self, signal: AbortSignal | None = None) -> None:
        """Do the set-up; aborting the signal cancels it. Raises what went wrong."""
        ...


@runtime_checkable
class HasModels(Protocol):
    """An adapter with models to pick from."""

    def models(self) -> Sequence[ModelChoice]:
        """The models that the person can pick from."""
        ...

    async def select_model(self, model_id: str) -> None:
        """Switch to one of ``models()``; the status then says what the new model needs.

        Raises AdapterBusy while a reply or a download goes on.
        """
        ...


def status_of(adapter: AgentAdapter) -> AdapterStatus:
    """The adapter's status; ready for an adapter without ``status``, failed for one whose ``status`` raises."""
    if not isinstance(adapter, HasStatus):
        return Ready()
    try:
        return adapter.status()
    except Exception as error:
        _log.exception("the status of adapter %r cannot be read", adapter.id)
        return SetupFailed(f"{type(error).__name__}: {error}")


def subscribe_to(adapter: AgentAdapter, listener: Callable[[], object]) -> Callable[[], None]:
    """Hear of the adapter's changes of status; returns the function that unsubscribes. Without ``subscribe`` there
    are none."""
    return adapter.subscribe(listener) if isinstance(adapter, HasStatusChanges) else lambda: None


async def prepare(adapter: AgentAdapter, signal: AbortSignal | None = None) -> None:
    """Do the adapter's set-up, if it has any. Raises what the adapter raises."""
    if isinstance(adapter, HasPreparation):
        await adapter.prepare(signal)


def models_of(adapter: AgentAdapter) -> tuple[ModelChoice, ...]:
    """The models to pick from; none for an adapter without ``models``."""
    return tuple(adapter.models()) if isinstance(adapter, HasModels) else ()


async def select_model(adapter: AgentAdapter, model_id: str, *, running: bool | None = None) -> None:
    """Switch the adapter to another of its models.

    ``running`` says whether a run of this adapter goes on; by default, whether one does in this process. Raises
    AdapterBusy while one does, or a download; InvalidArgument for a model that is not among ``models_of(adapter)``;
    and what the adapter raises.
    """
    known = [model.id for model in models_of(adapter)]
    if model_id not in known or not isinstance(adapter, HasModels):
        raise InvalidArgument("model_id", f"{model_id!r} is not among {', '.join(known) or 'none'}")
    if is_running(adapter) if running is None else running:
        raise AdapterBusy(adapter.id, "a reply")
    if isinstance(status_of(adapter), Downloading):
        raise AdapterBusy(adapter.id, "a download")
    await adapter.select_model(model_id)


def logged_part(part: AgentStreamPart) -> AgentStreamPart:
    """The part as the log takes it: an adapter may yield a ``ToolOutput`` as its output, the log keeps plain JSON."""
    if isinstance(part, ToolResult) and isinstance(part.output, ToolOutput):
        return msgspec.structs.replace(part, output=part.output.raw)
    return part
