"""A conversation as OpenAI chat-completions messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...healing import Healed, ProviderExport, heal, report
from ...model import AgentMessage, Json, ReasoningPart, TextPart, ToolPart
from ..system_prompt import SystemPrompt, SystemPrompts, by_place
from ..turns import Step, outcome_text, said, steps
from .arguments import arguments_of, openai_metadata
from .rules import OPENAI

__all__ = ("to_openai_chat",)


def to_openai_chat(messages: Iterable[AgentMessage], *, system: SystemPrompts = None) -> ProviderExport:
    """A conversation as the ``messages`` of a chat-completions request, healed.

    One assistant message for each model step: its text, its calls, and then their results; what follows a
    call opens the next one, and messages are never joined. ``system`` is one text for the start, or the
    prompts of ``system_prompts(session.metadata)``, which go back to their places. Reasoning is left out:
    this API takes none.
    """
    row = tuple(messages)
    healing = heal(row, OPENAI)
    healed = list(healing.healed)
    prompts = by_place(system, row, healed)
    out = [_prompt(prompt) for prompt in prompts.pop(None, ())]
    for message in healing.messages:
        out += _user(message, healed) if message.role == "user" else _assistant(message, healed)
        out += [_prompt(prompt) for prompt in prompts.pop(message.id, ())]
    if not out:
        healed.append(report("nothing-to-send", ""))
    return ProviderExport(out, tuple(healed))


def _prompt(prompt: SystemPrompt) -> dict[str, Json]:
    out: dict[str, Json] = {"role": prompt.role, "content": prompt.content}
    return out if prompt.name is None else {**out, "name": prompt.name}


def _user(message: AgentMessage, healed: list[Healed]) -> Iterator[dict[str, Json]]:
    if not message.parts:
        healed.append(report("empty-message", message.id))
        return
    text = said(message)
    if not text:
        healed.append(report("empty-text", message.id, to="sent as it is"))
    yield {"role": "user", "content": text}


def _assistant(message: AgentMessage, healed: list[Healed]) -> list[dict[str, Json]]:
    if any(isinstance(part, ReasoningPart) for part in message.parts):
        healed.append(report("reasoning-left-out", message.id))
    out = [row for step in steps(message.parts) for row in _step(step)]
    if not out:
        healed.append(report("empty-message", message.id))
    return out


def _step(step: Step) -> Iterator[dict[str, Json]]:
    texts = [part.text for part in step.lead if isinstance(part, TextPart)]
    if not texts and not step.calls:
        return
    # No text part and an empty one are two things in this API: null and "".
    content = "\n".join(filter(None, texts)) if texts else None
    answer: dict[str, Json] = {"role": "assistant", "content": content}
    if step.calls:
        answer["tool_calls"] = [_call(call) for call in step.calls]
    yield answer
    for call in step.calls:
        yield {"role": "tool", "tool_call_id": call.id, "content": outcome_text(call)}


def _call(call: ToolPart) -> dict[str, Json]:
    if openai_metadata(call).get("type") == "custom" and isinstance(call.input, str):
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.input}}
    function = {"name": call.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}
