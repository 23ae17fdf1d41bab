"""A run in a store that redacts: its agent works with what there is, its log has none of the secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from talkfold import Finish, MessageStart, Part, Reasoning, RedactionFailed, Send, TextDelta, ToolCall, ToolResult
from talkfold.actions import AgentStreamPart
from talkfold.redaction import Redaction
from talkfold.runs import AgentRunRequest, Toolbox, ToolCallRequest, retry_run, start_run, tool
from talkfold.store import SessionStore, open_store

pytestmark = pytest.mark.anyio
SECRET = "sk-123456"


class Agent:
    """Says a secret in small pieces, gives it to a tool, and says what the tool said."""

    id = "agent"

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        self.asked.append(request.messages[0].parts[0])
        yield MessageStart("m")
        for letter in f"It is {SECRET}, ":
            yield TextDelta("m", letter)
        yield Reasoning("m", SECRET)
        yield ToolCall("m", "c", "sign_in", {"password": "hunter2", "key": SECRET})
        output = await request.call_tool(ToolCallRequest("c", "sign_in", {"password": "hunter2", "key": SECRET}))
        yield ToolResult("c", output.raw)
        yield MessageStart("n")
        for letter in "I am in: " + SECRET:
            yield TextDelta("n", letter)
        yield Finish("stop")


async def _log(store: SessionStore) -> str:
    return repr(await store.read("s"))


@pytest.mark.parametrize("place", ["memory:", "chat.db"])
async def test_the_log_has_no_secret_and_the_run_has_them_all(place: str, tmp_path: object) -> None:
    seen: list[tuple[str, str]] = []

    @tool
    def sign_in(password: str, key: str) -> str:
        """Sign in."""
        seen.append((password, key))
        return f"welcome, {key}"

    where = place if place == "memory:" else f"{tmp_path}/{place}"
    async with open_store(where, redact=Redaction(patterns=[r"sk-\d{6}"], fields=["password"])) as store:
        await store.create("s")
        agent = Agent()
        async with start_run(store, "s", agent, text=f"Use {SECRET}", tools=Toolbox(sign_in)) as run:
            said = "".join([part.delta async for part in run if isinstance(part, TextDelta)])
        assert said == f"It is {SECRET}, I am in: {SECRET}"
        assert seen == [("hunter2", SECRET)]
        assert agent.asked[0].text == "Use [redacted]"  # type: ignore[attr-defined]
        log = await _log(store)
        assert SECRET not in log
        assert "hunter2" not in log
        state = (await store.state("s")).state
        texts = [part.text for message in state.messages for part in message.parts if hasattr(part, "text")]
        assert texts == ["Use [redacted]", "It is [redacted], ", "[redacted]", "I am in: [redacted]"]
        rows = [row for row in await store.read("s") if isinstance(row.action, Part)]
        assert sum(isinstance(row.action.part, TextDelta) for row in rows) == len(said)  # type: ignore[union-attr]
        assert (await store.check("s")).problems == ()


async def test_whatever_ends_a_run_no_held_text_is_lost() -> None:
    class Broken:
        id = "broken"

        async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            yield MessageStart("m")
            yield TextDelta("m", "as far as sk-12")
            yield TextDelta("m", "3456")
            raise RuntimeError("no more")

    async with open_store("memory:", redact=Redaction(patterns=[r"sk-\d{6}"])) as store:
        await store.create("s")
        async with start_run(store, "s", Broken(), text="Go") as run:
            await run.wait()
        state = (await store.state("s")).state
        assert state.messages[-1].parts[0].text == "as far as [redacted]"  # type: ignore[union-attr]
        assert state.status == "error"


async def test_a_rule_that_fails_ends_the_run_and_is_told() -> None:
    def picky(text: str) -> str:
        return text if "number" not in text else str(int(text))

    class Talker:
        id = "talker"

        async def run(self, request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
            yield MessageStart("m")
            yield TextDelta("m", "the number " * 30)
            yield TextDelta("m", "the number " * 30)
            yield Finish("stop")

    async with open_store("memory:", redact=Redaction(functions=[picky])) as store:
        await store.create("s")
        with pytest.raises(RedactionFailed):
            async with start_run(store, "s", Talker(), text="Go") as run:
                await run.wait()
        rows = await store.read("s")
        assert isinstance(rows[0].action, Send)
        assert "number the" not in repr(rows)
        assert (await store.get("s")).status == "error"


async def test_a_finished_call_of_a_sub_agent_is_found_again() -> None:
    from talkfold.model import AgentMessage, AgentRun, ToolPart
    from talkfold.runs.finished import FinishedCalls

    redaction = Redaction(fields=["password"])
    done = ToolPart("d", "sign_in", {"password": "[redacted]", "n": 1}, "done", output="ok")
    nested = AgentRun("helper", (AgentMessage("x", "assistant", (done,)),))
    call = ToolPart("c", "delegate_to_helper", {}, "cancelled", agent=nested)
    messages = [AgentMessage("u", "user", ()), AgentMessage("m", "assistant", (call,))]
    finished = FinishedCalls(messages, redaction)
    assert finished.take(("helper",), "sign_in", {"password": "hunter2", "n": 2}) is None
    assert finished.take(("helper",), "sign_in", {"password": "hunter2", "n": 1}) == done
    assert finished.take(("helper",), "sign_in", {"password": "hunter2", "n": 1}) is None


async def test_retry_sends_what_the_log_has() -> None:
    async with open_store("memory:", redact=Redaction(patterns=[r"sk-\d{6}"])) as store:
        await store.create("s", actions=[Send("u", SECRET), Part(MessageStart("m")), Part(Finish("aborted"))])
        agent = Agent()
        async with retry_run(store, "s", agent) as run:
            await run.wait()
        assert agent.asked[0].text == "[redacted]"  # type: ignore[attr-defined]
        assert SECRET not in await _log(store)
