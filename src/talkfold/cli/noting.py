"""Digests that were noted by an earlier check: given as one, or as the file that the check wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from ..codec import decode_json
from ..errors import InvalidArgument, SessionErased, SessionNotFound, StoreDamaged, TalkfoldError
from ..model import Json
from ..store.protocol import SessionStore
from .source import source
from .wording import moment

__all__ = ("Digests", "Missing", "digest_of", "look_for", "read_noted")

Digests: TypeAlias = "dict[tuple[str, str | None], bytes]"
"""Digests by a session's id and owner."""

_HEX = "[0-9a-fA-F]{64}"


class Missing(NamedTuple):
    """A session that was noted and is not there any more. ``erased``: it left a tombstone that says when and by whom;
    without one, its rows were taken away."""

    id: str
    owner: str | None
    erased: int | None = None
    by: str | None = None

    @property
    def text(self) -> str:
        """What became of it, in words."""
        if self.erased is None:
            return "it was noted and is not listed any more, and no tombstone says that it was erased"
        return f"erased at {moment(self.erased)}" + (f" by {self.by}" if self.by else "")

    @property
    def json(self) -> dict[str, Json]:
        """The same as an answer's row."""
        row: dict[str, Json] = {"id": self.id}
        if self.owner is not None:
            row["owner"] = self.owner
        if self.erased is None:
            return {**row, "problems": [{"code": "gone", "number": 0, "text": self.text}]}
        by = {} if self.by is None else {"by": self.by}
        return {**row, "erased": moment(self.erased), **by, "problems": []}


def digest_of(given: str) -> bytes:
    """A digest as a check prints it. Raises InvalidArgument."""
    if not re.fullmatch(_HEX, given):
        reason = "64 hexadecimal digits are needed, as `talkfold check` prints them; a file of them goes with --all"
        raise InvalidArgument("--since", f"{given!r} is no digest: {reason}")
    return bytes.fromhex(given)


def read_noted(given: str) -> Digests:
    """The digests in what `check --all` answered, as JSON lines or as one document. Raises InvalidArgument.

    What was erased or gone then has none, and is passed over.
    """
    noted: Digests = {}
    for place, row in _rows(given):
        match row:
            case {"id": str(session_id), "digest": str(digest)}:
                key = session_id, _owner(row)
                if not re.fullmatch(_HEX, digest):
                    raise InvalidArgument("--since", f"{given}: {place} has no digest of 64 hexadecimal digits")
                if noted.setdefault(key, bytes.fromhex(digest)) != bytes.fromhex(digest):
                    raise InvalidArgument("--since", f"{given}: {place} notes {session_id} a second time, differently")
            case {"id": str(), "problems": list()}:
                continue
            case _:
                reason = "is no answer of `talkfold check --all`, which has an id and a digest"
                raise InvalidArgument("--since", f"{given}: {place} {reason}")
    return noted


def _owner(row: dict[str, Any]) -> str | None:
    owner = row.get("owner")
    return owner if isinstance(owner, str) else None


def _rows(given: str) -> Iterator[tuple[str, Any]]:
    """The rows of a file of JSON lines, or of one JSON array, each with its place in words."""
    try:
        with source(given) as stream:
            for number, line in enumerate(stream, start=1):
                if line.lstrip()[:1] == b"[":
                    whole: list[Any] = _read(given, line + stream.read(), number)
                    yield from ((f"entry {place}", each) for place, each in enumerate(whole, start=1))
                    return
                if line.strip():
                    yield f"line {number}", _read(given, line, number)
    except InvalidArgument as error:
        raise InvalidArgument("--since", error.reason) from error
    except OSError as error:
        raise InvalidArgument("--since", f"{given}: {error.strerror}") from error


def _read(given: str, text: bytes, number: int) -> Any:
    try:
        return decode_json(text)
    except TalkfoldError as error:
        raise InvalidArgument("--since", f"{given}: line {number} cannot be read: {error}") from error


async def look_for(store: SessionStore, session_id: str, owner: str | None) -> Missing:
    """What became of a session that was noted and is not listed."""
    try:
        await store.get(session_id, owner=owner)
    except SessionErased as error:
        return Missing(session_id, owner, error.at, error.by)
    except (SessionNotFound, StoreDamaged):
        pass
    return Missing(session_id, owner)
