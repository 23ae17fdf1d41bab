"""The example adapter, played into a conversation by the smallest driver there can be."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from talkfold import EMPTY_SESSION, Part, Send, SessionState, TextPart, ToolPart, session_reducer
from talkfold.runs import AbortController, AgentAdapter, AgentRunRequest, Ready, Toolbox, logged_part, status_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "echo_adapter.py"


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("echo_adapter", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


echo: AgentAdapter = _example().echo


async def play(adapter: AgentAdapter, tools: Toolbox, text: str) -> SessionState:
    """One run in memory: each part is folded before the adapter goes on."""
    state = session_reducer(EMPTY_SESSION, Send("u-1", text))
    request = AgentRunRequest(state.messages, AbortController().signal, tools.descriptors, tools.call)
    async for part in adapter.run(request):
        state = session_reducer(state, Part(logged_part(part)))
    return state


def greet() -> str:
    """Greet."""
    return "hello"


def fail() -> None:
    """Fail."""
    raise RuntimeError("no")


async def test_without_tools_it_says_so() -> None:
    state = await play(echo, Toolbox(), "Hi")
    assert state.status == "idle"
    assert [message.role for message in state.messages] == ["user", "assistant"]
    assert state.messages[-1].parts == (TextPart("There are 0 tools."),)


async def test_it_calls_the_first_tool_and_reports_it() -> None:
    state = await play(echo, Toolbox(greet, fail), "Hi")
    call, text = state.messages[-1].parts
    assert isinstance(call, ToolPart)
    assert (call.name, call.input, call.state) == ("greet", {}, "done")
    assert call.output == {"content": [{"type": "text", "text": "hello"}]}
    assert text == TextPart("There are 2 tools.")
    assert state.status == "idle"


async def test_a_tool_that_fails_is_an_error_of_its_call_and_the_run_goes_on() -> None:
    state = await play(echo, Toolbox(fail), "Hi")
    call, text = state.messages[-1].parts
    assert isinstance(call, ToolPart)
    assert (call.state, call.error) == ("error", "Error [failed] fail: RuntimeError: no")
    assert text == TextPart("There are 1 tools.")
    assert state.status == "idle"


def test_it_is_always_ready() -> None:
    assert status_of(echo) == Ready()
