"""OpenAI's rules for chat messages: as limits that healing keeps, and as a checker of finished messages.

The rules are those whose breach the API answers with status 400: the schema of the API reference, "an
assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
"string too long … maximum length 40" for call ids, and the pattern of function names. One more is ours: ids
are unique in the whole conversation, because gateways to other providers pair by id alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ...healing import Rules, Violation
from ...json_values import fits_unicode, is_list, is_object
from ...model import Json

__all__ = ("OPENAI", "check_openai_chat")

OPENAI = Rules(
    illegal_in_id="[\ud800-\udfff]",
    id_length=40,
    illegal_in_name="[^a-zA-Z0-9_-]",
    name_length=64,
    object_input=False,
)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES = ("system", "developer", "user", "assistant", "tool")


def check_openai_chat(request: Mapping[str, Json] | Sequence[Json]) -> tuple[Violation, ...]:
    """Which rules a request ``{messages}``, or its messages alone, break; none for what the provider takes.

    The paths start at what was given: ``$.messages[0]`` in a request, ``$[0]`` in messages. Never raises on JSON.
    """
    if not isinstance(request, Mapping):
        return tuple(_check(request, "$"))
    messages: Json = request.get("messages")
    return tuple(_check(messages if is_list(messages) else (), "$.messages"))


def _check(messages: Sequence[Json], root: str) -> Iterator[Violation]:
    if not messages:
        yield Violation("not-empty", root, "there is no message")
    seen: set[str] = set()
    waiting: dict[str, str] = {}  # the calls that the next tool messages must answer: id -> where it was made
    for index, body in enumerate(messages):
        path = f"{root}[{index}]"
        if not is_object(body):
            yield Violation("shape", path, "a message is an object")
            continue
        role = body.get("role")
        if role not in _ROLES:
            yield Violation("role", path, f"unknown role {role!r}")
        if role != "tool":
            yield from _unanswered(waiting)
            waiting = {}
        if fits_unicode(body) is not body:
            yield Violation("unicode", path, "a lone half of a UTF-16 pair")
        yield from _content(body, path)
        if role == "tool":
            call_id = body.get("tool_call_id")
            if not isinstance(call_id, str) or waiting.pop(call_id, None) is None:
                yield Violation("result-without-call", path, f"no call before it waits for {call_id!r}")
        elif role == "assistant":
            yield from _calls(body, path, seen, waiting)
        elif "tool_calls" in body:
            yield Violation("shape", path, "only the assistant calls tools")
    yield from _unanswered(waiting)


def _unanswered(waiting: dict[str, str]) -> Iterator[Violation]:
    for call_id, path in waiting.items():
        yield Violation("call-without-result", path, f"the call {call_id!r} is not answered right after it")


def _content(body: dict[str, Json], path: str) -> Iterator[Violation]:
    content = body.get("content")
    if isinstance(content, str) or (is_list(content) and content):
        return
    said_otherwise = body.get("tool_calls") or body.get("refusal") or body.get("audio") or body.get("function_call")
    if content is None and body.get("role") == "assistant" and said_otherwise:
        return
    yield Violation("content", f"{path}.content", "neither a text nor a list of parts")


def _calls(body: dict[str, Json], path: str, seen: set[str], waiting: dict[str, str]) -> Iterator[Violation]:
    calls = body.get("tool_calls", ...)
    if calls is ...:
        return
    if not is_list(calls) or not calls:
        yield Violation("shape", f"{path}.tool_calls", "a list of calls that is not empty")
        return
    for index, call in enumerate(calls):
        place = f"{path}.tool_calls[{index}]"
        if not is_object(call):
            yield Violation("shape", place, "a call is an object")
            continue
        call_id = call.get("id")
        if not isinstance(call_id, str) or not 1 <= len(call_id) <= 40:
            yield Violation("id", f"{place}.id", "a text of 1 to 40 characters")
            continue
        if call_id in seen:
            yield Violation("id-unique", f"{place}.id", f"another call has the id {call_id!r}")
        seen.add(call_id)
        waiting[call_id] = place
        yield from _function(call, place)


def _function(call: dict[str, Json], place: str) -> Iterator[Violation]:
    kind, payload = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
    function = call.get(kind)
    if call.get("type") != kind or not is_object(function):
        yield Violation("shape", place, 'type "function" or "custom", with the member of that name')
        return
    name = function.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        yield Violation("name", f"{place}.{kind}.name", "1 to 64 of a-z, A-Z, 0-9, _ and -")
    if not isinstance(function.get(payload), str):
        yield Violation("shape", f"{place}.{kind}.{payload}", "a text")
