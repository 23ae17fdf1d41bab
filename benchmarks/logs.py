"""Logs to measure with. The same count and seed give the same log on every machine.

Two kinds. ``conversation`` is what an agent chat really writes: mostly text deltas of a few words, with tool
calls and their results, reasoning, a sub-agent now and then, a failing tool, a stop, a retry: 100 to 200 bytes of
JSON an action. ``deltas`` is one text delta after another, each of about 204 bytes of JSON: the plainest row there
is, for the measurements where only the writing counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

import msgspec

from talkfold.actions import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Retry,
    RunError,
    Send,
    SessionAction,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from talkfold.model import Json

__all__ = ("bodies", "conversation", "deltas", "one_message")

WORDS = (
    "the a of to and in that it is was for on with as at by this from your our order cart table mug blue lamp two "
    "shipping delivery address payment refund ticket flight Friday morning available currently updated confirmed "
    "please would could found three results cheaper option total including taxes however before after because"
).split()

TOOLS = ("search_catalog", "get_order", "update_cart", "book_flight", "send_receipt")


def conversation(count: int, seed: int = 1) -> list[SessionAction]:
    """The first ``count`` actions of one long conversation."""
    return list(islice(_turns(Random(seed)), count))


def deltas(count: int, message: str = "msg_0b7c1f64-5d2e-4a8b-9c3f-7e1a2d4f6b80") -> list[SessionAction]:
    """``count`` actions: a message's start, then text deltas of about 204 bytes of JSON each."""
    text = Random(2)
    rest = (Part(TextDelta(message, _prose(text, 94))) for _ in range(count - 1))
    return [Part(MessageStart(message)), *rest]


def one_message(count: int) -> list[SessionAction]:
    """``count`` actions that all go into one message: where a fold that copies text is quadratic."""
    return [Part(MessageStart("m")), *(Part(TextDelta("m", "some more text ")) for _ in range(count - 1))]


def bodies(actions: list[SessionAction]) -> list[bytes]:
    """Each action's JSON."""
    encode = msgspec.json.Encoder().encode
    return [encode(action) for action in actions]


def _turns(random: Random) -> Iterator[SessionAction]:
    while True:
        yield Send(_id(random, "msg"), _prose(random, 120))
        for step in range(random.randint(1, 3)):
            yield from _step(random, step)
        yield from _ending(random)


def _step(random: Random, step: int) -> Iterator[SessionAction]:
    """One model step: thinking, a reply in small pieces, and mostly a tool call at its end."""
    message = _id(random, "msg")
    yield Part(MessageStart(message))
    if random.random() < 0.5:
        yield Part(Reasoning(message, _prose(random, 240), {"signature": f"{random.getrandbits(256):064x}"}))
    yield from map(Part, _reply(random, message, random.randint(20, 80)))
    if random.random() < 0.8:
        yield from _call(random, message)
    yield Part(StepFinish(step))


def _call(random: Random, message: str) -> Iterator[SessionAction]:
    call, kind = _id(random, "call"), random.random()
    if kind < 0.05:
        yield from _delegate(random, message, call)
        return
    name = random.choice(TOOLS)
    yield Part(ToolCall(message, call, name, {"query": _prose(random, 30), "limit": random.randint(1, 20)}))
    if kind < 0.12:
        yield ToolPhase(name, "awaiting-confirmation", _prose(random, 40))
        yield ToolPhase(name, "running")
    if kind < 0.2:
        yield Part(ToolError(call, f"Error: {_prose(random, 60)}"))
    else:
        yield Part(ToolResult(call, _output(random)))


def _delegate(random: Random, message: str, call: str) -> Iterator[SessionAction]:
    """A sub-agent's run: messages of its own, inside the call."""
    nested = _id(random, "msg")
    yield Part(ToolCall(message, call, "delegate_to_researcher", {"task": _prose(random, 80)}))
    inside: list[AgentStreamPart] = [MessageStart(nested), *_reply(random, nested, 15), Finish("stop")]
    yield from (Part(part, within=call) for part in inside)
    yield Part(ToolResult(call, _prose(random, 120)))


def _ending(random: Random) -> Iterator[SessionAction]:
    kind = random.random()
    if kind < 0.03:
        yield Stop()
    elif kind < 0.06:
        yield Part(RunError("the provider closed the connection", "network"))
        yield Retry()
        yield from _step(random, 0)
        yield Part(Finish("stop"))
    else:
        yield Part(Finish("stop"))


def _reply(random: Random, message: str, count: int) -> list[AgentStreamPart]:
    return [TextDelta(message, _prose(random, random.randint(20, 40))) for _ in range(count)]


def _output(random: Random) -> Json:
    found = [{"id": _id(random, "item"), "title": _prose(random, 40), "price": 19.5} for _ in range(3)]
    return {"items": found, "total": random.randint(3, 90)}


def _prose(random: Random, length: int) -> str:
    """Words, cut to exactly ``length`` characters."""
    words: list[str] = random.choices(WORDS, k=length // 4 + 1)
    return " ".join(words)[:length].ljust(length, ".")


def _id(random: Random, kind: str) -> str:
    return f"{kind}_{random.getrandbits(96):024x}"
