"""Live runs: the contract with agents, and the tools that they call.

An adapter (``AgentAdapter``) plays a model and yields stream parts; a ``Toolbox`` holds what it may call; an
``AbortSignal`` tells both that the person pressed Stop.
"""

from __future__ import annotations

from .adapter import (
    AdapterStatus,
    AgentAdapter,
    AgentRunRequest,
    Downloading,
    HasModels,
    HasPreparation,
    HasStatus,
    HasStatusChanges,
    Loading,
    ModelChoice,
    NeedsDownload,
    Ready,
    SetupFailed,
    ToolCallRequest,
    ToolDescriptor,
    Unavailable,
    WebAgent,
    logged_part,
    models_of,
    prepare,
    select_model,
    status_of,
    subscribe_to,
)
from .output import ToolErrorCode, ToolOutput, error_output, output_of, tool_outcome
from .signal import AbortController, AbortSignal
from .tool import Confirm, Tool, ToolContext, ToolProgress, tool
from .tools import AnyTool, Confirming, Toolbox, ToolSource

__all__ = (
    "AbortController",
    "AbortSignal",
    "AdapterStatus",
    "AgentAdapter",
    "AgentRunRequest",
    "AnyTool",
    "Confirm",
    "Confirming",
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
    "Tool",
    "ToolCallRequest",
    "ToolContext",
    "ToolDescriptor",
    "ToolErrorCode",
    "ToolOutput",
    "ToolProgress",
    "ToolSource",
    "Toolbox",
    "Unavailable",
    "WebAgent",
    "error_output",
    "logged_part",
    "models_of",
    "output_of",
    "prepare",
    "select_model",
    "status_of",
    "subscribe_to",
    "tool",
    "tool_outcome",
)
