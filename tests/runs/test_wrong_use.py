"""What programs and adapters get wrong at first: told in words, before anything is logged or lost."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from run_world import Agent, at_rest, calls, says

from talkfold import AgentStreamPart, Finish, InvalidArgument, TextDelta, ToolCall
from talkfold.runs import AgentRunRequest, SubAgent, Toolbox, start_run, tool, tool_outcome
from talkfold.store import SessionStore

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    return a + b


async def test_what_is_said_in_a_message_that_was_not_begun_is_not_lost(store: SessionStore) -> None:
    """The run begins it, and says whose fault it is; Retry then knows that the tool ran."""
    paid: list[int] = []

    def pay() -> str:
        paid.append(1)
        return "paid"

    async def play(request: AgentRunRequest) -> AsyncIterator[AgentStreamPart]:
        call = ToolCall("m", "c", "pay", {})
        yield call
        yield tool_outcome("c", await request.call_tool(call))
        yield TextDelta("m", "Paid.")
        yield Finish("stop")

    session = await store.create()
    async with start_run(store, session.id, Agent(play), text="go", tools=Toolbox(pay)) as run:
        ending = await run.wait()
    assert [(fault.code, fault.count) for fault in ending.faults] == [("unknown-message", 1)]
    state = await at_rest(store, session.id)
    assert [part.__struct_config__.tag for part in state.messages[1].parts] == ["tool", "text"]
    assert paid == [1]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"adapter": Agent}, r"not the class: write Agent\(\)"),
        ({"adapter": says}, "a function has not"),
        ({"adapter": None}, "a NoneType has not"),
        ({"tools": [add]}, r"write Toolbox\(tool, …\)"),
        ({"agents": SubAgent("a", Agent(says), "A.")}, "a list of SubAgent"),
        ({"agents": [Agent(says)]}, "a list of SubAgent"),
        ({"text": ""}, "nothing is said"),
    ],
)
async def test_what_is_not_what_it_should_be_is_told_before_anything_is_logged(
    store: SessionStore, wrong: dict[str, object], says: str
) -> None:
    session = await store.create()
    given: dict[str, object] = {"adapter": Agent(calls()), "text": "go", **wrong}
    with pytest.raises(InvalidArgument, match=says):
        async with start_run(store, session.id, **given):  # type: ignore[arg-type]
            pass
    assert (await store.get(session.id)).number == 0


@pytest.mark.parametrize("confirm", [True, 1, ["Sure?"]])
def test_a_confirmation_is_a_text_or_makes_one(confirm: object) -> None:
    with pytest.raises(InvalidArgument, match="a text, or a function that makes one"):
        tool(confirm=confirm)(add)  # type: ignore[call-overload]


def test_a_list_is_no_tool() -> None:
    with pytest.raises(InvalidArgument, match=r"write Toolbox\(\*tools\)"):
        Toolbox([add])  # type: ignore[arg-type]
