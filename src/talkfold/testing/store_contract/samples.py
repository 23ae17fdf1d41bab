"""A conversation in which everything happens, and bodies that a careless store would change."""

from __future__ import annotations

from ...actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
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
from ...model import SessionState, ToolPart

__all__ = ("CONVERSATION", "ODD_BODIES", "has_open_calls")

CONVERSATION: tuple[SessionAction, ...] = (
    Send("u1", "Is it cold in Oslo?"),
    Part(MessageStart("a1")),
    Part(Reasoning("a1", "The tool knows.", {"signature": "c2lnbmVk"})),
    Part(TextDelta("a1", "Let me ")),
    Part(TextDelta("a1", "look.")),
    Part(ToolCall("a1", "c1", "weather", {"city": "Oslo", "days": [1, 2]})),
    ToolPhase("weather", "awaiting-confirmation", "May I ask the weather service?"),
    ToolPhase("weather", "running"),
    Part(ToolResult("c1", {"content": [{"type": "text", "text": "4 °C"}], "_meta": {"size": 10**30}})),
    Part(ToolCall("a1", "c2", "delegate_to_critic", {})),
    Part(MessageStart("n1"), within="c2"),
    Part(TextDelta("n1", "Looks right"), within="c2"),
    Part(ToolCall("n1", "c1", "search", {"q": "Oslo"}), within="c2"),
    Part(ToolError("c1", "no network"), within="c2"),
    Part(Finish("stop"), within="c2"),
    Part(ToolResult("c2", None)),
    Part(StepFinish(1)),
    Part(TextDelta("a1", "It has 4 °C.")),
    Part(Finish("stop")),
    Send("u2", "And tomorrow?"),
    Part(MessageStart("a2")),
    Part(ToolCall("a2", "c3", "weather", {})),
    Part(RunError("overloaded", "rate_limited")),
    Retry(),
    Part(MessageStart("a3")),
    Part(ToolCall("a3", "c4", "delegate_to_critic", {})),
    Part(MessageStart("n2"), within="c4"),
    Part(ToolCall("n2", "c5", "search", {}), within="c4"),
    Part(RunError("nested only"), within="c4"),
    Stop(),
    Part(ToolResult("c4", "late, but true")),
    Send("u3", "Once more?"),
    Part(MessageStart("a4")),
    Part(ToolCall("a4", "c6", "weather", {})),
    Part(Finish("max-steps")),
    Reset(),
    Retry(),
    Send("u4", "Hello again"),
)
"""Every action and every stream part, in an order whose prefixes include open calls in all three statuses."""

ODD_BODIES: tuple[bytes, ...] = (
    rb'{"type":"send","id":"u","text":"NUL \u0000 and escaped \u00e9"}',
    '{"type":"send","id":"u","text":"raw é, 🎈 and \u2028"}'.encode(),
    rb'{"type":"send","id":"u","text":"half a pair \ud83d"}',
    rb'{"type":"part","part":{"type":"text-delta","messageId":"a","delta":"\ude00 the other half"}}',
    b'{ "text" : "spaced,  and in another order" , "id":"u" , "type" : "send" }',
    b'{"type":"send","id":"u","text":"unknown fields","later":{"version":[2.50,null]},"\\ud83d":1}',
    b'{"type":"part","part":{"type":"tool-call","messageId":"a","id":"c","name":"n","input":'
    b'{"big":123456789012345678901234567890,"one":1.0,"z":-0.0,"e":1E5,"a":{"":[[]]},"same":"/\\/"}}}',
    b'{"type":"part","part":{"type":"tool-result","id":"c","output":null,"note":"kept"},"within":"d"}',
)
"""JSON of actions; the log must give every one back byte for byte."""


def has_open_calls(state: SessionState) -> bool:
    """Whether a call is running or awaiting, at any depth."""
    pending = list(state.messages)
    while pending:
        for part in pending.pop().parts:
            if isinstance(part, ToolPart):
                if part.state in ("running", "awaiting-confirmation"):
                    return True
                if part.agent is not None:
                    pending.extend(part.agent.messages)
    return False
