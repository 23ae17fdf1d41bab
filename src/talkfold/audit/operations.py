"""What a diff is made of: operations as data, which travel as JSON.

Rows (messages of a level, parts of a message) are changed all at once. ``at`` is a place in the row before, from 0,
for what was there; ``to`` is a place in the row after, for what is new or has moved. What no operation names stays
in its order and fills the places that are left. Every operation says what was there before, so a diff can be read,
and told, without the states.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Struct

from ..codec import MAX_DOCUMENT_BYTES, MAX_DOCUMENT_DEPTH
from ..codec.text import checked, decoded, encoded
from ..errors import InvalidAction, TooLarge
from ..model import AgentMessage, AgentPart, AgentRun, Json, Role, SessionError
from .edits import JsonEdit, TextEdit

__all__ = (
    "CallPlace",
    "ChangeCall",
    "ChangeMessage",
    "ChangeReasoning",
    "ChangeText",
    "Changed",
    "Diff",
    "ErrorChanged",
    "InsertMessage",
    "InsertPart",
    "LevelDiff",
    "MessageOperation",
    "MoveMessage",
    "MovePart",
    "PartOperation",
    "RemoveMessage",
    "RemovePart",
    "RunChanged",
    "decode_diff",
    "encode_diff",
)


class Changed(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A word or a short text that is another now; not set: there was none, or is none."""

    before: str | None = None
    after: str | None = None


class ErrorChanged(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The session's error that is another now; not set: there was none, or is none."""

    before: SessionError | None = None
    after: SessionError | None = None


class RunChanged(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A nested run that came, went, or is another agent's; one of the same agent is a level of its own."""

    before: AgentRun | None = None
    after: AgentRun | None = None


# ---- parts ------------------------------------------------------------------------------------------------


class RemovePart(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="remove-part"):
    """A part went."""

    at: int
    part: AgentPart


class InsertPart(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="insert-part"):
    """A part came."""

    to: int
    part: AgentPart


class MovePart(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="move-part"):
    """A call stands elsewhere among the parts of its message."""

    at: int
    to: int
    id: str


class ChangeText(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="change-text"):
    """The text of a text part is another."""

    at: int
    edits: tuple[TextEdit, ...]


class ChangeReasoning(
    Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="change-reasoning"
):
    """The text or the metadata of a reasoning part is another."""

    at: int
    edits: tuple[TextEdit, ...] = ()
    provider_metadata: tuple[JsonEdit, ...] = ()


class ChangeCall(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="change-call"):
    """Fields of a call are others. ``id`` is the call's; ``name`` is the tool's, as it was before."""

    at: int
    id: str
    name: str
    renamed: Changed | None = None
    state: Changed | None = None
    input: tuple[JsonEdit, ...] = ()
    output: tuple[JsonEdit, ...] = ()
    error: Changed | None = None
    prompt: Changed | None = None
    agent: RunChanged | None = None
    provider_metadata: tuple[JsonEdit, ...] = ()


PartOperation: TypeAlias = RemovePart | InsertPart | MovePart | ChangeText | ChangeReasoning | ChangeCall

# ---- messages ---------------------------------------------------------------------------------------------


class RemoveMessage(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="remove-message"):
    """A message went."""

    at: int
    message: AgentMessage


class InsertMessage(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="insert-message"):
    """A message came."""

    to: int
    message: AgentMessage


class MoveMessage(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="move-message"):
    """A message stands elsewhere in its row."""

    at: int
    to: int
    id: str
    role: Role


class ChangeMessage(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="change-message"):
    """Parts of a message are others."""

    at: int
    id: str
    role: Role
    parts: tuple[PartOperation, ...]


MessageOperation: TypeAlias = RemoveMessage | InsertMessage | MoveMessage | ChangeMessage

# ---- levels -----------------------------------------------------------------------------------------------


class CallPlace(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A delegate call, before: the index of its level in the diff, of its message, of its part; its id and name."""

    level: int
    message: int
    part: int
    id: str
    name: str


class LevelDiff(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What changed in one row of messages: that of the nested run behind ``call``, or the session's own.

    Levels are a list and not a tree, so that runs may nest as deep as they like. A level without operations is
    there when one inside it has some.
    """

    call: CallPlace | None = None
    messages: tuple[MessageOperation, ...] = ()


class Diff(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What changed between two states. The levels stand from the outside in; the first is the session's own.

    False when nothing changed.
    """

    status: Changed | None = None
    error: ErrorChanged | None = None
    levels: tuple[LevelDiff, ...] = ()

    def __bool__(self) -> bool:
        return self.status is not None or self.error is not None or bool(self.levels)


# ---- JSON -------------------------------------------------------------------------------------------------

_DIFF = msgspec.json.Decoder(Diff)
_FREE: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def encode_diff(diff: Diff, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DOCUMENT_DEPTH) -> bytes:
    """A diff as JSON that decodes to an equal diff. Raises TooDeep, TooLarge."""
    body = encoded(diff, "diff", max_depth)
    if len(body) > max_bytes:
        raise TooLarge("diff", len(body), max_bytes)
    return body


def decode_diff(data: bytes | str, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DOCUMENT_DEPTH) -> Diff:
    """A diff from its JSON. Raises TooLarge, TooDeep, InvalidJson, InvalidAction (with the path)."""
    body = checked(data, "diff", max_bytes, max_depth)
    try:
        return _DIFF.decode(body)
    except (msgspec.DecodeError, RecursionError):
        # Lone surrogates, and numbers that only Python reads. Read as free JSON first, no key is lost.
        document = decoded(_FREE, body, "diff", max_depth)
    try:
        return msgspec.convert(document, Diff)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `")
        raise InvalidAction("diff", reason[0].lower() + reason[1:], path.removesuffix("`") or "$") from None
