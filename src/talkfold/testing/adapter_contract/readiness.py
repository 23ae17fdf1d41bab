"""The contract of what an adapter may have besides: its status, its changes, its set-up, its models."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import get_args

import anyio
import msgspec
import pytest

from ...errors import InvalidArgument, TalkfoldError
from ...runs import (
    AbortController,
    AdapterStatus,
    Downloading,
    HasModels,
    HasPreparation,
    HasStatus,
    HasStatusChanges,
    Ready,
    models_of,
    prepare,
    select_model,
    status_of,
    subscribe_to,
)
from .uses import UsesAdapter

__all__ = ("Readiness",)

_STATES: tuple[type, ...] = get_args(AdapterStatus)


class Readiness(UsesAdapter):
    async def test_it_is_ready(self) -> None:
        """The adapter of ``adapter()`` can run at once: all other tests run it."""
        assert status_of(self.adapter()) == Ready()

    async def test_its_status_is_a_status(self) -> None:
        adapter = self.adapter()
        if not isinstance(adapter, HasStatus):
            pytest.skip("it has no status()")
        assert not inspect.iscoroutinefunction(adapter.status), "status() must not wait"
        status = adapter.status()
        assert isinstance(status, _STATES)
        assert "state" in msgspec.to_builtins(status)

    async def test_a_listener_can_leave(self) -> None:
        adapter = self.adapter()
        if not isinstance(adapter, HasStatusChanges):
            pytest.skip("it has no subscribe()")
        heard = list[int]()
        first = subscribe_to(adapter, lambda: heard.append(1))
        second = subscribe_to(adapter, lambda: heard.append(2))
        first()
        first()  # once more does nothing
        second()
        await self.played(self.answering(), with_tool=False)
        assert heard == []

    async def test_preparing_makes_it_ready(self) -> None:
        adapter = self.unprepared()
        if adapter is None:
            pytest.skip("unprepared() gives no adapter")
        assert isinstance(adapter, HasPreparation)
        assert status_of(adapter) != Ready()
        heard = list[AdapterStatus]()
        leave = subscribe_to(adapter, lambda: heard.append(status_of(adapter)))
        with anyio.fail_after(self.seconds):
            await prepare(adapter)
        leave()
        assert status_of(adapter) == Ready()
        if isinstance(adapter, HasStatusChanges):
            assert heard, "a listener hears of changes"
            assert heard[-1] == Ready()

    async def test_preparing_can_be_given_up(self) -> None:
        adapter = self.unprepared()
        if adapter is None:
            pytest.skip("unprepared() gives no adapter")
        controller = AbortController()
        controller.abort("stop")
        with anyio.fail_after(self.soon):
            with suppress(Exception):  # it may say that it was given up, or just end
                await prepare(adapter, controller.signal)
        assert not isinstance(status_of(adapter), Ready | Downloading)

    async def test_preparing_what_is_ready_does_nothing(self) -> None:
        adapter = self.adapter()
        if not isinstance(adapter, HasPreparation):
            pytest.skip("it has no prepare()")
        with anyio.fail_after(self.seconds):
            await prepare(adapter)
        assert status_of(adapter) == Ready()

    async def test_its_models_can_be_told_apart(self) -> None:
        adapter = self.adapter()
        if not isinstance(adapter, HasModels):
            pytest.skip("it has no models()")
        models = models_of(adapter)
        assert models
        assert len({model.id for model in models}) == len(models)
        for model in models:
            assert model.id and model.label.strip() and model.brief.strip()  # noqa: PT018 -- one thought
        assert sum(model.selected is True for model in models) <= 1
        assert sum(model.recommended is True for model in models) <= 1

    async def test_each_model_can_be_selected(self) -> None:
        adapter = self.adapter()
        if not isinstance(adapter, HasModels):
            pytest.skip("it has no models()")
        for model in models_of(adapter):
            with anyio.fail_after(self.seconds):
                await select_model(adapter, model.id)
            chosen = [each.id for each in models_of(adapter) if each.selected]
            assert chosen in ([], [model.id])
            assert isinstance(status_of(adapter), _STATES)

    async def test_an_unknown_model_is_refused(self) -> None:
        adapter = self.adapter()
        before = models_of(adapter)
        with pytest.raises(InvalidArgument):
            await select_model(adapter, "no such model")
        if isinstance(adapter, HasModels):
            with pytest.raises((TalkfoldError, LookupError, ValueError)):
                await adapter.select_model("no such model")
        assert models_of(adapter) == before
