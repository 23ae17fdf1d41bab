"""What a store with a redaction writes: the secret nowhere, all else as it was."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from talkfold import (
    InvalidAction,
    Part,
    Reasoning,
    RedactionFailed,
    RunError,
    Send,
    StepFinish,
    TextDelta,
    TooLarge,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from talkfold.actions import Finish, MessageStart
from talkfold.log import Entry
from talkfold.redaction import Pattern, Redaction
from talkfold.store import ABSENT, Hold, SessionStore, Waiting, open_store

pytestmark = pytest.mark.anyio

SECRET = "sk-12345"
REDACTION = Redaction(patterns=[r"sk-\d+"], fields=["password", "Authorization"])


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[SessionStore]:
    place = "memory:" if request.param == "memory" else tmp_path / "chat.db"
    async with open_store(place, redact=REDACTION) as opened:
        yield opened


async def _bodies(store: SessionStore, *actions: Any, session: str = "s", **more: Any) -> list[Any]:
    await store.append(session, actions, expected=ABSENT, **more)
    return [json.loads(row.body) for row in await store.read(session)]


@pytest.mark.parametrize(
    "action",
    [
        Send("u", f"use {SECRET}"),
        ToolPhase("pay", "awaiting-confirmation", f"with {SECRET}?"),
        Part(Reasoning("m", f"hm {SECRET}")),
        Part(ToolCall("m", "c", "pay", {"deep": [{SECRET: [f"x{SECRET}"]}]})),
        Part(ToolCall("m", "c", "pay", {"PASSWORD": {"any": 1}, "authorization": 7, "n": None})),
        Part(ToolResult("c", f"{SECRET}\n\"'\\")),
        Part(ToolResult("c", {"content": [{"type": "text", "text": '{"Password": "sk-1234"+"5", '}, SECRET]})),
        Part(ToolError("c", SECRET)),
        Part(RunError(SECRET)),
        Part(TextDelta("m", SECRET), within="c"),
        b'{"type":"send","id":"u","text":"' + SECRET.encode() + b'","text":"hello"}',
        b'{"type":"send","id":"u","text":"sk-\\u0031\\u0032345","more":{"Password":"x","n":1.50e2}}',
        b'{"type":"stop","password":"x","note":["sk-12345"]}',
    ],
)
async def test_no_secret_is_written(store: SessionStore, action: Any) -> None:
    await store.append("s", [action], expected=ABSENT)
    (row,) = await store.read("s")
    assert SECRET.encode() not in row.body
    assert b"[redacted]" in row.body
    assert row.meta is not None
    assert row.meta["redacted"] >= 1
    assert SECRET not in repr((await store.state("s")).state)


async def test_a_field_goes_from_a_text_that_is_a_document_too(store: SessionStore) -> None:
    output = {"content": [{"type": "text", "text": '{"user": 7, "password": ["hunter2"]}'}]}
    await store.append("s", [Part(ToolResult("c", output)), Send("u", '{"password": hunter')], expected=ABSENT)
    first, second = await store.read("s")
    assert first.action.part.output["content"][0]["text"] == '{"user":7,"password":"[redacted]"}'  # type: ignore[union-attr]
    assert first.meta == {"redacted": 1}
    assert second.action == Send("u", '{"password": hunter')


async def test_what_pairs_things_stays(store: SessionStore) -> None:
    actions = [
        Send(SECRET, "hello"),
        Part(MessageStart(SECRET)),
        Part(ToolCall(SECRET, SECRET, SECRET, {})),
        Part(ToolResult(SECRET, {}), within=SECRET),
        Part(StepFinish(1)),
        ToolPhase(SECRET, "running"),
        Part(Finish("stop")),
    ]
    await store.append("s", actions, expected=ABSENT)
    rows = await store.read("s")
    assert [row.action for row in rows] == actions
    assert [row.meta for row in rows] == [None] * len(rows)


async def test_provider_metadata_stays_byte_for_byte(store: SessionStore) -> None:
    signed = '{ "anthropic" : {"signature":"sk-12345\\u00e9", "n": 1.0e2 } ,"password": "x"}'
    body = '{"type":"part","part":{"type":"reasoning","messageId":"m","text":"sk-1","providerMetadata":' + signed + "}}"
    await store.append("s", [body.encode()], expected=ABSENT)
    (row,) = await store.read("s")
    assert row.body == body.replace('"sk-1"', '"[redacted]"').encode()
    assert row.meta == {"redacted": 1}


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ('{"password": "x", "b":1}', '{"password":"[redacted]","b":1}'),
        ('{"a":"sk-12345","a":"x","b" : 1}', '{"a":"[redacted]","a":"x","b":1}'),
        ("no json sk-12345", "no json [redacted]"),
        ('"sk-\\u0031"', '"[redacted]"'),
        ('{"a" : 1}', '{"a" : 1}'),
    ],
)
async def test_the_kept_arguments_text_of_an_input_goes_with_it(store: SessionStore, raw: str, left: str) -> None:
    try:
        given = json.loads(raw)
    except ValueError:
        given = raw
    call = ToolCall("m", "c", "f", given, {"openai": {"arguments": raw, "id": SECRET}})
    await store.append("s", [Part(call)], expected=ABSENT)
    (row,) = await store.read("s")
    assert row.action.part.provider_metadata == {"openai": {"arguments": left, "id": SECRET}}  # type: ignore[union-attr]


async def test_what_is_clean_stays_as_it_came(store: SessionStore) -> None:
    body = b'{ "type":"send", "id":"u" , "text":"caf\\u00e9 \\ud800", "n":1.0E2, "x":{"passwords":1} }'
    await store.append("s", [body, Part(TextDelta("m", "sk-"))], expected=ABSENT)
    first, second = await store.read("s")
    assert first.body == body
    assert first.meta is second.meta is None


async def test_a_changed_body_keeps_all_else(store: SessionStore) -> None:
    body = b'{"x" : [1.0E2, "\\ud800", null], "type":"send", "z":"sk-1", "id":"u","text":"caf\\u00e9"}'
    await store.append("s", [body], expected=ABSENT)
    (row,) = await store.read("s")
    assert row.body == body.replace(b'"sk-1"', b'"[redacted]"')


async def test_meta_title_and_metadata(store: SessionStore) -> None:
    session = await store.create("s", title=f"about {SECRET}", metadata={"a": SECRET, "password": "x", "n": 1})
    assert session.title == "about [redacted]"
    assert session.metadata == {"a": "[redacted]", "password": "[redacted]", "n": 1}
    session = await store.update("s", title=SECRET, metadata={"b": [SECRET], "password": None})
    assert (session.title, session.metadata) == ("[redacted]", {"a": "[redacted]", "n": 1, "b": ["[redacted]"]})
    assert (await store.fork("s", new_id="t", title=SECRET)).title == "[redacted]"
    entry = Entry(Send("u", SECRET), meta={"why": SECRET, "redacted": 3})
    await store.append("s", [entry, Send("v", "x")], meta={"password": 5})
    first, second = await store.read("s")
    assert first.meta == {"why": "[redacted]", "redacted": 5}
    assert second.meta == {"password": "[redacted]", "redacted": 1}


async def test_a_key_means_the_same_request_again(store: SessionStore) -> None:
    actions = [Part(TextDelta("m", "sk-1")), Part(TextDelta("m", "23."))]
    first = await store.append("s", actions, expected=ABSENT, key="k")
    again = await store.append("s", actions, expected=ABSENT, key="k")
    assert (again.first, again.last, again.repeated) == (first.first, first.last, True)
    assert (await store.check("s")).problems == ()


async def test_a_secret_that_deltas_cut_goes_with_its_first_delta(store: SessionStore) -> None:
    texts = ["a s", "k-1", "23", "45 b", " c"]
    deltas = [Part(TextDelta("m", text)) for text in texts]
    other = Part(TextDelta("n", "67 sk-"), within="c")
    await store.append("s", [*deltas[:2], other, *deltas[2:]], expected=ABSENT)
    rows = await store.read("s")
    assert [row.action.part.delta for row in rows] == ["a [redacted]", "", "67 sk-", "", " b", " c"]  # type: ignore[union-attr]
    assert [row.meta for row in rows] == [{"redacted": 1}, None, None, None, None, None]


async def test_what_stands_between_two_texts_parts_them(store: SessionStore) -> None:
    parts = [TextDelta("m", "sk-"), ToolCall("m", "c", "f", {}), TextDelta("m", "1")]
    await store.append("s", [Part(part) for part in parts], expected=ABSENT)
    assert [row.action for row in await store.read("s")] == [Part(part) for part in parts]


async def test_a_rule_that_fails_writes_nothing() -> None:
    async with open_store("memory:", redact=Redaction(functions=[lambda text: text[9]])) as store:
        await store.create("s")
        with pytest.raises(RedactionFailed):
            await store.append("s", [Part(Finish("stop")), Send("u", "short")])
        with pytest.raises(RedactionFailed):
            await store.create("t", title="short")
        assert await store.read("s") == ()
        assert len((await store.list()).sessions) == 1


async def test_a_replacement_too_large_for_an_action_is_refused() -> None:
    async with open_store("memory:", redact=Redaction(patterns=[Pattern("x", "y" * 2**20)])) as store:
        with pytest.raises((TooLarge, InvalidAction)):
            await store.append("s", [Send("u", "x" * 20)], expected=ABSENT)


async def test_what_a_call_asks_the_person_is_redacted_in_the_lease_too(store: SessionStore) -> None:
    await store.create("s")
    hold = Hold("r")
    await store.start("s", Send("u", f"pay {SECRET}"), hold=hold)
    await store.park("s", [], hold=hold, waiting=Waiting(1, "c", "pay", "approval", f"pay {SECRET}?"))
    lease = (await store.get("s")).lease
    assert lease is not None
    assert lease.waiting is not None
    assert lease.waiting.prompt == "pay [redacted]?"


async def test_a_run_starts_from_what_is_logged(store: SessionStore) -> None:
    await store.create("s")
    started = await store.start("s", Send("u", f"pay {SECRET}"), hold=Hold("r"))
    assert started.state == (await store.state("s")).state
    assert SECRET not in repr(started.state)


async def test_no_byte_of_it_is_in_the_file(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(tmp_path / "chat.db", redact=REDACTION))
        await store.create("s", title=SECRET, metadata={"k": SECRET}, actions=[Send("u", SECRET)])
        await store.append("s", [Part(ToolResult("c", {"password": "hunter2-x"}))], meta={"note": SECRET})
        await store.search("redacted")
        for file in tmp_path.iterdir():
            data = file.read_bytes()
            assert SECRET.encode() not in data
            assert b"hunter2-x" not in data
