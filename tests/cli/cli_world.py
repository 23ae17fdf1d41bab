"""What the tests of the command line run on: conversations, and how a command ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

ORDER = [
    {"type": "send", "id": "u-1", "text": "Two blue mugs, please."},
    {"type": "part", "part": {"type": "message-start", "messageId": "a-1"}},
    {"type": "part", "part": {"type": "text-delta", "messageId": "a-1", "delta": "I look "}},
    {"type": "part", "part": {"type": "text-delta", "messageId": "a-1", "delta": "for mugs."}},
    {
        "type": "part",
        "part": {"type": "tool-call", "messageId": "a-1", "id": "c1", "name": "find", "input": {"q": "mug"}},
    },
    {"type": "part", "part": {"type": "tool-result", "id": "c1", "output": {"found": 2}}},
    {"type": "part", "part": {"type": "text-delta", "messageId": "a-1", "delta": "There are two."}},
    {"type": "part", "part": {"type": "tool-call", "messageId": "a-1", "id": "c2", "name": "pay", "input": {}}},
    {"type": "stop"},
]
"""A run that was stopped while a call was open: what Retry sends ends with the call c1."""

CHATS = [
    {
        "id": "chat-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Is there a blue mug?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "k1", "type": "function", "function": {"name": "find", "arguments": '{"q": "mug"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "k1", "content": "yes, 31"},
            {"role": "assistant", "content": "Yes."},
        ],
    },
    {"id": "chat-2", "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]},
]


def jsonl(rows: list[Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def jsonl(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Talkfold = Callable[..., Result]
