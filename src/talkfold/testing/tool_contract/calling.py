"""The contract of a source's calls: an output or an error of a known form, and never a call that hangs."""

from __future__ import annotations

from typing import get_args

import anyio
import pytest
from anyio.lowlevel import checkpoint

from ...runs import (
    AbortController,
    Toolbox,
    ToolCallRequest,
    ToolContext,
    ToolErrorCode,
    ToolOutput,
    ToolProgress,
    ToolSource,
    output_of,
)
from .uses import UsesTools, given

__all__ = ("Calling",)

_CODES: tuple[ToolErrorCode, ...] = get_args(ToolErrorCode)
_NOBODY = "no-such-tool"


class Calling(UsesTools):
    """Through a toolbox, as runs do, but where it is said that the source itself is called."""

    async def test_a_call_gives_an_output(self) -> None:
        call = given(self.working(), "working")
        async with self.open() as source:
            with anyio.fail_after(self.seconds):
                output = await source.call(call, ToolContext.alone(call.id))  # the source itself
            assert isinstance(output, ToolOutput)
            assert not output.is_error, output.text
            assert output_of(output) == output, "a log takes it"
            assert ToolOutput.from_json(output.to_json()) == output

    async def test_a_call_leaves_its_input_as_it_is(self) -> None:
        call, same = given(self.working(), "working"), given(self.working(), "working")
        async with self.open() as source:
            await self._called(source, call)
        assert call == same

    async def test_calls_do_not_stand_in_each_others_way(self) -> None:
        call = given(self.working(), "working")
        outputs = list[ToolOutput]()
        async with self.open() as source:

            async def one(number: int) -> None:
                outputs.append(await self._called(source, ToolCallRequest(f"c{number}", call.name, call.input)))

            async with anyio.create_task_group() as tasks:
                for number in range(5):
                    tasks.start_soon(one, number)
        assert [output.text for output in outputs if output.is_error] == []

    async def test_an_unknown_tool(self) -> None:
        async with self.open() as source:
            output = await self._called(source, ToolCallRequest("c1", _NOBODY, {}))
            assert output.text.startswith("Error [not_found] ")

    async def test_an_unknown_tool_at_the_source_itself(self) -> None:
        """A tool may go away between the look and the call: the source says so, as an error or by raising."""
        call = ToolCallRequest("c1", _NOBODY, {})
        async with self.open() as source:
            with anyio.fail_after(self.seconds):
                try:
                    output = await source.call(call, ToolContext.alone("c1"))
                except Exception:
                    return
            assert output.is_error

    async def test_an_input_that_does_not_fit(self) -> None:
        call = given(self.misfit(), "misfit")
        async with self.open() as source:
            output = await self._called(source, call)
            assert output.is_error
            assert output.text.startswith("Error [invalid_input] ")

    async def test_an_input_that_is_no_object(self) -> None:
        call = given(self.working(), "working")
        async with self.open() as source:
            for odd in ("text", [1], 7):
                output = await self._called(source, ToolCallRequest("c1", call.name, odd))
                assert output.is_error, odd
                assert _coded(output), output.text

    async def test_a_call_that_fails(self) -> None:
        call = given(self.failing(), "failing")
        async with self.open() as source:
            output = await self._called(source, call)
            assert output.is_error
            assert output.text.strip(), "the model must read what went wrong"
            if output.text.startswith("Error ["):  # a text of the tool's own is passed on as it is
                assert _coded(output), output.text

    async def test_stop_ends_a_call(self) -> None:
        call = given(self.slow(), "slow")
        async with self.open() as source:
            controller, outputs = AbortController(), list[ToolOutput]()

            async def run() -> None:
                outputs.append(await Toolbox(source).call(call, ToolContext(call.id, controller.signal)))

            with anyio.fail_after(0.1 + self.soon):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(run)
                    await anyio.sleep(0.1)
                    controller.abort("stop")
            (output,) = outputs
            assert output.text.startswith("Error [cancelled] ")
            await self._still_works(source)

    async def test_stop_that_came_before_starts_nothing(self) -> None:
        call = given(self.slow(), "slow")
        async with self.open() as source:
            controller = AbortController()
            controller.abort("stop")
            with anyio.fail_after(self.soon):
                output = await Toolbox(source).call(call, ToolContext(call.id, controller.signal))
            assert output.text.startswith("Error [cancelled] ")

    async def test_a_cancelled_call_ends(self) -> None:
        """The source itself: its caller is cancelled, and nothing of the call holds it."""
        call = given(self.slow(), "slow")
        async with self.open() as source:
            began = anyio.current_time()
            with anyio.move_on_after(0.1) as cancelled:
                await source.call(call, ToolContext.alone(call.id))
                await checkpoint()  # a source that makes an output of it leaves the cancellation to the caller
            assert cancelled.cancelled_caught, "the call took the cancellation for itself, or was not slow"
            assert anyio.current_time() - began < 0.1 + self.soon
            await self._still_works(source)

    async def test_progress_is_told_of_its_own_call(self) -> None:
        call = given(self.working(), "working")
        heard = list[ToolProgress]()
        async with self.open() as source:
            context = ToolContext(call.id, AbortController().signal, heard.append)
            with anyio.fail_after(self.seconds):
                await Toolbox(source).call(call, context)
        if not heard:
            pytest.skip("this call tells no progress")
        assert {progress.call_id for progress in heard} == {call.id}

    async def _called(self, source: ToolSource, call: ToolCallRequest) -> ToolOutput:
        with anyio.fail_after(self.seconds):
            return await Toolbox(source).call(call)

    async def _still_works(self, source: ToolSource) -> None:
        call = self.working()
        if call is not None:
            output = await self._called(source, call)
            assert not output.is_error, output.text


def _coded(output: ToolOutput) -> bool:
    return output.text.startswith(tuple(f"Error [{code}] " for code in _CODES))
