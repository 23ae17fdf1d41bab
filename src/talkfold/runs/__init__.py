"""Live runs: an agent's parts into a session's log, its tools called, and whoever else writes there heard.

``start_run`` and ``retry_run`` play an adapter (``AgentAdapter``), ``stop_run`` stops whatever runs, ``follow`` watches
a run of another process. A ``Toolbox`` holds what an agent may call: Python functions, sources of remote tools, a
client's tools; a ``SubAgent`` is an agent that is called like one. ``approve``, ``deny`` and ``give_result`` answer a
parked call.
"""

from __future__ import annotations

from .active import is_running
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
from .answers import ParkedCall, approve, deny, give_result, parked_call
from .client_tools import CLIENT_SECONDS, ClientTools, Parking
from .conductor import RunEnding
from .events import (
    AgentEnded,
    AgentFault,
    AgentFaultCode,
    AgentStarted,
    CallAnswered,
    CallEnded,
    CallParked,
    CallProgress,
    CallStarted,
    Decision,
    EndReason,
    Observation,
    Observe,
    RunCause,
    RunEnded,
    RunEvent,
    RunStarted,
)
from .following import follow
from .output import ToolErrorCode, ToolOutput, error_output, output_of, tool_outcome
from .run import Run, RunSettings, retry_run, start_run, stop_run
from .signal import AbortController, AbortSignal
from .subagents import MAX_DEPTH, SubAgent
from .tool import Confirm, Tool, ToolContext, ToolProgress, tool
from .tools import AnyTool, Confirming, Toolbox, ToolSource

__all__ = (
    "CLIENT_SECONDS",
    "MAX_DEPTH",
    "AbortController",
    "AbortSignal",
    "AdapterStatus",
    "AgentAdapter",
    "AgentEnded",
    "AgentFault",
    "AgentFaultCode",
    "AgentRunRequest",
    "AgentStarted",
    "AnyTool",
    "CallAnswered",
    "CallEnded",
    "CallParked",
    "CallProgress",
    "CallStarted",
    "ClientTools",
    "Confirm",
    "Confirming",
    "Decision",
    "Downloading",
    "EndReason",
    "HasModels",
    "HasPreparation",
    "HasStatus",
    "HasStatusChanges",
    "Loading",
    "ModelChoice",
    "NeedsDownload",
    "Observation",
    "Observe",
    "ParkedCall",
    "Parking",
    "Ready",
    "Run",
    "RunCause",
    "RunEnded",
    "RunEnding",
    "RunEvent",
    "RunSettings",
    "RunStarted",
    "SetupFailed",
    "SubAgent",
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
    "approve",
    "deny",
    "error_output",
    "follow",
    "give_result",
    "is_running",
    "logged_part",
    "models_of",
    "output_of",
    "parked_call",
    "prepare",
    "retry_run",
    "select_model",
    "start_run",
    "status_of",
    "stop_run",
    "subscribe_to",
    "tool",
    "tool_outcome",
)
