"""A log as server-sent events, over a real socket: backlog, then live, no gap, no repeat, and a word at every end."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple

import anyio
import httpx
import pytest
from server_world import ORDER, SEND, bearer, by_token, said, served

from talkfold.server import Application, Limits, app
from talkfold.store import SessionStore

PATH = "/v1/sessions/s-1/actions"


class Event(NamedTuple):
    name: str
    data: Any
    id: str | None


@pytest.fixture
async def application(store: SessionStore) -> AsyncGenerator[Application]:
    async with app(store, limits=Limits(ping_seconds=0.2)) as made:
        yield made


@pytest.fixture
async def client(application: Application) -> AsyncGenerator[httpx.AsyncClient]:
    async with served(application) as address, httpx.AsyncClient(base_url=address, timeout=10) as client:
        await client.put("/v1/sessions/s-1")
        yield client


async def events(client: httpx.AsyncClient, query: str = "", **headers: str) -> AsyncGenerator[Event]:
    """The events of one connection, read by the rules of the standard."""
    async with client.stream("GET", f"{PATH}/stream{query}", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        async for event in parsed(response.aiter_lines()):
            yield event


async def parsed(lines: AsyncIterator[str]) -> AsyncGenerator[Event]:
    fields: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield Event(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))
            fields = {}
        else:
            fields = {}


async def until(stream: AsyncIterator[Event], name: str) -> list[Event]:
    """The events through the first one of this name."""
    seen: list[Event] = []
    async for event in stream:
        seen.append(event)
        if event.name == name:
            return seen
    raise AssertionError(f"the stream ended without {name}: {seen}")


async def test_what_is_there_then_caught_up_then_what_comes(client: httpx.AsyncClient) -> None:
    await client.post(PATH, json=ORDER[:3])
    stream = events(client)
    first = await until(stream, "caught-up")
    assert [event.data["action"] for event in first[:-1]] == ORDER[:3]
    assert [event.id for event in first] == ["1", "2", "3", None]
    assert first[-1].data == {"number": 3}
    await client.post(PATH, json=ORDER[3:])
    live = [await anext(stream) for _ in ORDER[3:]]
    assert [event.data["action"] for event in live] == ORDER[3:]
    assert live[-1].id == str(len(ORDER))
    await stream.aclose()


@pytest.mark.parametrize(
    ("query", "headers"), [("?after=2", {}), ("", {"last-event-id": "2"}), ("?after=1", {"last-event-id": "2"})]
)
async def test_it_goes_on_after_a_number(client: httpx.AsyncClient, query: str, headers: dict[str, str]) -> None:
    await client.post(PATH, json=ORDER)
    seen = await until(events(client, query, **headers), "caught-up")
    assert [event.id for event in seen[:-1]] == ["3", "4", "5", "6", "7"]


async def test_a_cursor_beyond_the_end_is_a_problem_and_no_stream(client: httpx.AsyncClient) -> None:
    refused = await client.get(f"{PATH}/stream", params={"after": 1})
    assert (refused.status_code, refused.json()["code"], refused.json()["head"]) == (416, "cursor_ahead", 0)
    for wrong in ("x", "-1", "1.5", "9" * 30):
        refused = await client.get(f"{PATH}/stream", headers={"Last-Event-ID": wrong})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_header")
    assert (await client.get("/v1/sessions/none/actions/stream")).status_code == 404


async def test_no_reader_misses_or_repeats_whatever_the_timing(client: httpx.AsyncClient) -> None:
    total = 300
    chance = random.Random(7)

    async def write() -> None:
        number = 0
        while number < total:
            some = min(chance.choice([1, 1, 2, 40]), total - number)
            await client.post(PATH, json=[said(str(number + n)) for n in range(some)])
            number += some
            await anyio.sleep(chance.random() / 200)

    async def read(cuts: random.Random) -> list[str]:
        seen: list[str] = []
        while len(seen) < total:
            stream = events(client, **({"last-event-id": seen[-1]} if seen else {}))
            stay = cuts.randint(1, 120)
            async for event in stream:
                if event.name == "action":
                    assert event.id is not None
                    seen.append(event.id)
                    stay -= 1
                if not stay or len(seen) == total:
                    break
            await stream.aclose()
        return seen

    answers: list[list[str]] = []

    async def keep(seed: int) -> None:
        answers.append(await read(random.Random(seed)))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        for seed in range(8):
            group.start_soon(keep, seed)
    assert answers == [[str(n) for n in range(1, total + 1)]] * 8


async def test_a_reader_far_behind_reads_all_of_it(client: httpx.AsyncClient, store: SessionStore) -> None:
    stream = events(client)
    await until(stream, "caught-up")  # it is there, but not reading: the live end moves on without it
    for start in range(0, 5_000, 1_000):
        await client.post(PATH, json=[said(str(n)) for n in range(start, start + 1_000)])
    seen = [await anext(stream) for _ in range(5_000)]
    assert [event.id for event in seen] == [str(n) for n in range(1, 5_001)]
    await stream.aclose()


async def test_an_erased_session_says_so_and_ends(client: httpx.AsyncClient) -> None:
    await client.post(PATH, json=SEND)
    stream = events(client)
    await until(stream, "caught-up")
    await client.delete("/v1/sessions/s-1")
    (last,) = await until(stream, "problem")
    assert last.data["code"] == "session_erased"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert (await client.get(f"{PATH}/stream")).status_code == 410


async def test_a_closing_server_sends_its_readers_home_at_once(store: SessionStore) -> None:
    await store.create("s-1")
    application = app(store)
    async with served(application) as address, httpx.AsyncClient(base_url=address, timeout=10) as client:
        streams = [events(client) for _ in range(20)]
        for stream in streams:
            await until(stream, "caught-up")
        with anyio.fail_after(2):
            async with application:
                pass
            for stream in streams:
                assert [event.name for event in await until(stream, "closing")] == ["closing"]
                with pytest.raises(StopAsyncIteration):
                    await anext(stream)


async def test_only_so_many_streams_are_open(store: SessionStore) -> None:
    await store.create("s-1", owner="ann")
    limits = Limits(streams=3, streams_each=2)
    async with (
        app(store, authenticate=by_token, limits=limits) as application,
        served(application) as address,
        httpx.AsyncClient(base_url=address, timeout=10) as client,
    ):
        open_ones = [events(client, **bearer("ann")) for _ in range(2)]
        for stream in open_ones:
            await until(stream, "caught-up")
        refused = await client.get(f"{PATH}/stream", headers=bearer("ann"))
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        assert int(refused.headers["retry-after"]) > 0
        await open_ones[0].aclose()
        with anyio.fail_after(5):
            while True:
                again = events(client, **bearer("ann"))
                try:
                    await until(again, "caught-up")
                    break
                except AssertionError:
                    await anyio.sleep(0.02)
        await again.aclose()
        await open_ones[1].aclose()


async def test_silence_is_filled_with_comments(client: httpx.AsyncClient) -> None:
    async with client.stream("GET", f"{PATH}/stream") as response:
        lines = response.aiter_lines()
        with anyio.fail_after(5):
            async for line in lines:
                if line.startswith(":"):
                    break
