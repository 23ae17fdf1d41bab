"""MCP servers in processes of their own: what their tools look like, what calls give back, and every way to die.

On asyncio and trio; what takes seconds, on asyncio only.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from mcp_cases import SERVERS, alive, call, children, heard, names, raw, request, threads, wait_until, watched
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
    assert len(descriptors) == 25
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
    for expected in ("grown25", "grown26"):
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


# ---- giving up -------------------------------------------------------------------------------------------------


def cancelled_ids(log: Path) -> list[Any]:
    wait_until(lambda: heard(log, "notifications/cancelled"))
    return [each["params"]["requestId"] for each in heard(log, "notifications/cancelled")]


async def test_a_timeout_is_told_to_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with raw(f"log={log}", timeout=0.2) as server:
        output = await call(server, "deaf")
        assert output.text == "Error [timeout] deaf: no result within 0.2 s"
        assert not (await call(server, "echo")).is_error
    assert cancelled_ids(log) == [heard(log, "tools/call")[0]["id"]]


@pytest.mark.parametrize("boxed", [True, False])
async def test_stop_comes_back_at_once_and_is_told_to_the_server(tmp_path: Path, boxed: bool) -> None:
    log, stop = tmp_path / "log", AbortController()

    async def press() -> None:
        await anyio.sleep(0.2)
        stop.abort("stop")

    async with raw(f"log={log}") as server, anyio.create_task_group() as group:
        group.start_soon(press)
        start, source = monotonic(), Toolbox(server) if boxed else server
        output = await source.call(request("deaf"), ToolContext("c1", stop.signal))
        assert output.text == "Error [cancelled] deaf: stopped (stop)"
        assert monotonic() - start < 0.5
    assert cancelled_ids(log) == [heard(log, "tools/call")[0]["id"]]


async def test_a_cancelled_caller_is_not_held_up_and_the_server_hears_of_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with raw(f"log={log}") as server:
        with anyio.move_on_after(0.2) as scope:
            await call(server, "deaf")
            await checkpoint()
        assert scope.cancelled_caught
        assert not (await call(server, "echo")).is_error
    assert cancelled_ids(log) == [heard(log, "tools/call")[0]["id"]]


async def test_a_server_that_reads_nothing_holds_nobody_up() -> None:
    async with raw(timeout=0.2) as server:
        pid = int((await call(server, "pid")).text)
        start = monotonic()
        assert (await call(server, "asleep")).text.startswith("Error [timeout] asleep: ")
        assert (await call(server, "echo", {"long": "x" * 2**22})).text.startswith("Error [timeout] echo: ")
        with anyio.move_on_after(0.1):
            await call(server, "echo", {"long": "x" * 2**22})
            await checkpoint()
    assert monotonic() - start < 3
    assert not alive(pid)


# ---- servers that die ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("die", "exit code 3; its last words: the disk is full | giving up"),
        ("killed", "ended by SIGKILL"),
        ("orphan", "exit code 4"),
        ("close_stdout", "is gone"),
    ],
)
async def test_a_server_that_dies_in_a_call_is_started_again(server: McpServer, name: str, what: str) -> None:
    before = (await call(server, "pid")).text
    with anyio.fail_after(8):
        output = await call(server, name)
    assert output.text.startswith(f"Error [unavailable] {name}: MCP server python")
    assert "raw.py" in output.text
    assert what in output.text
    assert names(server)[0] == "echo"
    after = (await call(server, "pid")).text
    assert after.isdigit()
    assert after != before
    assert not alive(int(before))


async def test_all_calls_that_run_come_back_when_it_dies(server: McpServer) -> None:
    texts: list[str] = []

    async def calling() -> None:
        texts.append((await call(server, "deaf")).text)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(calling)
        await anyio.sleep(0.1)
        await call(server, "die")
    assert len(texts) == 5
    assert all(text.startswith("Error [unavailable] deaf: ") and "exit code 3" in text for text in texts)


async def test_a_server_that_dies_between_calls_is_started_by_the_next(server: McpServer) -> None:
    pid = int((await call(server, "pid")).text)
    os.kill(pid, signal.SIGKILL)
    await anyio.sleep(0.3)
    assert (await call(server, "pid")).text.isdigit()


async def test_it_is_not_started_again_and_again() -> None:
    async with raw(restarts=2) as server:
        for _ in range(3):
            assert "exit code 3" in (await call(server, "die")).text
        start = monotonic()
        output = await call(server, "echo")
        assert output.text.startswith("Error [unavailable] echo: MCP server python raw.py ended too often")
        assert monotonic() - start < 0.5


async def test_a_server_that_cannot_start_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with raw("crash_later", f"log={log}", name="weather") as server:
        await call(server, "die")
        output = await call(server, "echo")
        assert output.text.startswith("Error [unavailable] echo: MCP server weather is gone: it ended; exit code 1")
        assert "no licence any more" in output.text


@pytest.mark.parametrize(
    ("modes", "what"),
    [
        (["crash"], "exit code 1; its last words: no licence"),
        (["silent"], "it did not answer within 0.3 s"),
        (["noise"], "it did not answer within 0.3 s"),
        (["die_listing"], "exit code 5"),
        (["old"], "1999-01-01"),
    ],
)
async def test_entering_a_server_that_does_not_start(modes: list[str], what: str) -> None:
    start = monotonic()
    with pytest.raises(ConnectionError, match="MCP server weather is gone") as caught:
        async with raw(*modes, name="weather", start_timeout=0.3 if what.startswith("it did") else 10):
            pass
    assert what in str(caught.value)
    assert monotonic() - start < 3


async def test_a_command_that_is_not_there() -> None:
    with pytest.raises(ConnectionError, match="FileNotFoundError"):
        async with McpServer.stdio("/no/such/command"):
            pass


async def test_a_greeting_on_stdout_harms_nothing() -> None:
    async with raw("chatty") as server:
        assert not (await call(server, "echo")).is_error


# ---- the end ---------------------------------------------------------------------------------------------------


async def test_calls_that_run_when_it_is_left_come_back() -> None:
    texts: list[str] = []
    server = raw()

    async def calling() -> None:
        texts.append((await call(server, "deaf")).text)

    async with anyio.create_task_group() as group:
        async with server:
            group.start_soon(calling)
            await anyio.sleep(0.1)
    assert texts == ["Error [unavailable] deaf: MCP server python raw.py was closed"]
    assert (await call(server, "echo")).text == "Error [unavailable] echo: MCP server python raw.py is not open"
    async with server:
        assert not (await call(server, "echo")).is_error
        with pytest.raises(InvalidArgument):
            await server.__aenter__()


async def test_cancelling_the_scope_around_is_clean() -> None:
    pids: list[int] = []
    with anyio.move_on_after(10) as scope:
        async with raw() as server, anyio.create_task_group() as group:
            pids.append(int((await call(server, "pid")).text))
            group.start_soon(call, server, "deaf")
            await anyio.sleep(0.05)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert not alive(pids[0])


async def test_cancelling_the_start_is_clean() -> None:
    with anyio.move_on_after(0.2) as scope:
        async with raw("silent"):
            pass
    assert scope.cancelled_caught


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(LookupError, match="mine"):
        async with raw():
            raise LookupError("mine")


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


def test_the_sdk_is_loaded_by_nothing_else() -> None:
    code = "import sys, talkfold.runs; assert not {'mcp', 'mcp_types', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_sdk_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['mcp_types'] = None\nimport talkfold.runs.mcp"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: talkfold.runs.mcp needs the MCP SDK" in ended.stderr
    assert "pip install 'talkfold[mcp]'" in ended.stderr


# ---- a server that the SDK makes -------------------------------------------------------------------------------


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


# ---- on asyncio only: what takes seconds, or is about asyncio itself ---------------------------------------------


class TestOnAsyncio:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_a_message_without_an_end_is_not_read_for_ever(self) -> None:
        async with raw() as server:
            assert "a message of more than 67108864 bytes" in (await call(server, "endless")).text
            assert not (await call(server, "echo")).is_error

    @pytest.mark.parametrize(("mode", "seconds"), [("", 1.0), ("lingers", 2.0), ("stubborn", 5.0)])
    async def test_leaving_ends_the_process(self, mode: str, seconds: float) -> None:
        async with raw(mode) as server:
            pid = int((await call(server, "pid")).text)
            start = monotonic()
        assert monotonic() - start < seconds
        assert not alive(pid)

    async def test_cancelling_the_task_around_is_clean(self) -> None:
        pids: list[int] = []

        async def using() -> None:
            async with raw() as server:
                pids.append(int((await call(server, "pid")).text))
                await asyncio.sleep(60)

        task = asyncio.create_task(using())
        while not pids:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(pids[0])

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
            with anyio.move_on_after(0.3):
                await call(server, "wait", {"path": str(path)})
                await checkpoint()
            assert not (await call(server, "add", {"a": 1, "b": 2})).is_error
            assert path.read_text() == "cancelled\n"
            assert "exit code 3" in (await call(server, "die")).text
            assert not (await call(server, "add", {"a": 1, "b": 2})).is_error
