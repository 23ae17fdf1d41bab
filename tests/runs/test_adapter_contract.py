"""The adapters of the project pass the contract of adapters; those that misbehave do not."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from talkfold import AgentStreamPart, Finish, RunError, TextDelta, ToolCall
from talkfold.errors import InvalidArgument
from talkfold.model import AgentMessage, TextPart, ToolPart
from talkfold.runs import (
    AbortController,
    AbortSignal,
    AdapterStatus,
    AgentAdapter,
    AgentRunRequest,
    ModelChoice,
    NeedsDownload,
    Ready,
    ToolCallRequest,
    ToolDescriptor,
    ToolOutput,
    WebAgent,
    output_of,
)
from talkfold.testing.adapter_contract import PROBE, AdapterContract, Scenario, broken, play
from talkfold.testing.misbehaving import MISBEHAVING
from talkfold.testing.scripted import (
    Script,
    ScriptedAdapter,
    call,
    fail,
    finish,
    new_message,
    say,
    script,
    think,
    wait,
)

EXAMPLES = Path(__file__).parents[2] / "examples"

ANSWER = script(think("A greeting."), say("Good ", "morning."), wait(0.01), finish())
LOOK = script(say("Let me look."), call(PROBE), say("It shows ", lambda seen: f"{seen.output.text}."))


class OnBoth(AdapterContract):
    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


class TestScriptedAdapter(OnBoth):
    def adapter(self) -> AgentAdapter:
        return ScriptedAdapter(ANSWER, ANSWER)

    def calling(self) -> Scenario:
        return Scenario("Look at the probe.", ScriptedAdapter(LOOK))

    def failing(self) -> Scenario:
        return Scenario("Hello", ScriptedAdapter(script(say("I "), fail("The model is gone.", "network"))))


class TestEcho(OnBoth):
    def adapter(self) -> AgentAdapter:
        spec = importlib.util.spec_from_file_location("echo_adapter", EXAMPLES / "echo_adapter.py")
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        adapter: AgentAdapter = module.EchoAdapter()
        return adapter

    def calling(self) -> Scenario:
        return Scenario("Hello")


class Downloading(ScriptedAdapter):
    """Everything that an adapter may have: a download before it can run, and two models."""

    def __init__(self, *turns: Script, ready: bool) -> None:
        super().__init__(*turns)
        self._status: AdapterStatus = Ready() if ready else NeedsDownload(1_000)
        self._listeners: list[Callable[[], object]] = []
        self._model = "small"

    def status(self) -> AdapterStatus:
        return self._status

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        self._listeners.append(listener)

        def leave() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return leave

    async def prepare(self, signal: AbortSignal | None = None) -> None:
        await anyio.sleep(0.01)
        if self._status != Ready() and not (signal and signal.aborted):
            self._status = Ready()
            for listener in list(self._listeners):
                listener()

    def models(self) -> Sequence[ModelChoice]:
        return [
            ModelChoice(name, name.title(), "For tests.", selected=name == self._model) for name in ("small", "big")
        ]

    async def select_model(self, model_id: str) -> None:
        if model_id not in ("small", "big"):
            raise InvalidArgument("model_id", "there is none")
        self._model = model_id


class TestAnAdapterWithEverything(OnBoth):
    def adapter(self) -> AgentAdapter:
        return Downloading(ANSWER, ANSWER, ready=True)

    def calling(self) -> Scenario:
        return Scenario("Look.", Downloading(LOOK, ready=True))

    def unprepared(self) -> AgentAdapter:
        return Downloading(ready=False)


# ---- the contract finds what is wrong ------------------------------------------------------------------------------

HARMLESS = {
    "blocks-the-loop": "a loop that stands still is nothing that its own parts show",
    "starts-messages-without-end": "many messages are allowed",
}
"""Misbehaviours that break no rule in one quiet run."""

NOT_HERE = (
    "exits",
    "exits-after-its-end",
    "exits-when-closed",
    "raises-a-cancellation",
    "raises-generator-exit",
    "shields-its-finally",
    "catches-its-cancellation",
    "talks-on-when-cancelled",
)
"""Those that would end, or hold up, the test itself."""


@pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning")
@pytest.mark.filterwarnings("ignore:coroutine '_run_is_a_coroutine' was never awaited:RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in MISBEHAVING if name not in HARMLESS and name not in NOT_HERE])
async def test_each_misbehaviour_breaks_a_rule(name: str) -> None:
    record = await _play(MISBEHAVING[name].adapter())
    assert broken(record) != []


@pytest.mark.parametrize("name", HARMLESS)
async def test_what_the_parts_do_not_show_breaks_none(name: str) -> None:
    assert broken(await _play(MISBEHAVING[name].adapter())) == []


class _Deaf(AdapterContract):
    """An adapter that does not hear Stop, and that does not look back."""

    soon = 0.3

    def adapter(self) -> AgentAdapter:
        class Deaf(ScriptedAdapter):
            def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
                said = [message for message in request.messages if message.role == "user"]
                never = AbortController().signal
                return super().run(AgentRunRequest(tuple(said), never, request.list_tools, request.run_tool))

        return Deaf(script(call(PROBE), say("done")))

    def calling(self) -> Scenario:
        return Scenario("Look.")


@pytest.mark.parametrize(
    "test",
    [
        _Deaf.test_stopped_before_it_begins,
        _Deaf.test_stopped_in_its_answer,
        _Deaf.test_stopped_while_its_tool_runs,
        _Deaf.test_it_goes_on_after_a_finished_call,
        _Deaf.test_retry_does_not_make_finished_calls_again,
        _Deaf.test_two_turns_of_one_session,
    ],
)
async def test_an_adapter_that_hears_and_sees_nothing_fails(test: Callable[[AdapterContract], Awaitable[None]]) -> None:
    with pytest.raises(AssertionError):
        await test(_Deaf())


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("hangs-at-once", "comes to an end"),
        ("raises-after-text", "raises nothing"),
        ("goes-on-after-finish", "one end, at the end"),
        ("says-nothing", "one end, at the end"),
        ("yields-nan", "parts that a log takes"),
        ("yields-text-that-is-bytes", "parts that a log takes"),
        ("names-a-message-that-never-began", "message-start comes first"),
        ("uses-a-message-id-again", "message ids are new"),
        ("uses-a-call-id-again", "call ids are new"),
        ("calls-before-it-says-so", "tool-call comes before call_tool"),
        ("calls-with-another-input", "tool-call comes before call_tool"),
        ("changes-the-input-in-place", "tool-call comes before call_tool"),
        ("calls-twice", "tool-call comes before call_tool"),
        ("never-reports-the-outcome", "one outcome for each call"),
        ("reports-the-outcome-twice", "one outcome for each call"),
        ("reports-an-outcome-of-nothing", "one outcome for each call"),
        ("reports-the-outcome-first", "outcomes are what the tools gave"),
        ("reports-another-outcome", "outcomes are what the tools gave"),
        ("calls-two-at-once", "one call at a time"),
    ],
)
async def test_the_broken_rule_is_named(name: str, rule: str) -> None:
    assert any(text.startswith(f"{rule}: ") for text in broken(await _play(MISBEHAVING[name].adapter())))


async def test_an_adapter_that_reads_its_tools_once_is_found() -> None:
    class ReadsOnce(ScriptedAdapter):
        def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            tools = request.tools
            once = AgentRunRequest(request.messages, request.signal, lambda: tools, request.call_tool)
            return super().run(once)

    texts = broken(await _play(ReadsOnce(LOOK)))
    assert texts != []
    assert all(text.startswith("tools are read anew: ") for text in texts)


async def _play(adapter: AgentAdapter) -> Any:
    async def works(call: ToolCallRequest) -> ToolOutput:
        await anyio.sleep(0.01)
        return output_of("42")

    tools = [ToolDescriptor(PROBE, "Look.", {"type": "object"})]
    return await play(adapter, [_said("u1", "Hi")], tools=tools, run_tool=works, seconds=0.3)


# ---- the script ------------------------------------------------------------------------------------------------------


def _said(message_id: str, text: str) -> AgentMessage:
    return AgentMessage(message_id, "user", (TextPart(text),))


async def parts_of(
    adapter: ScriptedAdapter, *messages: AgentMessage, agent: WebAgent | None = None
) -> list[AgentStreamPart]:
    async def adds(call: ToolCallRequest) -> ToolOutput:
        return output_of(call.input["a"] + call.input["b"])

    request = AgentRunRequest(messages, AbortController().signal, lambda: (), adds, agent)
    return [part async for part in adapter.run(request)]


def texts(parts: list[AgentStreamPart]) -> list[str]:
    return [part.delta for part in parts if isinstance(part, TextDelta)]


TWO_CALLS = script(
    say("First."),
    call("add", a=1, b=2),
    say(lambda seen: f"{seen.output.text}, then."),
    call("add", lambda seen: {"a": int(seen.output.text), "b": 10}),
    say(lambda seen: " and ".join(output.text for output in seen.outputs)),
)


async def test_a_step_sees_the_outputs_so_far() -> None:
    parts = await parts_of(ScriptedAdapter(TWO_CALLS), _said("u1", "Add"))
    assert texts(parts) == ["First.", "3, then.", "3 and 13"]
    assert [(part.id, part.input) for part in parts if isinstance(part, ToolCall)] == [
        ("u1-c1", {"a": 1, "b": 2}),
        ("u1-c2", {"a": 3, "b": 10}),
    ]
    assert parts[-1] == Finish("stop")


async def test_it_goes_on_after_the_calls_that_are_there() -> None:
    done = ToolPart("u1-c1", "add", {"a": 1, "b": 2}, "done", output=output_of(3).raw)
    failed = ToolPart("u1-c2", "add", {}, "error", error="Error [failed] add: no")
    one = AgentMessage("u1-m1", "assistant", (TextPart("First."), done))
    parts = await parts_of(ScriptedAdapter(TWO_CALLS), _said("u1", "Add"), one)
    assert texts(parts) == ["3, then.", "3 and 13"]
    assert [part.id for part in parts if isinstance(part, ToolCall)] == ["u1-c2"]
    two = AgentMessage("u1-m1", "assistant", (done, failed))
    assert texts(await parts_of(ScriptedAdapter(TWO_CALLS), _said("u1", "Add"), two)) == [
        "3 and Error [failed] add: no"
    ]


async def test_each_message_of_the_person_has_its_turn() -> None:
    adapter = ScriptedAdapter(script(say("one")), script(say(lambda seen: seen.text.upper()), new_message(), say("!")))
    before = (_said("u1", "a"), AgentMessage("x", "assistant", (TextPart("one"),)))
    assert texts(await parts_of(adapter, _said("u1", "a"))) == ["one"]
    assert texts(await parts_of(adapter, *before, _said("u2", "again"))) == ["AGAIN", "!"]
    (end,) = await parts_of(adapter, *before, _said("u2", "b"), _said("u3", "c"))
    assert end == RunError("The script has 2 turns, and this is turn 3.")


async def test_a_function_that_raises_ends_the_run_with_an_error() -> None:
    parts = await parts_of(ScriptedAdapter(script(say("a", lambda seen: seen.output.text))), _said("u1", "Hi"))
    assert isinstance(parts[-1], RunError)
    assert "before the first call" in parts[-1].error


async def test_it_keeps_to_the_steps_that_its_agent_may_take() -> None:
    parts = await parts_of(ScriptedAdapter(TWO_CALLS), _said("u1", "Add"), agent=WebAgent("a", max_steps=1))
    assert sum(isinstance(part, ToolCall) for part in parts) == 1
    assert parts[-1] == Finish("max-steps")


async def test_a_wait_ends_with_stop() -> None:
    controller = AbortController()

    async def none(call: ToolCallRequest) -> ToolOutput:
        raise AssertionError

    request = AgentRunRequest((_said("u1", "Hi"),), controller.signal, lambda: (), none)
    parts = list[AgentStreamPart]()
    with anyio.fail_after(5):
        async for part in ScriptedAdapter(script(say("a"), wait(), say("b"))).run(request):
            parts.append(part)
            if isinstance(part, TextDelta):
                controller.abort("stop")
    assert texts(parts) == ["a"]
    assert parts[-1] == Finish("aborted")


def test_a_step_that_could_never_be_reached_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        script(finish(), say("too late"))
    with pytest.raises(InvalidArgument):
        call("add", {"a": 1}, b=2)


def test_what_is_no_script_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgument, match="a turn is a script"):
        ScriptedAdapter(cast("Any", say("Hello")))
    with pytest.raises(InvalidArgument, match="not str"):
        script(cast("Any", "Hello"))
