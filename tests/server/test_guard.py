"""Hosts and origins: a page that rebinds its name, or of another origin, gets nothing."""

from __future__ import annotations

import httpx
import pytest
from server_world import client_of

from talkfold.errors import InvalidArgument
from talkfold.server import app
from talkfold.store import SessionStore


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:1", "[::1]:8000", "[::1]"])
async def test_loopback_is_served(api: httpx.AsyncClient, host: str) -> None:
    assert (await api.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.nip.example", "localhost:8000:1", "", "localhost@evil"],
)
@pytest.mark.parametrize("path", ["/healthz", "/v1/sessions", "/nowhere"])
async def test_another_host_gets_nothing(api: httpx.AsyncClient, host: str, path: str) -> None:
    refused = await api.get(path, headers={"Host": host})
    assert (refused.status_code, refused.json()["code"]) == (421, "host_not_allowed")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://"])
async def test_a_page_of_another_origin_gets_nothing(api: httpx.AsyncClient, origin: str) -> None:
    refused = await api.get("/v1/sessions", headers={"Origin": origin})
    assert (refused.status_code, refused.json()["code"]) == (403, "origin_not_allowed")
    assert "access-control-allow-origin" not in refused.headers


async def test_a_page_of_the_server_itself_may_ask(api: httpx.AsyncClient) -> None:
    own = {"Origin": "http://localhost:8000", "Host": "localhost:8000"}
    assert (await api.get("/v1/sessions", headers=own)).status_code == 200


async def test_an_origin_that_is_allowed_is_told_so(store: SessionStore) -> None:
    async with client_of(app(store, origins=["https://chat.example"])) as client:
        page = {"Origin": "https://chat.example"}
        asked = await client.options("/v1/sessions", headers={**page, "Access-Control-Request-Method": "POST"})
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "https://chat.example"
        assert "if-match" in asked.headers["access-control-allow-headers"]
        answer = await client.get("/v1/sessions", headers=page)
        assert answer.headers["access-control-allow-origin"] == "https://chat.example"
        assert "etag" in answer.headers["access-control-expose-headers"]
        assert answer.headers["vary"] == "Origin"
        assert "access-control-allow-origin" not in (await client.get("/v1/sessions")).headers
        other = {"Origin": "https://other.example", "Access-Control-Request-Method": "POST"}
        assert (await client.options("/v1/sessions", headers=other)).status_code == 403


@pytest.mark.parametrize(
    "wrong", [{"hosts": [""]}, {"hosts": ["http://x"]}, {"origins": ["chat.example"]}, {"origins": ["https://x/"]}]
)
async def test_a_wrong_list_is_refused(store: SessionStore, wrong: dict[str, list[str]]) -> None:
    with pytest.raises(InvalidArgument):
        app(store, **wrong)  # type: ignore[arg-type]
