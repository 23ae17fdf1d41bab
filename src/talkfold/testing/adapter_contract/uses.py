"""What an author tells the contract of an adapter, and how its tests play it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from ...actions import AgentStreamPart
from ...model import AgentMessage, TextPart
from ...runs import AbortController, AgentAdapter, ToolCallRequest, ToolOutput, WebAgent, output_of, tool
from .record import Record, RunTool, play
from .rules import TOOLS_ANEW, broken

__all__ = ("OUTPUT", "PROBE", "Scenario", "UsesAdapter", "given", "probe_tool", "works")

PROBE = "probe"
"""The name of the kit's only tool. It takes ``{}`` and gives ``"42 degrees"``."""

OUTPUT = "42 degrees"
"""What it gives, as a text."""


class Scenario(Struct, frozen=True):
    """How to make an adapter do something: what the person says, and, where that needs another adapter than
    ``adapter()`` (one whose provider is down, say), that adapter."""

    text: str
    adapter: AgentAdapter | None = None


def given(scenario: Scenario | None, hook: str) -> Scenario:
    """The scenario; without it, the test is skipped and says which hook would run it."""
    if scenario is None:
        pytest.skip(f"{hook}() gives no scenario")
    return scenario


class UsesAdapter:
    """A group of tests that need an adapter.

    ``adapter`` is all that must be given. ``seconds`` is how long a run may take, ``soon`` how long it may go on after
    Stop. ``resumes``: after Retry it goes on behind the finished calls; False for one that cannot look back.
    ``rereads``: it reads its tools anew between a call's output and what it says next, since a model call lies between;
    False for one without a model.
    """

    pytestmark: pytest.MarkDecorator = pytest.mark.anyio
    seconds: float = 10.0
    soon: float = 1.0
    resumes: bool = True
    rereads: bool = True

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    # ---- what the author says ------------------------------------------------------------------------------

    def adapter(self) -> AgentAdapter:
        """A new adapter."""
        raise NotImplementedError

    def answering(self) -> Scenario:
        """With no tools given, it answers with text and finishes with ``stop``."""
        return Scenario("Hello")

    def calling(self) -> Scenario | None:
        """It calls the tool ``probe`` with ``{}`` once or more, says something about it, and finishes with ``stop``."""
        return None

    def failing(self) -> Scenario | None:
        """It ends with ``error``."""
        return None

    def unprepared(self) -> AgentAdapter | None:
        """A new adapter that is not ready before it is prepared."""
        return None

    # ---- how the tests play it -----------------------------------------------------------------------------

    async def played(
        self,
        scenario: Scenario,
        *,
        run_tool: RunTool | None = None,
        with_tool: bool = True,
        messages: tuple[AgentMessage, ...] | None = None,
        controller: AbortController | None = None,
        agent: WebAgent | None = None,
        on_part: Callable[[AgentStreamPart], object] | None = None,
    ) -> Record:
        """Play a scenario with nothing around the adapter; a record that breaks no rule.

        That tools are read anew has a test of its own, so that an adapter without a model is told once.
        """
        said = AgentMessage("user-1", "user", (TextPart(scenario.text),))
        record = await play(
            scenario.adapter or self.adapter(),
            (said,) if messages is None else messages,
            tools=[probe_tool().descriptor] if with_tool else [],
            run_tool=run_tool or works,
            controller=controller,
            agent=agent,
            seconds=self.seconds,
            on_part=on_part,
        )
        assert broken(record, without=(TOOLS_ANEW,)) == []
        return record


async def works(call: ToolCallRequest) -> ToolOutput:
    """The tool when all is well."""
    return output_of(OUTPUT)


def probe_tool(act: Callable[[], object] | None = None) -> Any:
    """The kit's tool for a box; ``act`` is done each time it is called."""

    @tool(name=PROBE, description="Look at the probe and say what it shows. It takes nothing.")
    def probe() -> str:
        if act is not None:
            act()
        return OUTPUT

    return probe
