"""Whole sessions as JSON lines: talkfold's own file.

A header line opens a session, ``{"talkfold": 1, "session": {"id": …, …}}``, and its log follows, a logged
action a line, each with its envelope. Several sessions may follow each other. A file without headers is the log
of one session without a name; its lines may be bare actions.

Reading proves what it reads: below a header the actions are numbered from 1 without a gap, and every hash
follows from all that stands before it, from the session's id on. So a line that was changed, removed or moved is
found, at the next hash at the latest; the header holds that of the newest action.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

import msgspec
from msgspec import Struct

from ..codec import JsonLine, TornLine, decode_json, decode_line, encode_json, read_jsonl
from ..errors import DamagedLine, InvalidAction
from ..json_values import is_object
from ..log import Entry, LoggedAction, chain_link, chain_start
from ..model import Json

if TYPE_CHECKING:
    from ..store.protocol import Session

__all__ = (
    "FORMAT",
    "NativeLine",
    "NativeSession",
    "SessionHeader",
    "encode_header",
    "header_of",
    "read_native",
    "read_sessions",
)

FORMAT: Final = 1
"""The version of the file's form that is written; only this one can be read."""


class SessionHeader(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a file says of a session before its log. ``created`` is in milliseconds since 1970 (UTC).

    ``number`` and ``digest`` are those of the newest action when the file was written, the digest in hexadecimal
    digits: the log below has at least so many actions, and up to there it is the very same.
    """

    id: str
    owner: str | None = None
    title: str | None = None
    metadata: dict[str, Json] | None = None
    forked_from: str | None = None
    forked_at: int | None = None
    created: int | None = None
    number: int | None = None
    digest: str | None = None


NativeLine: TypeAlias = SessionHeader | JsonLine | TornLine
"""A line: the beginning of a session, an action of its log, or what a crash left of the last line."""


class NativeSession(Struct, frozen=True):
    """A whole session from a file, ready to be appended. ``header`` is ``None`` for a file of actions alone.

    ``torn`` is the end of the file that a crash cut off, if it did: this session lacks what stood there.
    """

    header: SessionHeader | None
    entries: tuple[Entry, ...]
    torn: TornLine | None = None


def header_of(session: Session) -> SessionHeader:
    """The header of a stored session."""
    return SessionHeader(
        id=session.id,
        owner=session.owner,
        title=session.title,
        metadata=session.metadata,
        forked_from=session.forked_from,
        forked_at=session.forked_at,
        created=session.created,
        number=session.number,
        digest=session.digest.hex(),
    )


def encode_header(header: SessionHeader) -> bytes:
    """A header as one line of JSON, without its line end. Raises NotJsonValue (metadata that is no JSON)."""
    return encode_json({"talkfold": FORMAT, "session": msgspec.to_builtins(header)}, "session header")


def read_native(source: bytes | BinaryIO) -> Iterator[NativeLine]:
    """The lines of a file, one at a time and proven as they come; nothing is held but the line itself.

    A torn last line is told by a TornLine, and so are whole lines that are missing at the file's end (its
    size is 0). Raises DamagedLine, with the line's number, for any other line that cannot be read or does not
    follow from those before it.
    """
    proof: _Proof | None = None
    line = 0
    for found in read_jsonl(source, _decode):
        if isinstance(found, TornLine):
            yield found
            return
        line, item = found
        try:
            if isinstance(item, SessionHeader):
                if proof is not None:
                    proof.end()
                proof = _Proof(item)
            elif proof is not None:
                proof.follow(item.logged)
        except InvalidAction as error:
            raise DamagedLine(line, error) from None
        yield item
    if proof is not None and not proof.whole:
        yield TornLine(line + 1, 0)


def read_sessions(source: bytes | BinaryIO) -> Iterator[NativeSession]:
    """The sessions of a file, one at a time, each whole. Raises DamagedLine.

    Envelopes are kept: times, runs, actors and meta. Numbers and hashes are given anew by the store; in a
    session of the same id they come out the same.
    """
    header: SessionHeader | None = None
    entries: list[Entry] = []
    torn: TornLine | None = None
    for item in read_native(source):
        if isinstance(item, TornLine):
            torn = item
        elif isinstance(item, JsonLine):
            entries.append(_entry(item))
        else:
            if header is not None or entries:
                yield NativeSession(header, tuple(entries))
            header, entries = item, []
    if header is not None or entries or torn is not None:
        yield NativeSession(header, tuple(entries), torn)


def _entry(line: JsonLine) -> Entry:
    logged = line.logged
    if logged is None:
        return Entry(line.body)
    return Entry(line.body, time=logged.time, run=logged.run, actor=logged.actor, meta=logged.meta)


# ---- what a line holds ------------------------------------------------------------------------------------


_WHAT = "session header"


def _decode(line: int, data: bytes) -> tuple[int, SessionHeader | JsonLine]:
    # Only a header has both words as fields of its own; an action that speaks of them has a type.
    if b'"talkfold"' in data and b'"session"' in data:
        found = decode_json(data, _WHAT)
        if is_object(found) and found.keys() >= {"talkfold", "session"} and "type" not in found:
            return line, _header(found)
    return line, decode_line(line, data)


def _header(found: dict[str, Json]) -> SessionHeader:
    if found["talkfold"] != FORMAT:
        reason = f"form {found['talkfold']} is unknown, this talkfold reads {FORMAT}"
        raise InvalidAction(_WHAT, reason, "$.talkfold")
    try:
        return msgspec.convert(found["session"], SessionHeader)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise InvalidAction(_WHAT, str(error), "$.session") from None


# ---- proof ------------------------------------------------------------------------------------------------


class _Proof:
    """Follows a log from its header. A bare action ends the proof: it has neither number nor hash."""

    def __init__(self, header: SessionHeader) -> None:
        self._number = 0
        self._promised = header.number or 0
        self._digest = header.digest
        self._link: bytes | None = chain_start(header.id)

    @property
    def whole(self) -> bool:
        """Whether the log is as long as its header says."""
        return self._link is None or self._number >= self._promised

    def end(self) -> None:
        """Raise InvalidAction when another session begins before this one's log is whole."""
        if not self.whole:
            reason = f"the session before ends at {self._number}, its header says {self._promised}"
            raise InvalidAction(_WHAT, reason)

    def follow(self, logged: LoggedAction | None) -> None:
        """Go on to the next action. Raises InvalidAction when it does not follow from the one before."""
        if logged is None or self._link is None:
            self._link = None
            return
        self._number += 1
        if logged.number != self._number:
            reason = f"{logged.number} where {self._number} must follow: a line is missing, doubled or moved"
            raise InvalidAction("logged action", reason, "$.number")
        meta = None if logged.meta is None else encode_json(logged.meta, "meta")
        try:
            self._link = chain_link(self._link, logged.number, logged.time, logged.run, logged.actor, meta, logged.body)
        except UnicodeEncodeError:
            raise InvalidAction("logged action", "half a surrogate pair in run or actor") from None
        written = {None if logged.hash is None else logged.hash.hex()}
        if self._number == self._promised:
            written.add(self._digest)
        if written - {None, self._link.hex()}:
            reason = "it does not follow from the lines before: one of them, or this one, was changed"
            raise InvalidAction("logged action", reason, "$.hash")
