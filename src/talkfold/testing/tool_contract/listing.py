"""The contract of a source's list of tools: at once, and as every provider takes it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import pytest

from ...codec import encode_json
from ...model import DELEGATE_PREFIX
from ...runs import LEGAL_TOOL_NAME, Confirming, Parking, ToolCallRequest, ToolDescriptor, ToolSource
from .uses import UsesTools, given

__all__ = ("Listing",)


_AT_ONCE = 0.05
"""How long a source may think about its list, in seconds: a run asks for it in the event loop."""


class Listing(UsesTools):
    async def test_it_is_a_source(self) -> None:
        async with self.open() as source:
            assert isinstance(source, ToolSource)
            assert not inspect.iscoroutinefunction(source.descriptors), "descriptors() must not wait"

    async def test_it_lists_its_tools_at_once(self) -> None:
        async with self.open() as source:
            times = list[float]()
            for _ in range(5):
                began = perf_counter()
                source.descriptors()
                times.append(perf_counter() - began)
            assert max(times) < _AT_ONCE

    async def test_its_tools_have_names_that_every_provider_takes(self) -> None:
        async with self.open() as source:
            tools = source.descriptors()
            assert isinstance(tools, Sequence)
            assert tools
            assert all(type(each) is ToolDescriptor for each in tools)
            names = [each.name for each in tools]
            assert [name for name in names if not LEGAL_TOOL_NAME.fullmatch(name)] == []
            assert len(set(names)) == len(names), "each name once"
            assert [name for name in names if name.startswith(DELEGATE_PREFIX)] == [], "that is a sub-agent's"

    async def test_its_tools_say_what_they_do(self) -> None:
        async with self.open() as source:
            assert [each.name for each in source.descriptors() if not each.description.strip()] == []

    async def test_its_inputs_are_objects(self) -> None:
        async with self.open() as source:
            assert [each.name for each in source.descriptors() if each.input_schema.get("type") != "object"] == []
            for each in source.descriptors():
                encode_json(each.input_schema, f"the schema of {each.name}")

    async def test_its_schemas_are_schemas(self) -> None:
        validators: Any = pytest.importorskip("jsonschema.validators", reason="it needs jsonschema")
        async with self.open() as source:
            for each in source.descriptors():
                validators.validator_for(each.input_schema).check_schema(each.input_schema)

    async def test_it_says_at_once_whether_to_ask(self) -> None:
        call = given(self.working(), "working")
        async with self.open() as source:
            if not isinstance(source, Confirming):
                pytest.skip("it has no confirmation()")
            for each in (call, ToolCallRequest("c9", "no such tool", {}), ToolCallRequest("c9", call.name, None)):
                question = source.confirmation(each)
                assert question is None or question.strip()

    async def test_it_says_how_long_a_client_may_take(self) -> None:
        async with self.open() as source:
            if not isinstance(source, Parking):
                pytest.skip("it has no patience()")
            for each in source.descriptors():
                seconds = source.patience(ToolCallRequest("c1", each.name, {}))
                assert seconds is None or seconds > 0
