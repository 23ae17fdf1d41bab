"""Healing: the same conversation, fit for a model provider.

A provider refuses a conversation for good when a call has no result, when two calls share an id, or when one
string is not Unicode. The log may hold all of that, because it holds what happened. So nothing is repaired in
the log: every export heals a copy, and says what it healed.

After healing every call of the conversation has an id of its own and exactly one outcome: the output of a
call that is done, the text of one that failed or was cancelled. Healing what is healed changes nothing.
Nested runs of sub-agents are not touched: a provider sees the delegate call and its outcome only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import replace

from .json_values import fits_unicode, is_object
from .model import AgentMessage, AgentPart, Json, ReasoningPart, TextPart, ToolPart

__all__ = (
    "FAILED_SILENTLY",
    "NEUTRAL",
    "NO_RESULT",
    "HealCode",
    "Healed",
    "Healing",
    "ProviderExport",
    "Rules",
    "Violation",
    "heal",
    "report",
)

NO_RESULT = "No result: the call did not finish."
"""The outcome of a call that has none of its own. Neutral: nobody knows here who or what ended it."""

FAILED_SILENTLY = "The call failed and gave no message."
"""The outcome of a failed call whose error text is blank."""

HealCode: TypeAlias = Literal[
    "assistant-first",
    "cancelled-call",
    "empty-id",
    "empty-message",
    "empty-text",
    "illegal-id",
    "illegal-name",
    "illegal-picture",
    "input-wrapped",
    "lone-surrogate",
    "misplaced-part",
    "no-error-text",
    "no-output",
    "nothing-to-send",
    "open-call",
    "reasoning-left-out",
    "reused-id",
    "system-left-out",
    "system-moved",
    "thinking-at-end",
    "trailing-space",
    "turns-merged",
    "unsigned-reasoning",
]

_SENTENCES: Mapping[HealCode, str] = {
    "assistant-first": "The conversation starts with the assistant; a neutral user message stands before it.",
    "cancelled-call": "The cancelled call {call} has no text of its own; it got a neutral outcome.",
    "empty-id": "A call without an id is sent as {to}.",
    "empty-message": "The message says nothing and calls nothing; it is left out.",
    "empty-text": "A text that says nothing is {to}.",
    "illegal-id": "The provider does not take the id {call}; the call is sent as {to}.",
    "illegal-name": "The provider does not take the tool name of the call {call}; it is sent as {to}.",
    "illegal-picture": "The provider does not take a picture in the result of the call {call}; it is sent as its JSON.",
    "input-wrapped": 'The input of the call {call} is no object; it is sent as {{"input": …}}.',
    "lone-surrogate": "Halves of UTF-16 pairs, which the provider refuses, are sent as U+FFFD.",
    "misplaced-part": "A part of the type {to} stands in a message of the person; it is left out.",
    "no-error-text": "The failed call {call} has no text; it got a neutral one.",
    "no-output": "The call {call} is done without an output; it is sent with an empty one.",
    "nothing-to-send": "Nothing of the conversation can be sent; the provider takes no request without a message.",
    "open-call": "The call {call} never got a result; it got a neutral outcome.",
    "reasoning-left-out": "The provider takes no reasoning back; it is left out.",
    "reused-id": "Another call has the id {call} already; this one is sent as {to}.",
    "system-left-out": "A system prompt stood after a message that is not here; it is left out.",
    "system-moved": "A system prompt from the middle is sent with the others at the start.",
    "thinking-at-end": "The provider takes no message that ends with thinking; the thinking is left out.",
    "trailing-space": "The white space at the end of the last message is left out.",
    "turns-merged": "Messages of one role in a row are sent as one.",
    "unsigned-reasoning": "Reasoning that the provider did not sign, or not as it is here, is left out.",
}


class Healed(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that an export changed: a stable code, where, and a sentence for people."""

    code: HealCode
    message_id: str
    text: str
    call_id: str | None = None


class Healing(Struct, frozen=True):
    """A healed conversation: as many messages as came in, with the same ids, and what was healed in them."""

    messages: tuple[AgentMessage, ...]
    healed: tuple[Healed, ...]


class ProviderExport(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A conversation as a provider spells it, and what had to be healed.

    ``messages`` are the provider's own JSON objects. ``system`` is set where the provider wants the system
    prompt beside the messages.
    """

    messages: list[dict[str, Json]]
    healed: tuple[Healed, ...]
    system: str | None = None

    @property
    def request(self) -> dict[str, Json]:
        """What this export contributes to a request's body: ``{system?, messages}``."""
        body: dict[str, Json] = {"messages": self.messages}
        return body if self.system is None else {"system": self.system, **body}


class Violation(Struct, frozen=True, rename="camel"):
    """A rule of a provider that a request breaks: the rule's stable name, a JSONPath, and a sentence."""

    rule: str
    path: str
    text: str


class Rules(Struct, frozen=True):
    """What a provider takes in the parts of a conversation.

    ``illegal_in_id`` and ``illegal_in_name`` match a character that is refused; lengths are in characters,
    ``None`` for no limit. ``object_input``: the input of a call travels as a JSON object (else as a text of
    any content).
    """

    illegal_in_id: str
    id_length: int | None
    illegal_in_name: str
    name_length: int | None
    object_input: bool


NEUTRAL = Rules(illegal_in_id="(?!)", id_length=None, illegal_in_name="(?!)", name_length=None, object_input=False)
"""No provider's rules: only one id and one outcome for every call, and text that is Unicode."""


def report(code: HealCode, message_id: str, call_id: str | None = None, *, to: str | None = None) -> Healed:
    """The record of one change, with its sentence. ``to`` names what is sent instead."""
    return Healed(code, message_id, _SENTENCES[code].format(call=repr(call_id), to=to), call_id)


def heal(messages: Iterable[AgentMessage], rules: Rules = NEUTRAL) -> Healing:
    """The conversation with every call once and with exactly one outcome. Unchanged messages are shared.

    Pure and idempotent: ``heal(heal(x).messages)`` heals nothing. Order, roles and message ids stay.
    """
    row = tuple(messages)
    healed: list[Healed] = []
    ids = _Ids(row, rules)
    kept = tuple(_heal_message(message, rules, ids, healed) for message in row)
    return Healing(kept, tuple(healed))


def _heal_message(message: AgentMessage, rules: Rules, ids: _Ids, healed: list[Healed]) -> AgentMessage:
    parts = tuple(_heal_parts(message, rules, ids, healed))
    same = len(parts) == len(message.parts) and all(map(_is, parts, message.parts))
    return message if same else replace(message, parts=parts)


def _is(a: object, b: object) -> bool:
    return a is b


def _heal_parts(message: AgentMessage, rules: Rules, ids: _Ids, healed: list[Healed]) -> Iterator[AgentPart]:
    for part in message.parts:
        match part:
            case TextPart():
                text = fits_unicode(part.text)
                if text != part.text:
                    healed.append(report("lone-surrogate", message.id))
                    part = replace(part, text=text)
                yield part
            case _ if message.role == "user":
                # No fold puts one there, but messages may come from a client: only the person speaks here.
                kind = "tool" if isinstance(part, ToolPart) else "reasoning"
                healed.append(report("misplaced-part", message.id, to=kind))
            case ReasoningPart():
                yield part
            case ToolPart():
                yield _heal_call(part, message.id, rules, ids, healed)


# ---- calls ------------------------------------------------------------------------------------------------


def _heal_call(part: ToolPart, message_id: str, rules: Rules, ids: _Ids, healed: list[Healed]) -> ToolPart:
    changes: dict[str, Json] = {}

    def change(code: HealCode, to: str | None = None, **fields: Json) -> None:
        changes.update(fields)
        healed.append(report(code, message_id, part.id, to=to))

    given, why = ids.give(part.id)
    if why is not None:
        change(why, given, id=given)
    name = _legal(part.name, rules.illegal_in_name, rules.name_length, "tool")
    if name != part.name:
        change("illegal-name", name, name=name)

    match part.state:
        case "running" | "awaiting-confirmation":
            change("open-call", state="cancelled", error=NO_RESULT, output=UNSET, prompt=None)
        case "cancelled" if _blank(part.error):
            change("cancelled-call", error=NO_RESULT)
        case "error" if _blank(part.error):
            change("no-error-text", error=FAILED_SILENTLY)
        case "done" if part.output is UNSET:
            change("no-output", output={"content": []})
        case _:
            pass

    if rules.object_input and not is_object(part.input):
        blank = part.input is None or part.input == ""
        change("input-wrapped", input={} if blank else {"input": part.input})
    # An input that travels as a text escapes lone halves by itself.
    travelling = ("input", "output", "error") if rules.object_input else ("output", "error")
    values = {field: changes.get(field, getattr(part, field)) for field in travelling}
    halved = {
        field: whole
        for field, value in values.items()
        if value is not UNSET and (whole := fits_unicode(value)) is not value
    }
    if halved:
        change("lone-surrogate", **halved)
    return replace(part, **changes) if changes else part


def _blank(text: str | None) -> bool:
    return text is None or not text.strip()


def _legal(text: str, illegal: str, length: int | None, instead: str) -> str:
    return re.sub(illegal, "_", text)[:length] or instead


class _Ids:
    """Gives every call of a conversation an id of its own: the first call with an id keeps it, where it is
    legal.

    Deterministic and linear: a new id is the old one with ``-2``, ``-3`` … behind it, never one that another
    call of the conversation came with.
    """

    def __init__(self, messages: Iterable[AgentMessage], rules: Rules) -> None:
        self._rules = rules
        self._came = {part.id for message in messages for part in message.parts if isinstance(part, ToolPart)}
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def give(self, call_id: str) -> tuple[str, HealCode | None]:
        legal = _legal(call_id, self._rules.illegal_in_id, self._rules.id_length, "call")
        if legal == call_id and legal not in self._given:
            self._given.add(legal)
            return legal, None
        why: HealCode = "empty-id" if not call_id else "illegal-id" if legal != call_id else "reused-id"
        number = self._next.get(legal, 1)
        while (fresh := self._numbered(legal, number)) in self._came or fresh in self._given:
            number += 1
        self._next[legal] = number + 1
        self._given.add(fresh)
        return fresh, why

    def _numbered(self, legal: str, number: int) -> str:
        if number == 1:
            return legal
        tail = f"-{number}"
        room = self._rules.id_length
        return (legal if room is None else legal[: room - len(tail)]) + tail
