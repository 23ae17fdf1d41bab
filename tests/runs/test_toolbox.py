"""A collection of tools that changes while it is used, with sources of remote tools in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from talkfold import InvalidArgument
from talkfold.runs import (
    AbortController,
    AbortSignal,
    AgentRunRequest,
    Confirming,
    Toolbox,
    ToolCallRequest,
    ToolContext,
    ToolDescriptor,
    ToolOutput,
    ToolSource,
    tool,
)


def add(sku: str) -> str:
    """Add an article."""
    return f"added {sku}"


@tool(confirm="Really empty it?")
def empty() -> None:
    """Empty the basket."""


def ask_about(given: Any) -> str:
    total = given.pop("total")
    return f"Pay {total}?"


@tool(confirm=ask_about)
def pay(total: str, note: str = "") -> str:
    """Pay."""
    return f"paid {total}"


class Remote:
    """A source in the place of a server or a page."""

    def __init__(self, *names: str, result: Any = None, error: BaseException | None = None) -> None:
        self.names, self.result, self.error = list(names), result, error
        self.calls: list[ToolCallRequest] = []
        self.signal: AbortSignal | None = None

    def descriptors(self) -> Sequence[ToolDescriptor]:
        return [ToolDescriptor(name, f"remote {name}", {"type": "object"}) for name in self.names]

    async def call(self, call: ToolCallRequest, context: ToolContext) -> ToolOutput:
        self.calls.append(call)
        self.signal = context.signal
        await checkpoint()
        if self.error is not None:
            raise self.error
        return self.result or ToolOutput({"content": [{"type": "text", "text": f"remote {call.name}"}]})


class Unlistable(Remote):
    def descriptors(self) -> Sequence[ToolDescriptor]:
        raise ConnectionError("gone")


class Cautious(Remote):
    def confirmation(self, call: ToolCallRequest) -> str | None:
        if call.input is None:
            raise LookupError("nothing to ask about")
        return f"Let the page {call.name}?" if call.input else None


def request(name: str, given: Any = None) -> ToolCallRequest:
    return ToolCallRequest("c1", name, {} if given is None else given)


def names(box: Toolbox) -> list[str]:
    return [descriptor.name for descriptor in box.descriptors()]


def test_a_function_a_tool_and_a_source_are_described_alike() -> None:
    box = Toolbox(add, empty, Remote("look"))
    assert names(box) == ["add", "empty", "look"]
    assert [descriptor.description for descriptor in box.descriptors()] == [
        "Add an article.",
        "Empty the basket.",
        "remote look",
    ]


async def test_tools_come_and_go_while_a_run_lives() -> None:
    box, remote = Toolbox(add), Remote("look")
    run = AgentRunRequest((), AbortController().signal, box.descriptors, box.call)
    assert [each.name for each in run.tools] == ["add"]
    box.add(pay, remote)
    assert [each.name for each in run.tools] == ["add", "pay", "look"]
    remote.names = ["click"]
    box.remove("add")
    assert [each.name for each in run.tools] == ["pay", "click"]
    assert (await run.call_tool(request("add", {"sku": "mug"}))).text.startswith("Error [not_found] ")
    assert (await run.call_tool(request("look"))).text.startswith("Error [not_found] ")
    assert (await run.call_tool(request("click"))).text == "remote click"
    box.remove(remote)
    assert [each.name for each in run.tools] == ["pay"]


async def test_a_tool_that_is_removed_while_it_runs_ends() -> None:
    running = anyio.Event()

    @tool
    async def slow() -> str:
        running.set()
        await anyio.sleep(0.01)
        return "ended"

    box, outputs = Toolbox(slow), list[ToolOutput]()

    async def calling() -> None:
        outputs.append(await box.call(request("slow")))

    async with anyio.create_task_group() as group:
        group.start_soon(calling)
        await running.wait()
        box.remove("slow")
    assert outputs[0].text == "ended"
    assert names(box) == []


def test_a_name_is_there_once_and_the_boxs_own_is_first() -> None:
    box = Toolbox(Remote("add", "look"), add, Remote("look"))
    assert names(box) == ["add", "look"]
    assert box.descriptors()[0].description == "Add an article."


@pytest.mark.parametrize("tools", [(add,), (pay, pay)])
def test_a_second_tool_of_one_name_is_refused_and_nothing_is_added(tools: tuple[Any, ...]) -> None:
    box = Toolbox(add)
    with pytest.raises(InvalidArgument):
        box.add(empty, Remote("look"), *tools)
    assert names(box) == ["add"]


@pytest.mark.parametrize("which", ["nothing", "look", Remote("look")])
def test_what_is_not_there_cannot_be_removed(which: Any) -> None:
    with pytest.raises(InvalidArgument):
        Toolbox(add, Remote("look")).remove(which)


async def test_a_source_that_cannot_be_listed_harms_no_other() -> None:
    box = Toolbox(Unlistable("look"), Remote("click"), add)
    assert names(box) == ["add", "click"]
    assert (await box.call(request("click"))).text == "remote click"
    assert (await box.call(request("look"))).text.startswith("Error [not_found] ")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionResetError("peer"), "Error [unavailable] look: ConnectionResetError peer"),
        (EOFError(), "Error [unavailable] look: EOFError"),
        (anyio.ClosedResourceError(), "Error [unavailable] look: ClosedResourceError"),
        (anyio.BrokenResourceError(), "Error [unavailable] look: BrokenResourceError"),
        (anyio.EndOfStream(), "Error [unavailable] look: EndOfStream"),
        (RuntimeError("odd"), "Error [failed] look: RuntimeError: odd"),
        (SystemExit(1), "Error [unavailable] look: SystemExit: 1"),
    ],
)
async def test_a_source_that_raises(error: BaseException, text: str) -> None:
    output = await Toolbox(Remote("look", error=error)).call(request("look"))
    assert (output.is_error, output.text) == (True, text)


async def test_what_a_source_gives_is_kept_exactly() -> None:
    raw = {"zeta": [1.0, 10**30], "content": [{"type": "new", "x": {}}], "_meta": {"b": 1, "a": 2}, "isError": True}
    output = await Toolbox(Remote("look", result=ToolOutput(raw))).call(request("look"))
    assert output.raw == raw
    assert list(output.raw) == list(raw)


async def test_a_source_gets_the_call_as_it_is_and_hears_of_stop() -> None:
    controller, remote = AbortController(), Remote("look")
    box = Toolbox(remote)
    given = {"deep": [1.0]}
    context = ToolContext("c1", controller.signal)
    assert (await box.call(request("look", given), context)).text == "remote look"
    assert remote.calls == [request("look", given)]
    assert remote.signal is not None
    controller.abort("stop")
    assert (await box.call(request("look"), context)).text == "Error [cancelled] look: stopped (stop)"
    assert len(remote.calls) == 1


async def test_a_box_is_a_source() -> None:
    inner = Toolbox(add, pay)
    outer = Toolbox(inner)
    assert isinstance(inner, ToolSource)
    assert names(outer) == ["add", "pay"]
    assert (await outer.call(request("add", {"sku": "mug"}))).text == "added mug"
    assert (await outer.call(request("add"))).text.startswith("Error [invalid_input] add: sku: missing.")
    assert outer.confirmation(request("pay", {"total": "25"})) == "Pay 25?"


def test_sources_and_boxes_are_told_apart() -> None:
    assert isinstance(Cautious(), Confirming)
    assert not isinstance(Remote(), Confirming)


# ---- asking the person ---------------------------------------------------------------------------------------


def test_what_the_person_is_asked() -> None:
    box = Toolbox(add, empty, pay, Cautious("click"), Remote("look"))
    assert box.confirmation(request("add", {"sku": "mug"})) is None
    assert box.confirmation(request("empty")) == "Really empty it?"
    assert box.confirmation(request("click", {"x": 1})) == "Let the page click?"
    assert box.confirmation(request("click")) is None
    assert box.confirmation(request("look")) is None
    assert box.confirmation(request("unknown")) is None


async def test_the_question_cannot_change_the_call() -> None:
    box, call = Toolbox(pay), request("pay", {"total": "25"})
    assert box.confirmation(call) == "Pay 25?"
    assert (await box.call(call)).text == "paid 25"


def test_nobody_is_asked_about_a_call_that_fails_anyway() -> None:
    assert Toolbox(pay).confirmation(request("pay", {"total": 25})) is None


def test_a_question_that_cannot_be_made_is_asked_all_the_same() -> None:
    @tool(confirm=lambda given: given["note"])
    def note(total: str, note: str = "") -> None: ...

    assert Toolbox(note).confirmation(request("note", {"total": "1"})) == "Allow note?"
    assert Toolbox(Cautious("click")).confirmation(ToolCallRequest("c1", "click", None)) == "Allow click?"
