"""The adapter contract: the wire forms of its types, and the defaults for what an adapter does not have."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
import pytest

from talkfold import AdapterBusy, AgentStreamPart, Finish, InvalidArgument, ToolCall, ToolResult
from talkfold.runs import (
    AbortController,
    AbortSignal,
    AdapterStatus,
    AgentAdapter,
    AgentRunRequest,
    Downloading,
    Loading,
    ModelChoice,
    NeedsDownload,
    Ready,
    SetupFailed,
    ToolCallRequest,
    ToolDescriptor,
    ToolOutput,
    Unavailable,
    WebAgent,
    logged_part,
    models_of,
    output_of,
    prepare,
    select_model,
    status_of,
    subscribe_to,
)

STATUSES: list[tuple[AdapterStatus, str]] = [
    (Ready(), '{"state":"ready"}'),
    (Unavailable("no key"), '{"state":"unavailable","reason":"no key"}'),
    (NeedsDownload(), '{"state":"needs-download"}'),
    (NeedsDownload(5, "slow here"), '{"state":"needs-download","bytes":5,"note":"slow here"}'),
    (Downloading(0.5), '{"state":"downloading","progress":0.5}'),
    (Loading(), '{"state":"loading"}'),
    (Loading(0.25), '{"state":"loading","progress":0.25}'),
    (SetupFailed("disk full"), '{"state":"error","error":"disk full"}'),
]


@pytest.mark.parametrize(("status", "wire"), STATUSES)
def test_a_status_on_the_wire(status: AdapterStatus, wire: str) -> None:
    assert msgspec.json.encode(status).decode() == wire
    assert msgspec.json.decode(wire, type=AdapterStatus) == status


@pytest.mark.parametrize("kind", [Downloading, Loading])
@pytest.mark.parametrize("progress", [-0.1, 1.1, math.nan, math.inf])
def test_progress_is_from_0_to_1(kind: Any, progress: float) -> None:
    with pytest.raises(InvalidArgument):
        kind(progress)


def test_progress_from_outside_is_from_0_to_1() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode('{"state":"downloading","progress":2}', type=AdapterStatus)


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (
            ModelChoice("m", "Small", "When it must be fast."),
            '{"id":"m","label":"Small","brief":"When it must be fast."}',
        ),
        (
            ModelChoice("m", "Small", "Fast.", 7, cached=False, recommended=True, selected=True),
            '{"id":"m","label":"Small","brief":"Fast.","bytes":7,"cached":false,"recommended":true,"selected":true}',
        ),
        (
            ToolDescriptor("add", "Adds.", {"type": "object"}),
            '{"name":"add","description":"Adds.","inputSchema":{"type":"object"}}',
        ),
        (ToolCallRequest("c1", "add", {"sku": 1.0}), '{"id":"c1","name":"add","input":{"sku":1.0}}'),
        (WebAgent("shop"), '{"id":"shop"}'),
        (WebAgent("shop", "Be brief.", 8), '{"id":"shop","instructions":"Be brief.","maxSteps":8}'),
    ],
)
def test_the_other_types_on_the_wire(value: Any, wire: str) -> None:
    assert msgspec.json.encode(value).decode() == wire
    assert msgspec.json.decode(wire, type=type(value)) == value


class Plain:
    """Only what every adapter has."""

    id = "plain"
    label = "Plain"

    async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        yield Finish("stop")


class Full(Plain):
    """All that an adapter may have."""

    def __init__(self, state: AdapterStatus | Exception) -> None:
        self.state = state
        self.listeners: list[Callable[[], object]] = []
        self.selected = "small"
        self.prepared: list[AbortSignal | None] = []

    def status(self) -> AdapterStatus:
        if isinstance(self.state, Exception):
            raise self.state
        return self.state

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    async def prepare(self, signal: AbortSignal | None = None) -> None:
        self.prepared.append(signal)

    def models(self) -> Sequence[ModelChoice]:
        return [ModelChoice("small", "S", "Fast."), ModelChoice("large", "L", "Good.")]

    async def select_model(self, model_id: str) -> None:
        self.selected = model_id


async def test_an_adapter_with_nothing_more_is_an_adapter() -> None:
    adapter: AgentAdapter = Plain()
    assert status_of(adapter) == Ready()
    assert models_of(adapter) == ()
    subscribe_to(adapter, lambda: pytest.fail("there is nothing to hear"))()
    await prepare(adapter, AbortController().signal)
    with pytest.raises(InvalidArgument):
        await select_model(adapter, "small", running=False)


async def test_an_adapter_with_everything_is_asked() -> None:
    full = Full(Loading(0.5))
    adapter: AgentAdapter = full
    assert status_of(adapter) == Loading(0.5)
    assert [model.id for model in models_of(adapter)] == ["small", "large"]
    heard = list[str]()
    unsubscribe = subscribe_to(adapter, lambda: heard.append("changed"))
    for listener in full.listeners:
        listener()
    unsubscribe()
    assert (heard, full.listeners) == (["changed"], [])
    signal = AbortController().signal
    await prepare(adapter, signal)
    assert full.prepared == [signal]
    await select_model(adapter, "large", running=False)
    assert full.selected == "large"


def test_an_adapter_whose_status_raises_is_not_ready() -> None:
    assert status_of(Full(OSError("no socket"))) == SetupFailed("OSError: no socket")


@pytest.mark.parametrize(
    ("state", "model_id", "running", "error"),
    [
        (Ready(), "huge", False, InvalidArgument),
        (Ready(), "large", True, AdapterBusy),
        (Downloading(0.1), "large", False, AdapterBusy),
    ],
)
async def test_a_model_is_not_changed_while_a_reply_or_a_download_goes_on(
    state: AdapterStatus, model_id: str, running: bool, error: type[Exception]
) -> None:
    adapter = Full(state)
    with pytest.raises(error):
        await select_model(adapter, model_id, running=running)
    assert adapter.selected == "small"


async def test_a_request_asks_for_its_tools_on_every_access() -> None:
    tools, calls = list[ToolDescriptor](), list[ToolCallRequest]()

    async def run_tool(call: ToolCallRequest) -> ToolOutput:
        calls.append(call)
        return output_of("done")

    request = AgentRunRequest((), AbortController().signal, lambda: tools, run_tool)
    assert request.tools == ()
    tools.append(ToolDescriptor("add", "Adds.", {}))
    assert request.tools == tuple(tools)
    assert (await request.call_tool(ToolCall("m", "c1", "add", {"sku": "mug"}))).text == "done"
    assert (await request.call_tool(ToolCallRequest("c2", "add", None))).text == "done"
    assert calls == [ToolCallRequest("c1", "add", {"sku": "mug"}), ToolCallRequest("c2", "add", None)]


def test_the_log_keeps_plain_json() -> None:
    output = output_of("done")
    assert logged_part(ToolResult("c1", output)) == ToolResult("c1", output.raw)
    for part in (ToolResult("c1", [1.0]), Finish("stop")):
        assert logged_part(part) is part
