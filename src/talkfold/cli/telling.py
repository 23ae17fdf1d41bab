"""A log told while it is written: each action becomes no line or some, as soon as there is something to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ..actions import (
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Reset,
    Retry,
    RunError,
    Send,
    SessionAction,
    StepFinish,
    Stop,
    TextDelta,
    ToolCall,
    ToolError,
    ToolPhase,
    ToolResult,
)
from ..json_values import is_object
from ..model import DELEGATE_PREFIX
from .output import Line, line, preview
from .wording import value_text

__all__ = ("Telling",)

_LEAD = 10

_Spans: TypeAlias = Sequence[str | tuple[str, str]]


class _Calls:
    """The calls told so far: a result names only the id of its call."""

    def __init__(self) -> None:
        self._names: dict[tuple[str | None, str], str] = {}
        self._agents: dict[str, str] = {}
        self._latest: tuple[str | None, str] | None = None

    def note(self, call: ToolCall, within: str | None) -> None:
        self._latest = within, call.id
        self._names[self._latest] = call.name
        if call.name.startswith(DELEGATE_PREFIX):
            self._agents[call.id] = call.name.removeprefix(DELEGATE_PREFIX)

    def name(self, call_id: str, within: str | None) -> str:
        """Whose result it is, in front of the result; nothing right after the call itself."""
        if (within, call_id) == self._latest:
            return ""
        return self._names.get((within, call_id), call_id).removeprefix(DELEGATE_PREFIX) + ": "

    def agent(self, within: str | None) -> str:
        """Who speaks there."""
        return "agent" if within is None else self._agents.get(within, within)


class Telling:
    """Tells the actions of one session, in order.

    A text that has grown longer than ``width`` characters is told up to its last word, though more of it may come.
    """

    def __init__(self, width: int = 60) -> None:
        self._width = width
        self._calls = _Calls()
        self._speaker = ""
        self._text = ""
        self._begun = False

    def lines(self, action: SessionAction) -> Iterator[Line]:
        """What there is to read after this action."""
        part = action.part if isinstance(action, Part) else action
        within = action.within if isinstance(action, Part) else None
        if isinstance(part, TextDelta):
            yield from self._add(self._calls.agent(within), part.delta)
            return
        if isinstance(part, MessageStart | StepFinish):
            return
        yield from self.rest()
        if isinstance(part, ToolCall):
            self._calls.note(part, within)
        lead, style, words = _WORDS[type(part)]
        if spans := words(self._calls, part, within):
            lead = self._calls.agent(within) if lead is None else lead
            yield line(*spans, lead=(_lead(lead), style))

    def rest(self) -> Iterator[Line]:
        """What was said and not told yet; after the last action, and whenever somebody else speaks."""
        if self._text.strip():
            yield self._told(self._text)
        self._text, self._begun = "", False

    def _add(self, who: str, text: str) -> Iterator[Line]:
        if who != self._speaker:
            yield from self.rest()
        self._speaker = who
        self._text += text
        while (cut := self._cut()) > 0:
            if self._text[:cut].strip():
                yield self._told(self._text[:cut])
            self._text = self._text[cut + 1 :]

    def _cut(self) -> int:
        """Where the text can be told up to, so that it fits in a line; 0 while that is not needed."""
        if len(self._text) <= self._width:
            return 0
        return max(self._text.rfind(mark, 0, self._width + 1) for mark in " \n")

    def _told(self, text: str) -> Line:
        lead = "" if self._begun else self._speaker
        self._begun = True
        return line(preview(text, 400), lead=(_lead(lead), "bold blue"))


def _lead(text: str) -> str:
    return preview(text, _LEAD - 1).ljust(_LEAD)


def _called(calls: _Calls, part: ToolCall, within: str | None) -> _Spans:
    task = part.input.get("task") if is_object(part.input) else None
    if part.name.startswith(DELEGATE_PREFIX) and isinstance(task, str):
        return [("asks ", "dim"), (part.name.removeprefix(DELEGATE_PREFIX), "bold"), f": {preview(task, 200)}"]
    return [("calls ", "dim"), (part.name, "bold"), f" {value_text(part.input, 100)}"]


def _asked(calls: _Calls, part: ToolPhase, within: str | None) -> _Spans:
    if part.state != "awaiting-confirmation":
        return [(f"{part.name} may run", "green")]
    return [(f"{part.name} waits for a yes", "yellow"), f": {preview(part.prompt)}" if part.prompt else ""]


def _finished(calls: _Calls, part: Finish, within: str | None) -> _Spans:
    return [(f"finished ({part.reason})", "dim")] if within is None else []


_Words: TypeAlias = Callable[[_Calls, Any, str | None], _Spans]


def _said(words: Callable[[Any], str | tuple[str, str]]) -> _Words:
    """Words that need nothing but the part itself."""

    def spans(calls: _Calls, part: Any, within: str | None) -> _Spans:
        return [words(part)]

    return spans


_WORDS: dict[type[Any], tuple[str | None, str, _Words]] = {
    Send: ("you", "bold cyan", _said(lambda it: preview(it.text, 400))),
    Stop: ("stop", "bold red", _said(lambda _: "what was still open is cancelled")),
    Retry: ("retry", "bold cyan", _said(lambda _: "on from the last call that finished")),
    Reset: ("reset", "bold red", _said(lambda _: "the conversation begins anew")),
    ToolPhase: ("", "", _asked),
    Reasoning: (None, "bold blue", _said(lambda it: (f"thinks: {preview(it.text, 120)}", "dim italic"))),
    ToolCall: (None, "bold blue", _called),
    ToolResult: ("", "", lambda calls, it, at: [("→ ", "green"), calls.name(it.id, at) + value_text(it.output, 200)]),
    ToolError: ("", "", lambda calls, it, at: [("→ ", "red"), calls.name(it.id, at) + preview(it.error, 200)]),
    Finish: ("", "", _finished),
    RunError: ("error", "bold red", _said(lambda it: preview(it.error, 400))),
}
"""For each kind of action: who speaks (``None``: the agent at work), in which style, and the words."""
