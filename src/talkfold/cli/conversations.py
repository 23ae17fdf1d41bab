"""Conversations on their way into a database: read from a file in any of its forms, stored one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ..codec import TornLine, decode_json, read_jsonl
from ..errors import AmbiguousSession, InvalidAction, SessionErased, SessionNotFound
from ..log import Entry
from ..model import Json
from ..protocols.native import read_sessions
from ..protocols.openai_chat import from_openai_chat
from ..store.protocol import Session, SessionStore

__all__ = ("READERS", "Conversation", "ImportFormat", "Read", "Reader", "is_taken", "store_conversation")

ImportFormat: TypeAlias = Literal["native", "openai"]


class Conversation(Struct, frozen=True):
    """One conversation of a file.

    ``end`` is the place in the file where it ends, in bytes; ``notes`` say what could not be carried over one
    to one. Without an ``id`` it gets a new one.
    """

    id: str | None
    entries: tuple[Entry, ...]
    end: int
    owner: str | None = None
    title: str | None = None
    metadata: dict[str, Json] | None = None
    notes: tuple[str, ...] = ()


Read: TypeAlias = Iterator[Conversation | TornLine]


# ---- chat-completions -----------------------------------------------------------------------------------


class _Chat(Struct):
    id: str
    messages: list[Json]
    title: str | None = None


def _chats(stream: BinaryIO) -> Read:
    """``{id, messages}`` lines, the messages in the chat-completions form; a ``title`` is taken too."""

    def conversation(line: int, data: bytes) -> Conversation:
        del line
        try:
            given = msgspec.convert(decode_json(data, "conversation"), _Chat)
        except msgspec.ValidationError as error:
            raise InvalidAction("conversation {id, messages}", str(error)) from error
        try:
            chat = from_openai_chat(given.messages)
        except InvalidAction as error:
            raise InvalidAction(error.what, error.reason, "$.messages" + error.path[1:]) from error
        return Conversation(
            given.id,
            chat.entries,
            stream.tell(),
            title=given.title,
            metadata=chat.metadata or None,
            notes=tuple(f"message {note.message}: {note.text}" for note in chat.notes),
        )

    return read_jsonl(stream, conversation)


# ---- native ---------------------------------------------------------------------------------------------


def _native_sessions(stream: BinaryIO) -> Read:
    """Whole sessions as ``talkfold export`` writes them, or the actions of one session without a name."""
    for session in read_sessions(stream):
        conversation = Conversation(None, session.entries, stream.tell())
        if (header := session.header) is not None:
            conversation = msgspec.structs.replace(
                conversation,
                id=header.id,
                owner=header.owner,
                title=header.title,
                metadata=header.metadata,
            )
        yield conversation
        if session.torn is not None:
            yield session.torn


Reader: TypeAlias = Callable[[BinaryIO], Read]
"""Reads the conversations of a seekable stream. Raises DamagedLine."""

READERS: Mapping[ImportFormat, Reader] = {"native": _native_sessions, "openai": _chats}
"""The forms that can be imported."""

# ---- into the store -------------------------------------------------------------------------------------


async def is_taken(store: SessionStore, conversation: Conversation) -> bool:
    """Whether its id is used already by its owner, or was once."""
    if conversation.id is None:
        return False
    try:
        session = await store.get(conversation.id, owner=conversation.owner)
    except SessionNotFound:
        return False
    except (SessionErased, AmbiguousSession):
        return True
    return session.owner == conversation.owner


async def store_conversation(store: SessionStore, conversation: Conversation) -> Session:
    """Store one conversation, session and log in one transaction. Raises SessionExists, SessionErased."""
    return await store.create(
        conversation.id,
        owner=conversation.owner,
        title=conversation.title,
        metadata=conversation.metadata,
        actions=conversation.entries,
    )
