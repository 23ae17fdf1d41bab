"""Live runs over HTTP: begun, answered, stopped, retried, and over when the server is."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
from server_world import SEND, SHOP, START, client_of

from talkfold import Finish, Part
from talkfold.server import app
from talkfold.store import SessionStore

RUNS = "/v1/sessions/s-1/runs"


async def waiting_call(api: httpx.AsyncClient) -> dict[str, Any]:
    """The call that the run of ``s-1`` is parked on, as soon as it is."""
    with anyio.fail_after(10):
        while True:
            parked = (await api.get("/v1/sessions/s-1/calls/waiting")).json()
            if "waiting" in parked:
                return parked
            await anyio.sleep(0.01)


async def at_rest(api: httpx.AsyncClient) -> dict[str, Any]:
    """The state of ``s-1`` when no run owns it any more."""
    with anyio.fail_after(10):
        while "lease" in (await api.get("/v1/sessions/s-1")).json():  # noqa: ASYNC110 - it polls, as a client may
            await anyio.sleep(0.01)
    return (await api.get("/v1/sessions/s-1/state")).json()["state"]


async def test_a_run_goes_on_by_itself_and_waits_for_a_yes(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1")
    begun = await api.post(RUNS, json={"agent": "shop", "text": "Pay, please."})
    assert begun.status_code == 202
    parked = await waiting_call(api)
    assert parked["input"] == {"total": "25.00"}
    assert (parked["waiting"]["kind"], parked["waiting"]["prompt"]) == ("approval", "Pay 25.00?")
    call = parked["waiting"]["callId"]
    other = await api.post(f"/v1/sessions/s-1/calls/{call}/approve", json={"input": {"total": "1.00"}})
    assert (other.status_code, other.json()["code"]) == (409, "call_not_waiting")
    yes = await api.post(f"/v1/sessions/s-1/calls/{call}/approve", json={"input": parked["input"]})
    assert yes.status_code == 200
    again = await api.post(f"/v1/sessions/s-1/calls/{call}/approve", json={"input": parked["input"]})
    assert again.status_code == 409
    state = await at_rest(api)
    assert state["status"] == "idle"
    assert [part.get("state") for part in state["messages"][-1]["parts"]] == [None, "done", None]
    rows = (await api.get("/v1/sessions/s-1/actions")).json()["actions"]
    assert {row["run"] for row in rows} == {begun.json()["run"]}
    assert rows[begun.json()["number"] - 1]["action"]["text"] == "Pay, please."


async def test_a_no_is_read_by_the_agent(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1")
    await api.post(RUNS, json={"agent": "shop", "text": "Pay, please."})
    parked = await waiting_call(api)
    call = parked["waiting"]["callId"]
    no = await api.post(f"/v1/sessions/s-1/calls/{call}/deny", json={"input": parked["input"], "reason": "too dear"})
    assert no.status_code == 200
    state = await at_rest(api)
    assert "too dear" in str(state["messages"][-1]["parts"][1])


async def test_one_run_a_session(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1")
    first = (await api.post(RUNS, json={"agent": "shop", "text": "Pay."})).json()
    await waiting_call(api)
    second = await api.post(RUNS, json={"agent": "shop", "text": "Pay again."})
    assert (second.status_code, second.json()["code"], second.json()["run"]) == (409, "run_in_progress", first["run"])
    beside = await api.post("/v1/sessions/s-1/actions", json=SEND)
    assert (beside.status_code, beside.json()["code"]) == (409, "run_in_progress")
    third = await api.post(RUNS, json={"agent": "shop", "text": "Pay again.", "interrupt": True})
    assert third.status_code == 202
    await waiting_call(api)


async def test_stop_and_retry(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1")
    first = (await api.post(RUNS, json={"agent": "shop", "text": "Pay."})).json()
    await waiting_call(api)
    stopped = await api.post("/v1/sessions/s-1/stop", json={"reason": "enough"})
    assert stopped.json()["lease"]["run"] == first["run"]
    state = await at_rest(api)
    assert [part.get("state") for part in state["messages"][-1]["parts"]] == [None, "cancelled"]
    assert (await api.post("/v1/sessions/s-1/stop")).json() == {}
    assert (await api.post(RUNS, json={"agent": "shop", "retry": True})).status_code == 202
    await waiting_call(api)


async def test_what_begins_no_run_is_told(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1")
    for body, status, code in (
        ({"agent": "nobody", "text": "Hello"}, 404, "no_such_agent"),
        ({"agent": "shop"}, 400, "invalid_argument"),
        ({"agent": "shop", "text": ""}, 400, "invalid_argument"),
        ({"agent": "shop", "text": "x", "retry": True}, 400, "invalid_argument"),
        ({"agent": "shop", "retry": True}, 409, "nothing_to_retry"),
        ({"text": "x"}, 422, "invalid_action"),
        ({"agent": "shop", "txt": "x"}, 422, "invalid_action"),
    ):
        refused = await api.post(RUNS, json=body)
        assert (refused.status_code, refused.json()["code"]) == (status, code), body
    assert (await api.get("/v1/sessions/s-1")).json()["number"] == 0


async def test_a_dead_run_is_settled_on_demand(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1")
    await api.post("/v1/sessions/s-1/actions", json=[SEND, START])
    settled = (await api.post("/v1/sessions/s-1/settle")).json()
    assert (settled["settled"], settled["session"]["status"], settled["session"]["number"]) == (True, "idle", 3)
    assert (await api.post("/v1/sessions/s-1/settle")).json()["settled"] is False


async def test_runs_end_with_the_server_and_leave_nothing_open(store: SessionStore) -> None:
    async with app(store, agents={"shop": SHOP}) as application, client_of(application) as api:
        for session in ("s-1", "s-2"):
            await api.put(f"/v1/sessions/{session}")
            await api.post(f"/v1/sessions/{session}/runs", json={"agent": "shop", "text": "Pay."})
        await waiting_call(api)
    for session in ("s-1", "s-2"):
        row = await store.get(session)
        assert (row.status, row.lease) == ("idle", None)
        last = (await store.read(session, after=row.number - 1))[0].action
        assert last == Part(Finish("aborted"))
        assert not (await store.open_session(session)).settled
