"""``import``: conversations into the database."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from ..codec import TornLine
from ..errors import DamagedLine, InvalidAction, InvalidArgument, SessionExists
from ..model import Json
from ..redaction import Redaction
from ..store.protocol import Session, SessionStore
from .conversations import READERS, Conversation, ImportFormat, is_taken, store_conversation
from .opening import opened
from .options import RowForm, Source, Where
from .output import Column, document, record, say, table
from .progress import progress
from .source import source, warn_torn
from .wording import count

__all__ = ("Imported", "import_conversations", "import_file")


class Imported(Struct, frozen=True):
    """A conversation that is in the database now, and what the import has to say about it."""

    session: Session
    notes: tuple[str, ...]

    @property
    def json(self) -> dict[str, Json]:
        """As a row of the answer."""
        return {"id": self.session.id, "number": self.session.number, "notes": list(self.notes)}


_COLUMNS: Sequence[Column[Imported]] = (
    ("id", lambda it: it.session.id),
    ("actions", lambda it: str(it.session.number)),
    ("status", lambda it: it.session.status),
    ("notes", lambda it: str(len(it.notes) or "-")),
)


async def import_file(
    file: Source,
    /,
    *,
    format_: Annotated[
        ImportFormat, Parameter(name="--format", help="The form of the file.", show_default=True)
    ] = "native",
    skip_existing: Annotated[
        bool, Parameter(help="Leave out conversations whose id is used already, and take the others.")
    ] = False,
    redact: Annotated[
        tuple[str, ...],
        Parameter(
            help="What this regular expression finds in a text is stored as [redacted]; may be repeated.",
            allow_leading_hyphen=True,
        ),
    ] = (),
    redact_field: Annotated[
        tuple[str, ...],
        Parameter(
            help="The value of every field of this name is stored as [redacted]; may be repeated.",
        ),
    ] = (),
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Take conversations from a file into the database.

    The file is JSON lines. `native` is what `talkfold export` writes; a file of bare actions is one new
    session. `openai` is one `{id, messages}` a line in the chat-completions form; the ids become the sessions'
    ids. With `--owner` the sessions are that owner's.

    The whole file is read and checked before anything is stored: a damaged line, or an id that is used
    already, and nothing is taken. Then each log is stored in one transaction.

    With `--redact` and `--redact-field` no secret that they find is stored; provider metadata stay as they are.
    """
    redaction = _redaction(redact, redact_field)
    with source(file) as stream, _seekable(stream) as whole:
        async with opened(where, create=True, redact=redaction) as store:
            imported, skipped = await import_conversations(
                store, whole, format_, owner=where.owner, skip_existing=skip_existing
            )
    if form.json:
        document({"imported": [each.json for each in imported], "skipped": skipped})
    elif form.jsonl:
        for each in imported:
            record(each.json)
    elif imported:
        table(_COLUMNS, imported, elastic="id", styles={"id": "bold"})
    for each in imported:
        for note in each.notes:
            say(f"{each.session.id}: {note}")
    actions = sum(each.session.number for each in imported)
    say(
        f"Imported {count(len(imported), 'conversation')} with {count(actions, 'action')}"
        + (f"; skipped {len(skipped)} that were there already." if skipped else ".")
    )


def _redaction(patterns: Sequence[str], fields: Sequence[str]) -> Redaction | None:
    """What the options ask for. Raises InvalidArgument, which names the option."""
    names = {"patterns": "--redact", "fields": "--redact-field"}
    try:
        return Redaction(patterns=patterns, fields=fields) if patterns or fields else None
    except InvalidArgument as error:
        raise InvalidArgument(names[error.name], error.reason) from None


_OTHER_FORM = (
    "Nothing was taken from the file. Where a line is a whole conversation, {id, messages}, say --format openai."
)


async def import_conversations(
    store: SessionStore,
    stream: BinaryIO,
    format_: ImportFormat,
    *,
    owner: str | None = None,
    skip_existing: bool = False,
) -> tuple[list[Imported], list[str]]:
    """Store the conversations of a seekable stream. Gives what was stored, and the ids that were skipped.

    Raises DamagedLine, SessionExists, InvalidArgument (an id twice in the file) before anything is stored.
    """
    try:
        skipped = await _refusals(store, _conversations(stream, format_, owner), skip_existing)
    except DamagedLine as error:
        if error.line == 1 and format_ == "native" and isinstance(error.reason, InvalidAction):
            error.next_step = _OTHER_FORM
        raise
    size = stream.tell()
    stream.seek(0)
    imported: list[Imported] = []
    with progress("importing", size) as advance:
        for conversation in _conversations(stream, format_, owner, quiet=True):
            if conversation.id is None or conversation.id not in skipped:
                session = await store_conversation(store, conversation)
                imported.append(Imported(session, conversation.notes))
            advance(conversation.end)
    return imported, list(skipped)


def _conversations(
    stream: BinaryIO, format_: ImportFormat, owner: str | None, *, quiet: bool = False
) -> Iterator[Conversation]:
    for item in READERS[format_](stream):
        if not isinstance(item, TornLine):
            yield item if owner is None else msgspec.structs.replace(item, owner=owner)
        elif not quiet:
            warn_torn(item)


async def _refusals(store: SessionStore, conversations: Iterator[Conversation], skip_existing: bool) -> dict[str, None]:
    """Go through the whole file once: whatever is wrong with it shows here. Gives the ids to be skipped."""
    seen: set[tuple[str, str | None]] = set()
    skipped: dict[str, None] = {}
    for conversation in conversations:
        if conversation.id is None:
            continue
        if (conversation.id, conversation.owner) in seen:
            raise InvalidArgument("FILE", f"the id {conversation.id!r} is in it twice")
        seen.add((conversation.id, conversation.owner))
        if await is_taken(store, conversation):
            if not skip_existing:
                error = SessionExists(conversation.id)
                error.next_step = "Nothing was imported. With --skip-existing the other conversations are taken."
                raise error
            skipped[conversation.id] = None
    return skipped


@contextmanager
def _seekable(stream: BinaryIO) -> Generator[BinaryIO]:
    """The stream itself, or a copy of it on disk when it can be read only once."""
    if stream.seekable():
        yield stream
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield copy
