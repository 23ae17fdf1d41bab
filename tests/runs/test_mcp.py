"""MCP servers in processes of their own: what their tools look like, and what calls give back.

On asyncio and trio; what takes seconds, on asyncio only.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from mcp_cases import SERVERS, call, children, heard, names, raw, request, threads, wait_until, watched
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, TextContent

from talkfold import InvalidArgument
from talkfold.runs import (
    AbortController,
    Confirming,
    Toolbox,
    ToolContext,
    ToolOutput,
    ToolProgress,
    ToolSource,
    tool_outcome,
)
from talkfold.runs.mcp import McpServer


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before = children(), threads()
    yield
    assert wait_until(lambda: children() <= before[0]), "a child process is left"
    assert wait_until(lambda: threads() <= before[1]), "a thread is left"


@pytest.fixture
async def server(anyio_backend_name: str) -> AsyncIterator[McpServer]:
    async with raw() as opened:
        yield opened
    if anyio_backend_name == "asyncio":  # trio has no tasks without a parent
        await checkpoint()
        assert len(asyncio.all_tasks()) <= 2


# ---- the list of tools -----------------------------------------------------------------------------------------


async def test_it_is_a_source_with_all_pages_of_the_list(server: McpServer) -> None:
    assert isinstance(server, ToolSource)
    assert isinstance(server, Confirming)
    descriptors = server.descriptors()
    assert len(descriptors) == 26
    assert (descriptors[0].name, descriptors[0].description) == ("echo", "echo it")
    assert descriptors[0].input_schema == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "x-kept": [1, None],
    }


async def test_a_prefix_keeps_two_servers_apart() -> None:
    async with raw(prefix="a_") as one, raw(prefix="b_") as two:
        box = Toolbox(one, two)
        assert {"a_echo", "b_echo"} <= {each.name for each in box.descriptors()}
        first, second = await box.call(request("a_pid")), await box.call(request("b_pid"))
        assert first.text != second.text
        assert (await box.call(request("echo"))).text.startswith("Error [not_found] ")


async def test_names_that_providers_refuse_are_made_legal_and_mapped_back(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with raw("names", f"log={log}") as server:
        listed = names(server)
        async with raw("names") as again:
            assert names(again) == listed
        for name in listed:
            assert (await call(server, name)).structured_content == {}
    assert len(listed) == 6
    assert all(len(name) <= 64 and name.isascii() and name.replace("_", "").isalnum() for name in listed)
    assert listed[1] == "weather_get"
    assert not any(name.startswith("delegate_to_") for name in listed)
    assert [each["params"]["name"] for each in heard(log, "tools/call")] == [
        "weather.get",
        "weather_get",
        "weather/get",
        "delegate_to_x",
        "x" * 70,
        "grüß",
    ]


async def test_the_list_is_read_anew_when_it_changes(server: McpServer) -> None:
    for expected in ("grown26", "grown27"):
        assert (await call(server, "grow")).text == "grown"
        with anyio.fail_after(5):
            while expected not in names(server):  # noqa: ASYNC110
                await anyio.sleep(0.005)
        assert (await call(server, expected)).structured_content == {}


# ---- results ---------------------------------------------------------------------------------------------------


async def test_a_result_comes_back_exactly(server: McpServer) -> None:
    expected = json.loads((SERVERS / "blocks.json").read_text())
    output = await call(server, "blocks")
    assert output.raw == expected
    assert json.dumps(output.raw) == json.dumps(expected)  # the order of keys, 1.0 and not 1


async def test_arguments_arrive_exactly(tmp_path: Path) -> None:
    log = tmp_path / "log"
    given = {"n": 10**30, "none": None, "deep": {"none": None, "list": [1.0, "ü", {}]}}
    async with raw(f"log={log}") as server:
        assert (await call(server, "echo", given)).structured_content == given
        assert (await Toolbox(server).call(request("echo", None))).structured_content == {}
    assert json.dumps(heard(log, "tools/call")[0]["params"]["arguments"]) == json.dumps(given)


@pytest.mark.parametrize(
    ("name", "text", "blocks"),
    [
        ("failed", "Error [failed] it is raining", 1),
        ("coded", "Error [timeout] upstream", 1),
        ("mute", "Error [failed] mute: it says nothing more", 2),
    ],
)
async def test_a_failed_result_begins_with_a_code(server: McpServer, name: str, text: str, blocks: int) -> None:
    output = await call(server, name)
    assert (output.is_error, output.text, len(output.content)) == (True, text, blocks)
    assert tool_outcome("c1", output).error == text  # type: ignore[union-attr]
    assert output.meta == ({"a": 1} if name == "failed" else {})


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-32602, "Error [invalid_input] error: n is odd"),
        (-32601, "Error [not_found] error: no method"),
        (1, "Error [not_found] error: Unknown tool: error"),
        (-32001, "Error [timeout] error: went wrong"),
        (-32000, "Error [failed] error: went wrong"),
        (-32603, "Error [failed] error: went wrong"),
        (7, "Error [failed] error: went wrong"),
    ],
)
async def test_the_servers_errors_get_our_codes(server: McpServer, code: int, text: str) -> None:
    assert (await call(server, "error", {"n": code})).text == text


async def test_an_input_that_does_not_fit_is_not_sent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with raw(f"log={log}") as server:
        for given in ({"n": "one"}, [], "text", {"n": float("nan")}):
            assert (await call(server, "echo", given)).text.startswith("Error [invalid_input] echo: ")
        assert (await call(server, "echo", {"n": "one"})).text.endswith("n: 'one' is not of type 'integer'")
    assert heard(log, "tools/call") == []


@pytest.mark.parametrize("name", ["broken", "nan", "garbage_answer"])
async def test_a_result_that_is_none_is_a_failed_call(server: McpServer, name: str) -> None:
    assert (await call(server, name)).text.startswith(f"Error [failed] {name}: ")
    assert not (await call(server, "echo")).is_error


async def test_lines_that_are_no_messages_are_passed_over(server: McpServer, caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "talkfold.runs.mcp")
    assert (await call(server, "garbage")).text == "still here"
    assert sum("no message" in record.message for record in caplog.records) == 5


async def test_large_results(server: McpServer) -> None:
    assert (await call(server, "huge", {"n": 8 * 2**20})).text == "x" * 8 * 2**20
    assert "its result cannot be kept" in (await call(server, "huge", {"n": 17 * 2**20})).text
    assert not (await call(server, "echo")).is_error


async def test_calls_from_many_tasks_at_once(server: McpServer) -> None:
    outputs: dict[int, ToolOutput] = {}

    async def calling(number: int) -> None:
        outputs[number] = await call(server, "echo" if number % 2 else "slow", {"n": number})

    start = monotonic()
    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(calling, number)
    assert monotonic() - start < 3
    assert all(outputs[n].structured_content == {"n": n} for n in range(1, 40, 2))
    assert all(outputs[n].text == "slept" for n in range(0, 40, 2))


async def test_progress_comes_in_order_and_before_the_result(server: McpServer) -> None:
    seen: list[ToolProgress] = []
    assert (await call(server, "progress", context=watched(seen))).text == "done"
    assert seen == [ToolProgress("c1", step, 20, f"step {step}") for step in range(1, 21)]


# ---- what the server asks and says -----------------------------------------------------------------------------


async def test_the_servers_requests_are_refused_politely(server: McpServer) -> None:
    answers = json.loads((await call(server, "ask")).text)
    assert [answer["error"]["message"] for answer in answers if "error" in answer] == [
        "Sampling not supported",
        "Elicitation not supported",
        "List roots not supported",
        "Method not found",
    ]
    assert answers[3]["result"] == {}
    assert not (await call(server, "echo")).is_error


async def test_the_servers_requests_are_answered_by_what_is_given() -> None:
    async def sampling(context: Any, params: Any) -> CreateMessageResult:
        content = TextContent(type="text", text=f"not more than {params.max_tokens}")
        return CreateMessageResult(role="assistant", content=content, model="m")

    async def elicitation(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[])

    async with raw(sampling=sampling, elicitation=elicitation, roots=roots) as server:
        answers = json.loads((await call(server, "ask")).text)
    assert answers[0]["result"]["content"]["text"] == "not more than 5"
    assert answers[1]["result"]["action"] == "decline"
    assert answers[2]["result"] == {"roots": []}


async def test_what_the_server_logs_is_logged(server: McpServer, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG, "talkfold.runs.mcp")
    await call(server, "log")
    await call(server, "echo")
    await anyio.sleep(0.05)
    said = [(r.levelname, r.message) for r in caplog.records if "disk" in r.message]
    assert sorted(said) == [
        ("CRITICAL", "python raw.py db: {'disk': 'emergency'}"),
        ("DEBUG", "python raw.py db: {'disk': 'debug'}"),
        ("WARNING", "python raw.py db: {'disk': 'warning'}"),
    ]


# ---- asking the person -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("confirm", "asked"),
    [
        (None, {}),
        ("always", {"echo": "Allow echo?", "grow": "Allow grow?", "die": "Allow die?", "log": "Allow log?"}),
        ("destructive", {"die": "Allow die?", "log": "Allow log?"}),
        (lambda call, hints: f"{call.name} {hints}?" if hints else None, {"echo": "echo {'readOnlyHint': True}?"}),
    ],
)
async def test_what_the_person_is_asked(confirm: Any, asked: dict[str, str]) -> None:
    async with raw(confirm=confirm) as server:
        box = Toolbox(server)
        texts = {name: box.confirmation(request(name)) for name in ("echo", "grow", "die", "log")}
        for name, text in asked.items():
            assert texts[name] == text
        if not callable(confirm):
            assert {name for name, text in texts.items() if text} == set(asked)
        assert box.confirmation(request("die", {"n": "one"})) is None
        assert server.confirmation(request("unknown")) is None


async def test_a_question_that_cannot_be_made_is_asked_all_the_same() -> None:
    async with raw(confirm=lambda call, hints: call.input.pop("x")) as server:
        assert server.confirmation(request("echo")) == "Allow echo?"
        given = {"x": "Really?"}
        assert server.confirmation(request("echo", given)) == "Really?"
        assert given == {"x": "Really?"}


# ---- setting up ------------------------------------------------------------------------------------------------


async def test_the_environment_and_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "s")
    async with raw(env={"KEY": "k"}, cwd=tmp_path) as server:
        where: Any = (await call(server, "where")).structured_content
    assert where["cwd"] == str(tmp_path.resolve())
    assert where["env"]["KEY"] == "k"
    assert "PATH" in where["env"]
    assert "MY_SECRET" not in where["env"]


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"start_timeout": float("nan")}, {"prefix": "a b"}, {"confirm": "sometimes"}]
)
def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(InvalidArgument):
        raw(**options)


@pytest.mark.parametrize("url", ["", "shop", "ftp://shop/mcp", "http://", "http://a:b@c:x/"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(InvalidArgument):
        McpServer.http(url)


def test_the_sdk_is_loaded_by_nothing_else() -> None:
    code = "import sys, talkfold.runs; assert not {'mcp', 'mcp_types', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_sdk_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['mcp_types'] = None\nimport talkfold.runs.mcp"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: talkfold.runs.mcp needs the MCP SDK" in ended.stderr
    assert "pip install 'talkfold[mcp]'" in ended.stderr


# ---- a server that the SDK makes -------------------------------------------------------------------------------


class TestOnAsyncio:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_a_server_of_the_sdk(self, tmp_path: Path) -> None:
        seen: list[ToolProgress] = []
        path = tmp_path / "file"
        async with McpServer.stdio(sys.executable, str(SERVERS / "sdk.py"), confirm="destructive") as server:
            assert names(server)[0] == "add"
            assert (await call(server, "add", {"a": 1, "b": 2})).structured_content == {"result": 3}
            assert (await call(server, "add", {"a": 1})).text.startswith("Error [invalid_input] add: 'b' is a required")
            assert (await call(server, "fail")).text.startswith("Error [failed] ")
            assert (await call(server, "count", context=watched(seen))).text == "counted"
            assert [(each.progress, each.message) for each in seen] == [(1, "step 1"), (2, "step 2"), (3, "step 3")]
            assert (server.confirmation(request("add", {"a": 1, "b": 2})), server.confirmation(request("fail"))) == (
                None,
                "Allow fail?",
            )
            stop = AbortController()
            until_it_works = ToolContext("c1", stop.signal, lambda progress: stop.abort("stop"))
            output = await call(server, "wait", {"path": str(path)}, until_it_works)
            assert output.text == "Error [cancelled] wait: stopped (stop)"
            assert not (await call(server, "add", {"a": 1, "b": 2})).is_error
            assert path.read_text() == "cancelled\n"
            assert "exit code 3" in (await call(server, "die")).text
            assert not (await call(server, "add", {"a": 1, "b": 2})).is_error


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples" / "mcp_tools.py"
    ended = subprocess.run([sys.executable, "-W", "error", str(example)], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "['fahrenheit', 'weather_temperature', 'weather_forget']",
        "{'result': 31.0}",
        "Allow weather_forget?",
        "Error [invalid_input] weather_temperature: 'city' is a required property",
    ]
