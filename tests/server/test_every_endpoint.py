"""What holds for every row of the table: nobody without a token, nobody without the scope, nobody else's session."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from server_world import ORDER, bearer

from talkfold.server.endpoint import ACTIONS, LINES, Endpoint
from talkfold.server.table import ENDPOINTS
from talkfold.store import SessionStore

CLOSED = [endpoint for endpoint in ENDPOINTS if endpoint.scope is not None]
OF_A_SESSION = [endpoint for endpoint in CLOSED if "session" in endpoint.segments]
names = {"ids": lambda endpoint: endpoint.name}

_BODIES: dict[str, Any] = {
    "beginRun": {"agent": "shop", "text": "Hello"},
    "approveCall": {"input": {}},
    "denyCall": {"input": {}},
    "giveCallResult": {"output": {}},
}
_QUERIES = {"getBlame": {"pointer": "/status"}}


async def ask(client: httpx.AsyncClient, endpoint: Endpoint, session: str, token: str | None) -> httpx.Response:
    path = endpoint.path.format(session=session, number="1", call="c1")
    body: dict[str, Any] = {}
    if endpoint.body is ACTIONS:
        body = {"json": ORDER}
    elif endpoint.body is LINES:
        body = {"content": b"", "headers": {"Content-Type": "application/x-ndjson"}}
    elif endpoint.body is not None:
        body = {"json": _BODIES.get(endpoint.name, {})}
    headers = {**body.pop("headers", {}), **({} if token is None else bearer(token))}
    query = _QUERIES.get(endpoint.name)
    return await client.request(endpoint.method, path, params=query, headers=headers, **body)


@pytest.mark.parametrize("endpoint", CLOSED, **names)
async def test_nobody_asks_without_a_token(shared: httpx.AsyncClient, endpoint: Endpoint) -> None:
    refused = await ask(shared, endpoint, "s-1", None)
    assert (refused.status_code, refused.json()["code"]) == (401, "not_authenticated")
    assert refused.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("endpoint", CLOSED, **names)
async def test_nobody_asks_without_the_scope(shared: httpx.AsyncClient, endpoint: Endpoint) -> None:
    others = "+".join({"read", "write", "run", "admin"} - {str(endpoint.scope)})
    refused = await ask(shared, endpoint, "s-1", f"ann:{others}")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert repr(endpoint.scope) in refused.json()["detail"]


@pytest.mark.parametrize("endpoint", OF_A_SESSION, **names)
async def test_a_foreign_session_answers_like_an_unknown_one(
    shared: httpx.AsyncClient, store: SessionStore, endpoint: Endpoint
) -> None:
    if endpoint.name == "putSession":
        pytest.skip("ids are unique per owner: it makes one's own")
    await store.create("s-1", owner="ann")
    await shared.post("/v1/sessions/s-1/actions", json=ORDER, headers=bearer("ann"))
    before = await store.get("s-1", owner="ann")
    foreign = await ask(shared, endpoint, "s-1", "bob")
    unknown = await ask(shared, endpoint, "s-2", "bob")
    assert foreign.status_code == unknown.status_code == 404
    told = [{**answer.json(), "requestId": ""} for answer in (foreign, unknown)]
    told[1]["detail"] = told[1]["detail"].replace("s-2", "s-1")
    assert told[0] == told[1]
    assert await store.get("s-1", owner="ann") == before


@pytest.mark.parametrize("endpoint", OF_A_SESSION, **names)
async def test_an_erased_session_is_gone_everywhere(
    shared: httpx.AsyncClient, store: SessionStore, endpoint: Endpoint
) -> None:
    await store.create("s-1", owner="ann")
    await store.erase("s-1", owner="ann")
    gone = await ask(shared, endpoint, "s-1", "ann")
    assert (gone.status_code, gone.json()["code"]) == (410, "session_erased")


@pytest.mark.parametrize("endpoint", CLOSED, **names)
async def test_only_the_trusted_side_names_an_owner(shared: httpx.AsyncClient, endpoint: Endpoint) -> None:
    path = endpoint.path.format(session="s-1", number="1", call="c1")
    refused = await shared.request(endpoint.method, f"{path}?owner=bob", headers=bearer("ann"))
    assert (refused.status_code, refused.json()["parameter"]) == (400, "owner")


@pytest.mark.parametrize("endpoint", ENDPOINTS, **names)
async def test_it_explains_itself(endpoint: Endpoint) -> None:
    assert endpoint.text.split("\n")[0].endswith(".")
    assert all(reply.text.endswith(".") for reply in endpoint.replies)


def test_names_are_unique() -> None:
    assert len({endpoint.name for endpoint in ENDPOINTS}) == len(ENDPOINTS)
    assert len({(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/sessions/", "/v1/sessions//state", "/v1/sessions/s-1/nothing", "/../x"]
)
async def test_what_is_not_there_is_a_problem(api: httpx.AsyncClient, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "no_such_path")
    assert answer.headers["x-request-id"] == answer.json()["requestId"]


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
async def test_a_method_that_is_not_there_says_which_are(api: httpx.AsyncClient, method: str) -> None:
    answer = await api.request(method, "/v1/sessions")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert answer.json()["code"] == "method_not_allowed"


async def test_head_is_get_without_a_body(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1")
    head = await api.head("/v1/sessions/s-1")
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", '"0"')
