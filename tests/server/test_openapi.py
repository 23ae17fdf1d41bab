"""The OpenAPI document says what is served."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from talkfold.server.table import ENDPOINTS


@pytest.fixture
async def document(api: httpx.AsyncClient) -> dict[str, Any]:
    return (await api.get("/openapi.json")).json()


async def test_it_has_every_endpoint_and_nothing_else(document: dict[str, Any]) -> None:
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    names = {piece.split('"')[0] for piece in text.split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])


async def test_actions_are_told_apart_by_their_type(document: dict[str, Any]) -> None:
    body = document["paths"]["/v1/sessions/{session}/actions"]["post"]["requestBody"]["content"]["application/json"]
    action = body["schema"]["anyOf"][0]["anyOf"][0]
    assert action["discriminator"]["propertyName"] == "type"
    assert set(action["discriminator"]["mapping"]) == {"send", "part", "toolPhase", "stop", "retry", "reset"}
