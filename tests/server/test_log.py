"""A log over HTTP: appended whole, read in pages, folded at any number."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from server_world import CALL, ORDER, SEND, STOP, bearer, jsonl, said

PATH = "/v1/sessions/s-1/actions"
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(autouse=True)
async def _a_session(api: httpx.AsyncClient) -> None:
    await api.put("/v1/sessions/s-1")


async def test_one_an_array_or_lines(api: httpx.AsyncClient) -> None:
    one = await api.post(PATH, json=SEND)
    assert (one.status_code, one.json(), one.headers["etag"]) == (
        201,
        {"first": 1, "last": 1, "repeated": False},
        '"1"',
    )
    assert (await api.post(PATH, json=ORDER[1:4])).json()["last"] == 4
    assert (await api.post(PATH, content=jsonl(ORDER[4:]), headers=NDJSON)).json() == {
        "first": 5,
        "last": 7,
        "repeated": False,
    }
    read = (await api.get(PATH)).json()["actions"]
    assert [row["action"] for row in read] == ORDER
    assert [row["number"] for row in read] == list(range(1, 8))


async def test_a_body_is_kept_as_it_came(api: httpx.AsyncClient) -> None:
    body = b'{"type":"send", "id":"u-1","text":"\\ud83d \xc3\xa9","n":1.50}'
    await api.post(PATH, content=body, headers={"Content-Type": "application/json"})
    lines = await api.get(PATH, headers={"Accept": "application/x-ndjson"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert body in lines.content


async def test_a_batch_is_whole_or_nothing(api: httpx.AsyncClient) -> None:
    refused = await api.post(PATH, json=[SEND, {"type": "part", "part": {"type": "text-delta", "messageId": 1}}])
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["pointer"]) == (422, "invalid_action", "/1/part/messageId")
    assert (await api.get("/v1/sessions/s-1")).json()["number"] == 0


async def test_if_match_is_the_number(api: httpx.AsyncClient) -> None:
    assert (await api.post(PATH, json=ORDER[:3], headers={"If-Match": '"0"'})).status_code == 201
    late = await api.post(PATH, json=STOP, headers={"If-Match": '"1"'})
    problem = late.json()
    assert (late.status_code, problem["code"], problem["expected"], problem["actual"]) == (
        412,
        "version_conflict",
        1,
        3,
    )
    assert [row["action"] for row in problem["missing"]] == ORDER[1:3]
    assert late.headers["etag"] == '"3"'
    assert (await api.post(PATH, json=STOP, headers={"If-Match": late.headers["etag"]})).status_code == 201
    assert (await api.post(PATH, json=STOP, headers={"If-Match": "*"})).status_code == 201


async def test_if_none_match_makes_the_session(api: httpx.AsyncClient) -> None:
    new = {"If-None-Match": "*"}
    assert (await api.post("/v1/sessions/s-2/actions", json=SEND, headers=new)).status_code == 201
    again = await api.post("/v1/sessions/s-2/actions", json=SEND, headers=new)
    assert (again.status_code, again.json()["expected"], again.json()["actual"]) == (412, "absent", 1)
    assert (await api.post("/v1/sessions/s-3/actions", json=SEND)).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"If-Match": "1"},
        {"If-Match": 'W/"1"'},
        {"If-Match": '"1", "2"'},
        {"If-Match": '"-1"'},
        {"If-Match": '"99999999999999999999"'},
        {"If-None-Match": '"1"'},
        {"If-Match": '"1"', "If-None-Match": "*"},
    ],
)
async def test_a_condition_that_means_nothing_is_refused(api: httpx.AsyncClient, headers: dict[str, str]) -> None:
    refused = await api.post(PATH, json=SEND, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_header")
    assert (await api.get("/v1/sessions/s-1")).json()["number"] == 0


async def test_a_key_makes_it_safe_to_repeat(api: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = await api.post(PATH, json=ORDER, headers=key)
    again = await api.post(PATH, json=ORDER, headers=key)
    assert (again.status_code, again.json()) == (201, {**first.json(), "repeated": True})
    other = await api.post(PATH, json=STOP, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert (await api.get("/v1/sessions/s-1")).json()["number"] == len(ORDER)


async def test_a_key_holds_among_requests_at_once(api: httpx.AsyncClient) -> None:
    sent = [api.post(PATH, json=SEND, headers={"Idempotency-Key": "k"}) for _ in range(20)]
    answers = await asyncio.gather(*sent)
    assert {answer.status_code for answer in answers} == {201}
    assert sum(not answer.json()["repeated"] for answer in answers) == 1
    assert (await api.get("/v1/sessions/s-1")).json()["number"] == 1


async def test_an_envelope_says_what_belongs_to_an_action(api: httpx.AsyncClient) -> None:
    entry = {
        "action": SEND,
        "meta": {"page": "/cart"},
        "run": "r-1",
        "actor": "import",
        "time": "2026-01-31T12:00:00.000Z",
    }
    assert (await api.post(PATH, json=entry)).status_code == 201
    (row,) = (await api.get(PATH)).json()["actions"]
    assert {name: row[name] for name in entry} == entry


@pytest.mark.parametrize("field", ["actor", "time"])
async def test_only_the_trusted_side_says_who_and_when(shared: httpx.AsyncClient, field: str) -> None:
    await shared.put("/v1/sessions/s-2", headers=bearer("ann"))
    entry = {"action": SEND, field: "2026-01-31T12:00:00.000Z"}
    refused = await shared.post("/v1/sessions/s-2/actions", json=entry, headers=bearer("ann"))
    assert (refused.status_code, refused.json()["parameter"]) == (400, field)
    await shared.post("/v1/sessions/s-2/actions", json=SEND, headers=bearer("ann"))
    (row,) = (await shared.get("/v1/sessions/s-2/actions", headers=bearer("ann"))).json()["actions"]
    assert row["actor"] == "ann"


async def test_pages_of_actions_follow_each_other(api: httpx.AsyncClient) -> None:
    await api.post(PATH, json=ORDER)
    seen: list[object] = []
    after = 0
    while True:
        page = (await api.get(PATH, params={"after": after, "limit": 3})).json()
        seen += [row["action"] for row in page["actions"]]
        if "next" not in page:
            break
        after = page["next"]
    assert seen == ORDER
    assert (await api.get(PATH, params={"after": 8})).json()["code"] == "cursor_ahead"


async def test_the_state_at_any_number_never_changes(api: httpx.AsyncClient) -> None:
    await api.post(PATH, json=ORDER[:4])
    then = await api.get("/v1/sessions/s-1/state?at=4")
    assert then.headers["cache-control"] == "private, max-age=31536000, immutable"
    (call,) = (part for part in then.json()["state"]["messages"][-1]["parts"] if part["type"] == "tool")
    assert call["state"] == "running"
    await api.post(PATH, json=ORDER[4:])
    assert (await api.get("/v1/sessions/s-1/state?at=4")).content == then.content
    now = await api.get("/v1/sessions/s-1/state")
    assert (now.json()["number"], now.headers["etag"]) == (len(ORDER), f'"{len(ORDER)}"')
    assert (await api.get("/v1/sessions/s-1/state", headers={"If-None-Match": now.headers["etag"]})).status_code == 304
    await api.post(PATH, json=SEND)
    assert (await api.get("/v1/sessions/s-1/state", headers={"If-None-Match": now.headers["etag"]})).status_code == 200


async def test_a_step_says_what_it_changed(api: httpx.AsyncClient) -> None:
    await api.post(PATH, json=ORDER)
    step = (await api.get("/v1/sessions/s-1/steps/1")).json()
    assert (step["action"]["action"], step["before"], step["after"]) == (SEND, "idle", "streaming")
    assert step["changes"]["levels"][0]["messages"][0]["type"] == "insert-message"
    nothing = (await api.get("/v1/sessions/s-1/steps/2")).json()
    assert nothing["before"] == nothing["after"] == "streaming"
    for wrong, status in (("0", 400), ("x", 400), ("-1", 400), ("8", 416), ("9" * 30, 400)):
        assert (await api.get(f"/v1/sessions/s-1/steps/{wrong}")).status_code == status


async def test_a_diff_is_between_any_two_numbers(api: httpx.AsyncClient) -> None:
    await api.post(PATH, json=ORDER)
    whole = (await api.get("/v1/sessions/s-1/diff", params={"from": 0, "to": 7})).json()
    assert (whole["from"], whole["to"]) == (0, 7)
    assert [each["type"] for each in whole["diff"]["levels"][0]["messages"]] == ["insert-message", "insert-message"]
    last = (await api.get("/v1/sessions/s-1/diff")).json()
    assert (last["from"], last["to"]) == (6, 7)
    assert (await api.get("/v1/sessions/s-1/diff", params={"from": 7, "to": 0})).status_code == 200


@pytest.mark.parametrize(
    ("content", "headers", "code"),
    [
        (b"{", {}, "invalid_json"),
        (b"", {}, "invalid_json"),
        (b"[]", {}, "invalid_argument"),
        (b'{"type":"send","id":"u","text":NaN}', {}, "invalid_json"),
        (b"[" * 5_000, {}, "too_deep"),
        (b"{}", {"Content-Type": "text/plain"}, "unsupported_media"),
        (b"{}", {"Content-Type": ""}, "unsupported_media"),
        (b"{}", {"Content-Encoding": "gzip"}, "unsupported_media"),
    ],
)
async def test_what_is_no_action_is_refused(
    api: httpx.AsyncClient, content: bytes, headers: dict[str, str], code: str
) -> None:
    refused = await api.post(PATH, content=content, headers={"Content-Type": "application/json", **headers})
    assert refused.json()["code"] == code
    assert refused.status_code == refused.json()["status"]
    assert refused.headers["content-type"] == "application/problem+json"


async def test_findings_lanes_times_and_blame(api: httpx.AsyncClient) -> None:
    await api.post(PATH, json=[*ORDER[:4], STOP])
    found = (await api.get("/v1/sessions/s-1/findings")).json()
    assert found["number"] == 5
    assert (await api.get("/v1/sessions/s-1/lanes")).json()["lanes"]
    assert (await api.get("/v1/sessions/s-1/stats")).status_code == 200
    blame = (await api.get("/v1/sessions/s-1/blame", params={"pointer": "/messages/1/parts/0/text"})).json()
    assert [each["number"] for each in blame["contributions"]] == [3]
    check = (await api.get("/v1/sessions/s-1/check")).json()
    assert (check["problems"], check["digest"]) == ([], (await api.get("/v1/sessions/s-1")).json()["digest"])


async def test_retry_is_shown_before_it_is_logged(api: httpx.AsyncClient) -> None:
    await api.post(PATH, json=[*ORDER[:5], said("There"), CALL | {"part": CALL["part"] | {"id": "c2"}}, STOP])
    shown = await api.get("/v1/sessions/s-1/retry")
    plan = shown.json()
    assert [part.get("id") for part in plan["messages"][-1]["parts"]] == [None, "c1"]
    assert [each["reason"] for each in plan["dropped"]] == ["reply-cut-short", "cancelled-call"]
    assert (await api.get("/v1/sessions/s-1")).json()["number"] == 8
    openai = (await api.get("/v1/sessions/s-1/retry", params={"form": "openai"})).json()
    assert [message["role"] for message in openai["messages"]] == ["user", "assistant", "tool"]
    logged = await api.post("/v1/sessions/s-1/retry", headers={"If-Match": '"8"'})
    assert (logged.status_code, logged.json()["number"]) == (201, 9)
    assert logged.json()["messages"] == plan["messages"]
    assert (await api.get("/v1/sessions/s-1/state")).json()["state"]["messages"] == plan["messages"]
    assert json.loads((await api.post("/v1/sessions/s-1/retry", headers={"If-Match": '"8"'})).content)["actual"] == 9
    await api.put("/v1/sessions/s-9")
    assert (await api.post("/v1/sessions/s-9/retry")).json()["code"] == "nothing_to_retry"
