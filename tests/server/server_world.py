"""What the tests of the server run on: a client of an application, and conversations."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import uvicorn
from starlette.requests import Request

from talkfold.runs import Toolbox, tool
from talkfold.server import ALL_SCOPES, Agent, Application, Caller, NotAuthenticated, Scope
from talkfold.testing.scripted import ScriptedAdapter, call, say, script

SEND = {"type": "send", "id": "u-1", "text": "Two blue mugs, please."}
START = {"type": "part", "part": {"type": "message-start", "messageId": "a-1"}}
CALL = {"type": "part", "part": {"type": "tool-call", "messageId": "a-1", "id": "c1", "name": "find", "input": {}}}
RESULT = {"type": "part", "part": {"type": "tool-result", "id": "c1", "output": {"found": 2}}}
FINISH = {"type": "part", "part": {"type": "finish", "reason": "stop"}}
STOP = {"type": "stop"}


def said(text: str) -> dict[str, Any]:
    return {"type": "part", "part": {"type": "text-delta", "messageId": "a-1", "delta": text}}


ORDER: list[dict[str, Any]] = [SEND, START, said("I look. "), CALL, RESULT, said("There are two."), FINISH]
"""A whole turn: at rest after it."""


def pay(total: str) -> str:
    """Pay for what is in the basket."""
    return f"paid {total}"


_TURN = script(say("I pay. "), call("pay", total="25.00"), say("Done."))
SHOP = Agent(
    adapter=lambda: ScriptedAdapter(_TURN, _TURN, _TURN),
    tools=Toolbox(tool(pay, confirm="Pay 25.00?")),
)
"""An agent that asks before it pays."""


@asynccontextmanager
async def client_of(
    application: Application, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[httpx.AsyncClient]:
    """A client that speaks to the application without a socket."""
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        yield client


@asynccontextmanager
async def served(application: Application) -> AsyncGenerator[str]:
    """The application behind a real server on loopback; gives its address."""
    config = uvicorn.Config(application, host="127.0.0.1", port=0, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(server._serve)  # pyright: ignore[reportPrivateUsage] - without its signal handlers
        with anyio.fail_after(10):
            while not server.started:  # noqa: ASYNC110 - it has no event for it
                await anyio.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True


def by_token(request: Request) -> Caller:
    """``Bearer OWNER`` is that owner with all scopes, ``Bearer OWNER:read+run`` with those; ``root`` is everybody's."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind != "Bearer" or not token:
        raise NotAuthenticated("there is no token")
    owner, _, named = token.partition(":")
    scopes: frozenset[Scope] = frozenset(named.split("+")) if named else ALL_SCOPES  # type: ignore[arg-type]
    return Caller(None if owner == "root" else owner, scopes, name=owner)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def jsonl(rows: list[Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
