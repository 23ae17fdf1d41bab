"""System prompts: no part of the conversation that people see, so they are kept in a session's metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import InvalidAction
from ..healing import Healed, report
from ..json_values import fits_unicode, is_object
from ..model import AgentMessage, Json

__all__ = (
    "METADATA_KEY",
    "SystemPrompt",
    "SystemPrompts",
    "as_prompts",
    "by_place",
    "system_prompts",
    "to_metadata",
)

METADATA_KEY = "system"
"""The key of a session's metadata under which its system prompts are kept."""


class SystemPrompt(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Instructions to the model.

    ``content`` is a text or a list of content parts, as it came. ``after`` is the id of the message behind
    which it stood; not set for one that stood before all messages. ``name`` is the author's name, where one
    was given.
    """

    content: str | list[Json]
    role: Literal["system", "developer"] = "system"
    after: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """The content as one text: a line for each text part."""
        if isinstance(self.content, str):
            return self.content
        texts = (part.get("text") for part in self.content if is_object(part))
        return "\n".join(text for text in texts if isinstance(text, str))


SystemPrompts: TypeAlias = str | Sequence[SystemPrompt] | None
"""What exports take: one text, or prompts with their roles and places."""


def as_prompts(system: SystemPrompts) -> tuple[SystemPrompt, ...]:
    """The prompts that an export was given."""
    if system is None:
        return ()
    return (SystemPrompt(system),) if isinstance(system, str) else tuple(system)


def system_prompts(metadata: Mapping[str, Json] | None) -> tuple[SystemPrompt, ...]:
    """The system prompts in a session's metadata. A plain text there is one prompt.

    Raises InvalidAction when what stands under the key is no list of prompts.
    """
    found = (metadata or {}).get(METADATA_KEY)
    if found is None or isinstance(found, str):
        return as_prompts(found)
    try:
        return tuple(msgspec.convert(found, list[SystemPrompt]))
    except msgspec.ValidationError as error:
        raise InvalidAction("list of system prompts", str(error), f"$.metadata.{METADATA_KEY}") from error


def to_metadata(prompts: Sequence[SystemPrompt]) -> dict[str, Json]:
    """The metadata that keeps these prompts: empty when there are none."""
    return {METADATA_KEY: [msgspec.to_builtins(prompt) for prompt in prompts]} if prompts else {}


def by_place(
    system: SystemPrompts, messages: Iterable[AgentMessage], healed: list[Healed]
) -> dict[str | None, list[SystemPrompt]]:
    """The prompts of an export by the message that they follow (``None``: the start), fit for a provider.

    Adds to ``healed`` what was changed, and the prompts whose message is not there.
    """
    ids = {None, *(message.id for message in messages)}
    placed: dict[str | None, list[SystemPrompt]] = {}
    for prompt in as_prompts(system):
        if prompt.after not in ids:
            healed.append(report("system-left-out", prompt.after or ""))
            continue
        fit = replace(prompt, content=fits_unicode(prompt.content), name=fits_unicode(prompt.name))
        if fit != prompt:
            healed.append(report("lone-surrogate", prompt.after or ""))
        placed.setdefault(prompt.after, []).append(fit)
    return placed
