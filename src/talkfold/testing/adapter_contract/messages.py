"""The contract of what an adapter says: who it is, its messages and ids, its end."""

from __future__ import annotations

import anyio

from ...actions import Finish, MessageStart, RunError, TextDelta
from ...model import AgentMessage, TextPart, ToolPart
from .record import Record
from .uses import OUTPUT, PROBE, Scenario, UsesAdapter, given

__all__ = ("Messages",)


class Messages(UsesAdapter):
    def test_it_has_an_id_and_a_label(self) -> None:
        adapter = self.adapter()
        for text in (adapter.id, adapter.label):
            assert isinstance(text, str)
            assert text.strip()
        assert self.adapter().id == adapter.id, "a page remembers the chosen adapter by its id"

    async def test_it_answers(self) -> None:
        record = await self.played(self.answering(), with_tool=False)
        assert isinstance(record.parts[0], MessageStart)
        assert "".join(part.delta for part in record.parts if isinstance(part, TextDelta)).strip()
        assert record.end == Finish("stop")
        assert record.calls == ()

    async def test_it_reports_that_it_failed(self) -> None:
        record = await self.played(given(self.failing(), "failing"))
        assert isinstance(record.end, RunError)
        assert record.end.error.strip(), "the error is a text for people"

    async def test_its_ids_are_new_in_a_conversation_of_its_own(self) -> None:
        """The next turn: what it said before is in the messages, under the ids that it gave."""
        scenario = self.answering()
        first = await self.played(scenario, with_tool=False)
        messages = (*first.messages, *_spoken(first))
        # ``played`` says which id is there twice
        again = AgentMessage("user-2", "user", (TextPart(scenario.text),))
        await self.played(scenario, messages=(*messages, again), with_tool=False)

    async def test_it_reads_whatever_a_conversation_holds(self) -> None:
        """Another adapter may have had the turns before: reasoning of its own, calls that failed or were cancelled."""
        scenario = self.answering()
        calls = (
            ToolPart("old-1", PROBE, {}, "done", output={"content": [{"type": "text", "text": OUTPUT}]}),
            ToolPart("old-2", PROBE, {"n": 1}, "error", error="Error [failed] probe: it broke"),
            ToolPart("old-3", "gone", None, "cancelled", error="Error [cancelled] gone: stopped"),
        )
        before = (
            AgentMessage("old-user", "user", (TextPart("Before."),)),
            AgentMessage("old-reply", "assistant", (TextPart("Let me see."), *calls)),
        )
        now = AgentMessage("user-2", "user", (TextPart(scenario.text),))
        record = await self.played(scenario, messages=(*before, now), with_tool=False)
        assert record.end is not None

    async def test_two_runs_at_once_know_nothing_of_each_other(self) -> None:
        scenario = self.answering()
        adapter = scenario.adapter or self.adapter()
        records = list[Record]()

        async def one() -> None:
            records.append(await self.played(Scenario(scenario.text, adapter), with_tool=False))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)
        assert [record.end for record in records] == [Finish("stop"), Finish("stop")]


def _spoken(record: Record) -> tuple[AgentMessage, ...]:
    texts = dict[str, str]()
    for part in record.parts:
        if isinstance(part, MessageStart):
            texts[part.message_id] = ""
        elif isinstance(part, TextDelta):
            texts[part.message_id] += part.delta
    return tuple(AgentMessage(message_id, "assistant", (TextPart(text),)) for message_id, text in texts.items())
