"""An adapter that plays a script: for tests, demos and examples, where a model would be slow, dear and moody.

```python
adapter = ScriptedAdapter(
    script(say("Let me ", "add that."), call("add", a=1, b=2), say(lambda seen: f"It is {seen.output.text}.")),
    script(think("They are done."), say("Goodbye.")),
)
```

One ``script`` for each message of the person. Where it goes on follows from the conversation alone, as with a model:
the turn is the number of messages that the person wrote, and of that turn the steps up to its last call are over. So
one adapter serves any number of sessions at once, and Retry goes on after the last finished call.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from copy import deepcopy
from typing import TypeAlias, cast, get_args

import anyio
from msgspec import UNSET, Struct

from ..actions import (
    AgentStreamPart,
    Finish,
    FinishReason,
    MessageStart,
    Reasoning,
    RunError,
    StepFinish,
    TextDelta,
    ToolCall,
    ToolError,
)
from ..errors import InvalidArgument
from ..model import AgentMessage, ErrorCode, Json, TextPart, ToolPart
from ..runs.adapter import AdapterStatus, AgentRunRequest, Ready, ToolDescriptor
from ..runs.output import ToolOutput, error_output, output_of, tool_outcome

__all__ = (
    "Call",
    "Fail",
    "NewMessage",
    "Say",
    "Script",
    "ScriptedAdapter",
    "Seen",
    "Step",
    "Stopped",
    "Think",
    "Wait",
    "call",
    "fail",
    "finish",
    "new_message",
    "say",
    "script",
    "think",
    "wait",
)


class Seen(Struct, frozen=True):
    """What a step may look at: the conversation, the tools right now, and the outputs of this turn's calls so far."""

    messages: tuple[AgentMessage, ...]
    tools: tuple[ToolDescriptor, ...]
    outputs: tuple[ToolOutput, ...]

    @property
    def output(self) -> ToolOutput:
        """The output of the last call. Raises InvalidArgument when this turn has made none."""
        if not self.outputs:
            raise InvalidArgument("script", "a step looks at an output before the first call")
        return self.outputs[-1]

    @property
    def text(self) -> str:
        """What the person said last."""
        said = next((message for message in reversed(self.messages) if message.role == "user"), None)
        return "".join(part.text for part in said.parts if isinstance(part, TextPart)) if said else ""


class Say(Struct, frozen=True):
    """Say some text, one ``text-delta`` for each piece; a function is asked for its piece when its turn comes."""

    pieces: tuple[str | Callable[[Seen], str], ...]


class Think(Struct, frozen=True):
    """Report reasoning, with what must travel with it."""

    text: str
    provider_metadata: Json = UNSET


class Call(Struct, frozen=True):
    """Call a tool, and report what came of it. ``input`` is any JSON, or a function that makes it."""

    name: str
    input: Json | Callable[[Seen], Json]


class Wait(Struct, frozen=True):
    """Wait for so many seconds; ``None``: until the person presses Stop."""

    seconds: float | None


class NewMessage(Struct, frozen=True):
    """Go on in another message."""


class Fail(Struct, frozen=True):
    """End the run with an error."""

    error: str
    code: ErrorCode | None = None


class Stopped(Struct, frozen=True):
    """End the run with ``finish``."""

    reason: FinishReason


Step: TypeAlias = Say | Think | Call | Wait | NewMessage | Fail | Stopped
"""One thing that an agent does."""


class Script(Struct, frozen=True):
    """One turn: what the agent does after one message of the person. Made by ``script``."""

    steps: tuple[Step, ...]


def say(*pieces: str | Callable[[Seen], str]) -> Say:
    """Say some text in one or more pieces: ``say("It is ", lambda seen: seen.output.text)``."""
    return Say(pieces)


def think(text: str, provider_metadata: Json = UNSET) -> Think:
    """Report reasoning."""
    return Think(text, provider_metadata)


def call(name: str, input: Json | Callable[[Seen], Json] = None, /, **arguments: Json) -> Call:  # noqa: A002
    """Call a tool with named arguments, ``call("add", a=1)``, or with any input, ``call("add", {"a": 1})``."""
    if input is not None and arguments:
        raise InvalidArgument("arguments", "give one input, or named arguments, not both")
    return Call(name, arguments if input is None else input)


def wait(seconds: float | None = None) -> Wait:
    """Wait for so many seconds; without a number, until the person presses Stop."""
    return Wait(seconds)


def new_message() -> NewMessage:
    """Go on in another message."""
    return NewMessage()


def fail(error: str, code: ErrorCode | None = None) -> Fail:
    """End the run with an error."""
    return Fail(error, code)


def finish(reason: FinishReason = "stop") -> Stopped:
    """End the run. A turn that ends without it ends with ``stop``."""
    return Stopped(reason)


def script(*steps: Step) -> Script:
    """A turn of these steps. Raises InvalidArgument for what is no step, and when a step could never be reached."""
    for step in steps:
        if not isinstance(step, get_args(Step)):
            reason = f"a step is say(…), call(…) or another function of talkfold.testing, not {type(step).__name__}"
            raise InvalidArgument("script", reason)
    for step in steps[:-1]:
        if isinstance(step, Fail | Stopped):
            raise InvalidArgument("script", f"nothing comes after {type(step).__name__.lower()}, which ends the run")
    return Script(steps)


class ScriptedAdapter:
    """Plays its scripts in order. It needs no model and no network, and does everything that a run may ask.

    Message and call ids are made from the person's message's own: ``<its id>-m1``, ``<its id>-c1``, so that a test can
    name them. A call of the script is one model step: ``step-finish`` follows its outcome, and the ``max_steps`` of
    the request's agent are kept. A function of the script that raises, and a turn that has no script, end the run with
    ``error``. Raises InvalidArgument for a turn that is no ``script``.
    """

    def __init__(self, *turns: Script, id: str = "scripted", label: str = "Scripted") -> None:  # noqa: A002
        for turn in cast("tuple[object, ...]", turns):  # callers may be untyped
            if not isinstance(turn, Script):
                reason = f"a turn is a script(…), not {type(turn).__name__}: put the steps of one turn into script(…)"
                raise InvalidArgument("turns", reason)
        self.id = id
        self.label = label
        self.turns = turns

    def status(self) -> AdapterStatus:
        """Always ready."""
        return Ready()

    def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        """Play the turn that the conversation has come to."""
        return _Playing(request).play(self.turns)


class _Playing:
    """One run of a script; all that it knows it has from the request."""

    def __init__(self, request: AgentRunRequest) -> None:
        self._request = request
        row = request.messages
        start = next((place for place in reversed(range(len(row))) if row[place].role == "user"), -1)
        self._turn = sum(message.role == "user" for message in row)
        self._stem = row[start].id if start >= 0 else "start"
        made = [part for message in row[start + 1 :] for part in message.parts if isinstance(part, ToolPart)]
        self._outputs = [_output(part) for part in made]
        self._taken = {message.id for message in row} | {part.id for part in made}
        self._message_id = ""

    async def play(self, turns: Sequence[Script]) -> AsyncIterator[AgentStreamPart]:
        if self._stopped():
            yield Finish("aborted")
            return
        if not 0 < self._turn <= len(turns):
            yield RunError(f"The script has {len(turns)} turns, and this is turn {self._turn}.")
            return
        yield self._start()
        end: Finish | RunError = Finish("stop")
        step = 1
        tools = self._request.tools  # read anew for each model step
        for each in _left(turns[self._turn - 1].steps, len(self._outputs)):
            if self._stopped():
                break
            if isinstance(each, Fail):
                end = RunError(each.error, each.code)
                break
            if isinstance(each, Stopped):
                end = Finish(each.reason)
                break
            try:
                async with aclosing(self._do(each, tools)) as parts:
                    async for part in parts:
                        yield part
            except _ScriptFailed as error:
                end = RunError(str(error))
                break
            if isinstance(each, Call):
                yield StepFinish(step)
                agent = self._request.agent
                if agent is not None and agent.max_steps is not None and step >= agent.max_steps:
                    end = Finish("max-steps")
                    break
                step += 1
                tools = self._request.tools
        yield Finish("aborted") if self._stopped() else end

    async def _do(self, step: Step, tools: tuple[ToolDescriptor, ...]) -> AsyncGenerator[AgentStreamPart]:
        signal = self._request.signal
        seen = Seen(self._request.messages, tools, tuple(self._outputs))
        match step:
            case Say(pieces):
                for piece in pieces:
                    if self._stopped():
                        return
                    yield TextDelta(self._message_id, piece if isinstance(piece, str) else _asked(piece, seen))
            case Think(text, metadata):
                yield Reasoning(self._message_id, text, metadata)
            case Wait(seconds):
                with anyio.move_on_after(seconds):
                    await signal.wait()
            case NewMessage():
                yield self._start()
            case Call(name, given):
                made = _asked(cast("Callable[[Seen], Json]", given), seen) if callable(given) else deepcopy(given)
                part = ToolCall(self._message_id, self._new_id("c"), name, made)
                yield part
                if self._stopped():  # Stop came while the call was being logged: the tool need not begin
                    yield ToolError(part.id, f"Error [cancelled] {name}: stopped ({signal.reason})")
                    return
                output = await self._request.call_tool(part)
                self._outputs.append(output)
                yield tool_outcome(part.id, output)
            case _:
                pass

    def _stopped(self) -> bool:
        return self._request.signal.aborted

    def _start(self) -> MessageStart:
        self._message_id = self._new_id("m")
        return MessageStart(self._message_id)

    def _new_id(self, kind: str) -> str:
        number = 1
        while (made := f"{self._stem}-{kind}{number}") in self._taken:
            number += 1
        self._taken.add(made)
        return made


class _ScriptFailed(Exception):
    """A function of the script raised."""


def _asked(function: Callable[[Seen], Json], seen: Seen) -> Json:
    try:
        return function(seen)
    except Exception as error:
        raise _ScriptFailed(f"A function of the script raised {type(error).__name__}: {error}") from error


def _left(steps: tuple[Step, ...], calls: int) -> tuple[Step, ...]:
    """The steps after so many calls."""
    for place, step in enumerate(steps):
        if calls <= 0:
            return steps[place:]
        calls -= isinstance(step, Call)
    return ()


def _output(part: ToolPart) -> ToolOutput:
    """What a call of the conversation gave, as the run that made it saw it."""
    if part.state == "done":
        return output_of(None if part.output is UNSET else part.output)
    if part.error is not None:
        return ToolOutput({"content": [{"type": "text", "text": part.error}], "isError": True})
    return error_output("cancelled", f"{part.name}: it did not finish")
