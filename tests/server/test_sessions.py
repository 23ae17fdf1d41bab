"""Sessions over HTTP: made, listed, changed, copied, erased."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest
from server_world import ORDER, bearer


async def test_a_session_is_made_under_a_new_id_or_its_own(api: httpx.AsyncClient) -> None:
    made = await api.post("/v1/sessions", json={"title": "Mugs", "metadata": {"shop": "north"}})
    assert made.status_code == 201
    row = made.json()
    assert (row["status"], row["number"], row["title"], row["metadata"]) == ("idle", 0, "Mugs", {"shop": "north"})
    assert made.headers["etag"] == '"0"'
    assert made.headers["location"] == f"/v1/sessions/{row['id']}"
    assert (await api.get(made.headers["location"])).json() == row
    own = await api.post("/v1/sessions", json={"id": "s-1"})
    assert own.json()["id"] == "s-1"
    again = await api.post("/v1/sessions", json={"id": "s-1"})
    assert (again.status_code, again.json()["code"]) == (409, "session_exists")


async def test_put_is_safe_to_repeat(api: httpx.AsyncClient) -> None:
    first = await api.put("/v1/sessions/s-1", json={"title": "Mugs"})
    again = await api.put("/v1/sessions/s-1", json={"title": "Cups"})
    bare = await api.put("/v1/sessions/s-1")
    assert [first.status_code, again.status_code, bare.status_code] == [201, 200, 200]
    assert bare.json() == again.json() == first.json()


@pytest.mark.parametrize("session_id", ["a/b", "a%2Fb", "%", "ü ?#&", "..", "a//b/", "stream", "€" * 100])
async def test_any_id_can_stand_in_a_path(api: httpx.AsyncClient, session_id: str) -> None:
    made = await api.post("/v1/sessions", json={"id": session_id})
    assert made.status_code == 201
    place = made.headers["location"]
    assert place == f"/v1/sessions/{quote(session_id, safe='')}"
    if session_id == "..":
        return  # clients resolve dots before they ask
    assert (await api.get(place)).json()["id"] == session_id
    assert (await api.post(f"{place}/actions", json=ORDER)).status_code == 201
    assert (await api.get(f"{place}/state")).json()["number"] == len(ORDER)


async def test_the_list_has_pages_and_filters(api: httpx.AsyncClient) -> None:
    for n in range(5):
        await api.post("/v1/sessions", json={"id": f"s-{n}", "title": f"Order {n % 2}"})
    page = (await api.get("/v1/sessions", params={"limit": 3})).json()
    assert [row["id"] for row in page["sessions"]] == ["s-4", "s-3", "s-2"]
    rest = (await api.get("/v1/sessions", params={"limit": 3, "cursor": page["next"]})).json()
    assert [row["id"] for row in rest["sessions"]] == ["s-1", "s-0"]
    assert "next" not in rest
    odd = (await api.get("/v1/sessions", params={"title": "order 1"})).json()
    assert [row["id"] for row in odd["sessions"]] == ["s-3", "s-1"]
    await api.post("/v1/sessions/s-0/actions", json=ORDER[:3])
    streaming = (await api.get("/v1/sessions", params={"status": "streaming"})).json()
    assert [row["id"] for row in streaming["sessions"]] == ["s-0"]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=2", "limit"),
        ("status=asleep", "status"),
        ("colour=blue", "colour"),
        ("metadata=shop", "metadata"),
    ],
)
async def test_a_wrong_parameter_is_named(api: httpx.AsyncClient, query: str, parameter: str) -> None:
    refused = await api.get(f"/v1/sessions?{query}")
    assert (refused.status_code, refused.json()["parameter"]) == (400, parameter)


async def test_title_and_metadata_change_and_the_log_does_not(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1", json={"title": "Mugs", "metadata": {"shop": "north", "n": 1}})
    changed = await api.patch("/v1/sessions/s-1", json={"title": "Cups", "metadata": {"n": None, "k": [1.5]}})
    row = changed.json()
    assert (row["title"], row["metadata"], row["number"]) == ("Cups", {"shop": "north", "k": [1.5]}, 0)


async def test_a_copy_has_the_log_up_to_there(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1", json={"title": "Mugs"})
    await api.post("/v1/sessions/s-1/actions", json=ORDER)
    made = await api.post("/v1/sessions/s-1/fork", json={"at": 4, "id": "s-2"})
    assert made.status_code == 201
    assert {name: made.json()[name] for name in ("id", "number", "forkedFrom", "forkedAt")} == {
        "id": "s-2",
        "number": 4,
        "forkedFrom": "s-1",
        "forkedAt": 4,
    }
    assert (await api.post("/v1/sessions/s-1/fork")).json()["number"] == len(ORDER)
    ahead = await api.post("/v1/sessions/s-1/fork", json={"at": 99})
    assert (ahead.status_code, ahead.json()["head"]) == (416, len(ORDER))


async def test_an_erased_session_is_told_from_an_unknown_one(shared: httpx.AsyncClient) -> None:
    await shared.put("/v1/sessions/s-1", headers=bearer("ann"))
    erased = await shared.delete("/v1/sessions/s-1", headers=bearer("ann"))
    assert (erased.status_code, erased.json()["erased"], erased.json()["by"]) == (200, "s-1", "ann")
    gone = await shared.get("/v1/sessions/s-1", headers=bearer("ann"))
    assert (gone.status_code, gone.json()["code"], gone.json()["erased"]) == (
        410,
        "session_erased",
        erased.json()["at"],
    )
    assert (await shared.get("/v1/sessions/s-2", headers=bearer("ann"))).status_code == 404
    assert (await shared.get("/v1/sessions/s-1", headers=bearer("bob"))).status_code == 404
