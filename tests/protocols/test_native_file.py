"""The native file: what was written is read, what was changed is found, what a crash cut is told."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from msgspec import structs
from protocol_logs import logged, logs

from talkfold.actions import Finish, MessageStart, Part, Send, SessionAction, TextDelta, ToolCall
from talkfold.codec import JsonLine, TornLine, encode_action, encode_logged
from talkfold.errors import DamagedLine
from talkfold.log import Entry
from talkfold.protocols.native import (
    NativeLine,
    NativeSession,
    SessionHeader,
    encode_header,
    header_of,
    read_native,
    read_sessions,
)
from talkfold.store import open_store
from talkfold.store.protocol import Session

ACTIONS: list[SessionAction] = [
    Send("u", "Ünï \ud83d"),
    Part(MessageStart("a")),
    Part(ToolCall("a", "c", "t", {"big": 10**30, "one": 1.0})),
    Part(TextDelta("a", "hello")),
    Part(Finish("stop")),
]
ENTRIES = [
    Entry(action, run="r-1" if n % 2 else None, actor="ann" if n == 0 else None, meta={"n": n, "x": 1.0} if n else None)
    for n, action in enumerate(ACTIONS)
]
HEADER = SessionHeader("s-1", owner="o", title="Mugs", metadata={"system": [{"content": "é\ud83d"}]}, number=5)


def written(header: SessionHeader, entries: list[Entry]) -> list[bytes]:
    lines = [encode_header(header), *map(encode_logged, logged(header.id, entries))]
    return [line + b"\n" for line in lines]


LINES = written(HEADER, ENTRIES)
FILE = b"".join(LINES)


def test_a_header_says_what_the_store_knows() -> None:
    session = Session(
        "s", "idle", 7, b"\x00\xff", 1, 11, 12, owner="o", title="T", metadata={"k": 1}, forked_from="p", forked_at=3
    )
    header = header_of(session)
    assert header == SessionHeader(
        "s",
        owner="o",
        title="T",
        metadata={"k": 1},
        forked_from="p",
        forked_at=3,
        created=11,
        number=7,
        digest="00ff",
    )
    assert next(iter(read_native(encode_header(header)))) == header


def test_the_form_of_the_file() -> None:
    assert LINES[0].startswith(b'{"talkfold":1,"session":{"id":"s-1","owner":"o","title":"Mugs","metadata":')
    assert b'"action":{"type":"send"' in LINES[1]


def test_a_session_comes_back_whole() -> None:
    (session,) = read_sessions(FILE)
    assert session.header == HEADER
    assert session.torn is None
    again = [
        Entry(decoded.action, entry.time, entry.run, entry.actor, entry.meta)
        for entry, decoded in zip(
            session.entries, (i for i in read_native(FILE) if isinstance(i, JsonLine)), strict=True
        )
    ]
    assert [entry.action for entry in session.entries] == [encode_action(action) for action in ACTIONS]
    assert b"".join(written(HEADER, [Entry(e.action, None, e.run, e.actor, e.meta) for e in again])) == FILE


def test_several_sessions_follow_each_other() -> None:
    other = written(SessionHeader("s-2"), ENTRIES[:2])
    empty = written(SessionHeader("s-3"), [])
    sessions = list(read_sessions(io.BytesIO(b"".join([*LINES, *other, *empty]))))
    assert [(s.header.id, len(s.entries)) for s in sessions if s.header] == [("s-1", 5), ("s-2", 2), ("s-3", 0)]


def test_bare_actions_need_no_header() -> None:
    bare = b"".join(encode_action(action) + b"\n" for action in ACTIONS)
    assert list(read_sessions(bare)) == [NativeSession(None, tuple(Entry(encode_action(action)) for action in ACTIONS))]
    # and a part of a file, cut out with the tools of the shell, is a log as well
    assert len(list(read_native(b"".join(LINES[2:4])))) == 2


def test_an_action_that_only_speaks_of_headers_is_none() -> None:
    action = Send("u", '"talkfold" "session"')
    tricky = b'{"type":"send","id":"u","text":"x","talkfold":true,"session":{"id":"s"}}'
    found = list(read_native(encode_action(action) + b"\n" + tricky))
    assert [item.action for item in found if isinstance(item, JsonLine)] == [action, Send("u", "x")]


def test_nothing_is_read_ahead() -> None:
    class Watched(io.BytesIO):
        lines = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            self.lines += 1
            return super().readline(size)

    source = Watched(FILE * 1)
    reading = read_native(source)
    for count in range(1, 4):
        next(reading)
        assert source.lines <= count + 1


def test_wherever_a_crash_cuts_the_file_what_is_left_is_read_and_the_cut_is_told() -> None:
    whole = list(read_native(FILE))
    for cut in range(1, len(FILE)):
        found = list(read_native(FILE[:cut]))
        kept = [item for item in found if not isinstance(item, TornLine)]
        assert kept == whole[: len(kept)]
        if cut == len(FILE) - 1:
            assert found == whole  # only the last line's end is gone
            continue
        torn = found[-1]
        assert isinstance(torn, TornLine), cut
        assert torn.line == len(kept) + 1
        assert [session.torn for session in read_sessions(FILE[:cut])] == [torn]


def damage(lines: list[bytes]) -> int:
    with pytest.raises(DamagedLine) as caught:
        list(read_native(b"".join(lines)))
    return caught.value.line


def test_every_change_to_a_line_is_found() -> None:
    for n in range(1, len(LINES)):
        assert damage([*LINES[:n], b"{}\n", *LINES[n + 1 :]]) == n + 1
        assert damage([*LINES[:n], LINES[n].replace(b'"action"', b'"action":', 1), *LINES[n + 1 :]]) == n + 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"hello", b"hallo"),
        (b'"r-1"', b'"r-2"'),
        (b'"n":3', b'"n":4'),
        (b".004Z", b".005Z"),
        (b"1.0", b"1"),
    ],
)
def test_a_changed_envelope_or_body_is_found(old: bytes, new: bytes) -> None:
    line = next(n for n in range(1, len(LINES)) if old in LINES[n])
    assert damage([*LINES[:line], LINES[line].replace(old, new, 1), *LINES[line + 1 :]]) == line + 1


def test_a_removed_doubled_or_moved_line_is_found() -> None:
    assert damage([*LINES[:2], *LINES[3:]]) == 3
    assert damage([*LINES[:3], *LINES[2:]]) == 4
    assert damage([*LINES[:2], LINES[3], LINES[2], *LINES[4:]]) == 3


def test_a_log_under_another_sessions_header_is_found() -> None:
    assert damage([encode_header(SessionHeader("s-2")) + b"\n", *LINES[1:]]) == 2


def test_hashes_may_be_sparse_but_the_newest_action_is_proven() -> None:
    rows = [structs.replace(row, hash=row.hash if n == 2 else None) for n, row in enumerate(logged("s", ENTRIES), 1)]
    digest = (logged("s", ENTRIES)[-1].hash or b"").hex()
    lines = [encode_header(SessionHeader("s", number=5, digest=digest)), *map(encode_logged, rows)]
    lines = [line + b"\n" for line in lines]
    assert len(list(read_native(b"".join(lines)))) == 6
    # changed in the first line below the header, found at the first hash; changed behind it, at the digest
    assert damage([lines[0], lines[1].replace(b"n\xc3\xaf", b"ni"), *lines[2:]]) == 3
    assert damage([*lines[:3], lines[3].replace(b'"one"', b'"two"'), *lines[4:]]) == 6


def test_lines_that_are_missing_before_another_session_are_damage() -> None:
    assert damage([*LINES[:-1], *written(SessionHeader("s-2"), [])]) == len(LINES)


@pytest.mark.parametrize(
    "line",
    [
        b'{"talkfold":2,"session":{"id":"s"}}\n',
        b'{"talkfold":1,"session":{}}\n',
        b'{"talkfold":1,"session":{"id":7}}\n',
        b'{"talkfold":1,"session":[]}\n',
        b'{"talkfold":1,"session":{"id":"s"\n',
        b'{"talkfold":1}\n',
    ],
)
def test_a_header_that_cannot_be_read_is_damage(line: bytes) -> None:
    assert damage([*LINES, line]) == len(LINES) + 1


def test_a_newer_form_says_so() -> None:
    with pytest.raises(DamagedLine, match="form 2 is unknown"):
        list(read_native(b'{"talkfold":2,"session":{"id":"s"}}\n'))


@given(logs)
def test_every_log_comes_back(log: list[SessionAction]) -> None:
    header = SessionHeader("s", number=len(log))
    found: list[NativeLine] = list(read_native(b"".join(written(header, [Entry(action) for action in log]))))
    actions: list[Any] = [item.action for item in found if isinstance(item, JsonLine)]
    assert found[0] == header
    assert list(map(encode_action, actions)) == list(map(encode_action, log))


@pytest.mark.anyio
async def test_a_session_that_went_through_a_file_has_the_same_digest() -> None:
    async with open_store("memory:") as here, open_store("memory:") as there:
        await here.create("s", metadata={"half \ud83d": "\ud83d"})
        await here.append("s", ENTRIES[:2])
        await here.append("s", ENTRIES[2:], actor="ann")
        session = await here.get("s")
        lines = [encode_header(header_of(session)), *map(encode_logged, await here.read("s"))]

        (read,) = read_sessions(b"\n".join(lines))
        assert read.header is not None
        assert read.header.metadata == session.metadata
        await there.create(read.header.id, metadata=read.header.metadata)
        await there.append("s", read.entries)
        assert (await there.get("s")).digest == session.digest
        assert (await there.state("s")).state == (await here.state("s")).state
