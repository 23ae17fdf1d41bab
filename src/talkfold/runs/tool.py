"""A tool: a Python function that a model may call, what the model is told of it, and what the call is told.

```python
@tool(timeout=30, confirm=lambda input: f"Pay {input['total']}?")
async def pay(total: Decimal, context: ToolContext) -> Receipt:
    \"\"\"Pay for what is in the basket.

    Args:
        total: What the person was shown.
    \"\"\"
```
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from copy import deepcopy
from math import isfinite
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, overload

from msgspec import Struct

from ..errors import InvalidArgument
from ..model import DELEGATE_PREFIX, Json
from .adapter import LEGAL_TOOL_NAME, ToolDescriptor
from .signal import AbortController, AbortSignal
from .tool_schema import ToolInput, described_input

__all__ = ("Confirm", "Tool", "ToolContext", "ToolProgress", "confirmation_text", "tool", "unsaid_confirmation")

_P = ParamSpec("_P")
_R = TypeVar("_R")
_log = logging.getLogger(__name__)


Confirm: TypeAlias = str | Callable[[Any], str]
"""What the person is asked before the tool runs: a text, or a function of the call's input (any JSON) that makes it."""


class ToolProgress(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How far a call has come: ``progress`` of ``total`` (in whatever unit), and a text for people."""

    call_id: str
    progress: float
    total: float | None = None
    message: str | None = None


class ToolContext(Struct, frozen=True):
    """What a tool may know of the call that it serves: it asks by a parameter of this type.

    ``signal`` is aborted when the call is given up (Stop, its timeout, a cancelled run). An async tool is
    cancelled besides; a sync one, which nobody can end, should look at it from time to time. ``on_progress`` is
    called in the thread that reports.
    """

    call_id: str
    signal: AbortSignal
    on_progress: Callable[[ToolProgress], object] | None = None

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell whoever shows the call how far it is, from any thread. Never raises; a call given up tells nothing."""
        if self.on_progress is None or self.signal.aborted:
            return
        try:
            self.on_progress(ToolProgress(self.call_id, progress, total, message))
        except Exception:
            _log.exception("a listener to the progress of call %r raised", self.call_id)

    @classmethod
    def alone(cls, call_id: str) -> ToolContext:
        """The context of a call outside of any run: nobody stops it, nobody watches it."""
        return cls(call_id, AbortController().signal)


class Tool(Struct, Generic[_P, _R], frozen=True):
    """A function as a tool; made by ``tool``. Calling it calls the function.

    ``timeout`` is in seconds (``None``: none). ``confirm`` marks a tool that runs only after the person agreed.
    """

    descriptor: ToolDescriptor
    function: Callable[_P, _R]
    takes: ToolInput
    timeout: float | None = None
    confirm: Confirm | None = None

    @property
    def name(self) -> str:
        """The name that models call it by."""
        return self.descriptor.name

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return self.function(*args, **kwargs)


@overload
def tool(function: Callable[_P, _R], /) -> Tool[_P, _R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    confirm: Confirm | None = None,
) -> Callable[[Callable[_P, _R]], Tool[_P, _R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    confirm: Confirm | None = None,
) -> Any:
    """Make a tool from a function; a decorator with or without arguments.

    Name and description are the function's own unless given; the docstring is read as Google, NumPy or Sphinx write
    it. A sync function runs in a thread of its own. Its arguments are the parameters, or the fields of the one
    Struct that it takes. A parameter of type ``ToolContext`` is filled in and not shown to the model.

    Raises InvalidArgument for a function that no model could call (see ``described_input``), for a generator, a name
    that providers refuse or that is reserved for sub-agents, and a timeout that is not above zero.
    """

    def made(function: Callable[..., Any]) -> Tool[..., Any]:
        called = name if name is not None else str(getattr(function, "__name__", function))
        _refuse(called, function, timeout, confirm)
        own, takes = described_input(function, called, ToolContext)
        descriptor = ToolDescriptor(called, description if description is not None else own, takes.schema)
        return Tool(descriptor, function, takes, timeout, confirm)

    return made if function is None else made(function)


def _refuse(name: str, function: object, timeout: float | None, confirm: Confirm | None) -> None:
    if not LEGAL_TOOL_NAME.fullmatch(name):
        raise InvalidArgument("name", f"{name!r} is not 1 to 64 letters, digits, _ and -")
    if name.startswith(DELEGATE_PREFIX):
        raise InvalidArgument("name", f"{name!r} would be the call of a sub-agent")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidArgument(f"tool {name}", "a generator has no one result; return it, and report progress")
    if confirm is not None and not isinstance(confirm, str) and not callable(confirm):
        raise InvalidArgument("confirm", f"a text, or a function that makes one, is needed, not {confirm!r}")
    if inspect.iscoroutinefunction(confirm):
        raise InvalidArgument("confirm", "it is asked while nothing waits; make it a plain function")
    if timeout is not None and not (timeout > 0 and isfinite(timeout)):
        raise InvalidArgument("timeout", f"{timeout} is not above zero")


def confirmation_text(tool: Tool[..., Any], given: Json) -> str | None:
    """What to ask the person before this call: ``None`` when the tool needs no asking.

    A ``confirm`` that fails must never let the call through unasked: then the question only names the tool.
    """
    if tool.confirm is None:
        return None
    if isinstance(tool.confirm, str):
        return tool.confirm
    try:
        return _question(tool.confirm(deepcopy(given)))  # what runs is what the model sent, whatever the question does
    except Exception:
        _log.exception("the confirmation text of tool %r cannot be made", tool.name)
        return unsaid_confirmation(tool.name)


def _question(asked: object) -> str:
    if isinstance(asked, str) and asked.strip():
        return asked
    raise TypeError(f"the question is {asked!r}, which is no text")


def unsaid_confirmation(name: str) -> str:
    """What the person is asked when there should be a question and nobody can say which."""
    return f"Allow {name}?"
