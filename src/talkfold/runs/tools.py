"""The tools of a run: Python functions and sources of remote tools in one collection that may change while it lives."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import anyio

from ..errors import InvalidArgument, TalkfoldError
from .adapter import ToolCallRequest, ToolDescriptor
from .client_tools import Parking
from .guard import failure, guarded
from .output import ToolOutput, error_output, output_of
from .signal import AbortSignal
from .threads import in_thread
from .tool import Tool, ToolContext, confirmation_text, tool, unsaid_confirmation
from .tool_arguments import InvalidInput, read_arguments

__all__ = ("AnyTool", "Confirming", "ToolSource", "Toolbox")

_log = logging.getLogger(__name__)

_MOST_NAMED = 100
"""Of how many tools a model is told the names when it asks for one that is not there."""

_GONE = (ConnectionError, EOFError, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
"""What a source raises when the server or page behind it is no longer there."""


@runtime_checkable
class ToolSource(Protocol):
    """Tools that live elsewhere: in an MCP server, in a web page, behind a sub-agent. A Toolbox is one as well."""

    def descriptors(self) -> Sequence[ToolDescriptor]:
        """The tools right now. Must not wait: a source keeps its list by itself."""
        ...

    async def call(self, call: ToolCallRequest, context: ToolContext) -> ToolOutput:
        """Run one of them. The source checks the input and keeps its own timeouts.

        It may raise: ConnectionError, EOFError and anyio's errors of closed streams mean ``unavailable``, all others
        ``failed``. It is cancelled when the person presses Stop.
        """
        ...


@runtime_checkable
class Confirming(Protocol):
    """A source with tools that the person must agree to."""

    def confirmation(self, call: ToolCallRequest) -> str | None:
        """What to ask the person before this call; ``None``: nothing."""
        ...


AnyTool: TypeAlias = Tool[..., Any] | Callable[..., Any] | ToolSource
"""What a toolbox takes: a tool, a plain function (as ``tool`` makes it one), or a source of tools."""


class Toolbox:
    """Tools by name. Add and remove them at any time: the next look and the next call see the change.

    A name belongs to the box's own tools first, then to the sources in the order in which they were added.
    """

    def __init__(self, *tools: AnyTool) -> None:
        self._tools: dict[str, Tool[..., Any]] = {}
        self._sources: list[ToolSource] = []
        self.add(*tools)

    def add(self, *tools: AnyTool) -> None:
        """Add tools and sources: all of them, or none. Raises InvalidArgument for a name that the box has already."""
        added: dict[str, Tool[..., Any]] = {}
        sources: list[ToolSource] = []
        for each in tools:
            if isinstance(each, ToolSource):
                sources.append(each)
                continue
            if isinstance(each, list | tuple):
                raise InvalidArgument("tools", "a list is no tool: write Toolbox(*tools)")
            made = cast("Tool[..., Any]", each) if isinstance(each, Tool) else tool(each)
            if made.name in self._tools or made.name in added:
                raise InvalidArgument("tools", f"there is a tool {made.name!r} already")
            added[made.name] = made
        self._tools |= added
        self._sources += sources

    def remove(self, which: str | ToolSource) -> None:
        """Remove a tool by its name, or a source; a call that runs goes on. Raises InvalidArgument when absent."""
        if isinstance(which, str):
            if self._tools.pop(which, None) is None:
                raise InvalidArgument("tool", f"there is no tool {which!r} of this box's own")
        elif which in self._sources:
            self._sources.remove(which)
        else:
            raise InvalidArgument("source", "this box does not have it")

    def descriptors(self) -> tuple[ToolDescriptor, ...]:
        """The tools right now, each name once. A source that cannot be asked has none."""
        found = {made.name: made.descriptor for made in self._tools.values()}
        for source in self._sources:
            for descriptor in _listed(source):
                found.setdefault(descriptor.name, descriptor)
        return tuple(found.values())

    def confirmation(self, call: ToolCallRequest) -> str | None:
        """What to ask the person before this call is made; ``None`` when there is nothing to ask.

        Nothing is asked for a call that would fail anyway: of an unknown tool, or with arguments that do not fit.
        """
        found = self._find(call.name)
        if isinstance(found, Tool):
            fits = found.confirm is not None and not isinstance(read_arguments(found.takes, call.input), InvalidInput)
            return confirmation_text(found, call.input) if fits else None
        try:
            asked = found.confirmation(call) if isinstance(found, Confirming) else None
            return asked if asked is None else _text(asked)
        except Exception:
            _log.exception("%r cannot say whether to ask before %r", found, call.name)
            return unsaid_confirmation(call.name)

    def parking(self, call: ToolCallRequest) -> Parking | None:
        """The source whose client must make this call; ``None`` when it can be made here."""
        found = self._find(call.name)
        if isinstance(found, Toolbox):
            return found.parking(call)
        return found if isinstance(found, Parking) else None

    async def call(self, call: ToolCallRequest, context: ToolContext | None = None) -> ToolOutput:
        """Make a call. Never raises (see ``guarded`` for the person's own interrupt): every failure is an output with
        ``is_error``, whose text begins with its code. ``context`` brings Stop and takes progress; without one the
        call is on its own. Whether the person must agree first is ``confirmation``'s to say, not looked at here."""
        context = context or ToolContext.alone(call.id)
        found = self._find(call.name)
        if found is None:
            return error_output("not_found", _unknown(call.name, [each.name for each in self.descriptors()]))

        async def work(signal: AbortSignal) -> ToolOutput:
            inner = ToolContext(context.call_id, signal, context.on_progress)
            return await (_run(found, call, inner) if isinstance(found, Tool) else _ask(found, call, inner))

        timeout = found.timeout if isinstance(found, Tool) else None
        return await guarded(call.name, work, signal=context.signal, timeout=timeout)

    def _find(self, name: str) -> Tool[..., Any] | ToolSource | None:
        if (own := self._tools.get(name)) is not None:
            return own
        return next((s for s in self._sources if any(each.name == name for each in _listed(s))), None)


def _listed(source: ToolSource) -> Sequence[ToolDescriptor]:
    try:
        return [_descriptor(each) for each in source.descriptors()]
    except Exception:
        _log.exception("the tools of %r cannot be listed", source)
        return ()


def _descriptor(given: object) -> ToolDescriptor:
    if not isinstance(given, ToolDescriptor):
        raise TypeError(f"it lists a {type(given).__name__}, which is no ToolDescriptor")
    return given


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"it asks with a {type(given).__name__}, which is no text")
    return given


def _unknown(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known[:_MOST_NAMED], 1)
    more = f" and {len(known) - _MOST_NAMED:,} more" if len(known) > _MOST_NAMED else ""
    hint = f"did you mean {near[0]}?" if near else f"the tools are: {', '.join(known[:_MOST_NAMED]) or 'none'}{more}"
    return f"there is no tool {name}; {hint}"


async def _run(made: Tool[..., Any], call: ToolCallRequest, context: ToolContext) -> ToolOutput:
    arguments = read_arguments(made.takes, call.input)
    if isinstance(arguments, InvalidInput):
        return error_output("invalid_input", f"{made.name}: {arguments.text}")
    if made.takes.context is not None:
        arguments[made.takes.context] = context
    bound = partial(made.function, **arguments)
    if inspect.iscoroutinefunction(made.function):
        value = await bound()
    else:
        ended = await in_thread(bound, f"talkfold tool {made.name}")
        if ended.error is not None:
            return failure(made.name, ended.error)
        value = ended.value
        if inspect.isawaitable(value):  # a plain function around an async one
            value = await value
    return _output(made.name, value)


async def _ask(source: ToolSource, call: ToolCallRequest, context: ToolContext) -> ToolOutput:
    try:
        return _output(call.name, await source.call(call, context))
    except _GONE as error:
        return error_output("unavailable", f"{call.name}: {type(error).__name__} {error}".rstrip())


def _output(name: str, value: object) -> ToolOutput:
    try:
        return output_of(value)
    except TalkfoldError as error:
        return error_output("failed", f"{name}: it ran, but its result cannot be kept: {error}")
