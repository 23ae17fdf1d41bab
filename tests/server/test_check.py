"""The proof of a log over HTTP, against a digest that was noted before."""

from __future__ import annotations

import httpx
from server_world import ORDER


async def test_a_noted_digest_is_found_again_or_is_a_problem(api: httpx.AsyncClient) -> None:
    await api.post("/v1/sessions", json={"id": "s-1"})
    await api.post("/v1/sessions/s-1/actions", json=ORDER)
    row = (await api.get("/v1/sessions/s-1")).json()
    await api.post("/v1/sessions/s-1/actions", json=ORDER)

    same = (await api.get("/v1/sessions/s-1/check", params={"since": row["digest"]})).json()
    assert (same["since"], same["problems"]) == (row["number"], [])
    assert same["number"] > row["number"]
    other = (await api.get("/v1/sessions/s-1/check", params={"since": "0" * 64})).json()
    assert other["since"] is None
    assert [problem["code"] for problem in other["problems"]] == ["since"]
    assert (await api.get("/v1/sessions/s-1/check")).json()["since"] is None


async def test_a_digest_that_is_none_is_refused(api: httpx.AsyncClient) -> None:
    await api.post("/v1/sessions", json={"id": "s-1"})
    for bad in ("", "abc", "A" * 64):
        assert (await api.get("/v1/sessions/s-1/check", params={"since": bad})).status_code == 400
