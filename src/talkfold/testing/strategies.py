"""Hypothesis strategies for everything that a session is made of. Needs hypothesis; nothing in talkfold imports this.

Ids and names come from a few letters, so that they collide: the same message started twice, a call id used again, two
open calls of one name. Text holds what JavaScript's strings may hold: lone surrogates and NUL included. All values are
as JSON would give them back, so ``decode(encode(value))`` is the value itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from .._utf16 import joined
from ..actions import (
    AgentStreamPart,
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
from ..fold import fold
from ..model import (
    DELEGATE_PREFIX,
    UNSET,
    AgentMessage,
    AgentPart,
    AgentRun,
    Json,
    ReasoningPart,
    SessionError,
    SessionState,
    TextPart,
    ToolCallState,
    ToolPart,
)

__all__ = (
    "actions",
    "json_values",
    "logs",
    "messages",
    "plausible_logs",
    "states",
    "stream_parts",
    "texts",
    "wild_logs",
)

T = TypeVar("T")

_IDS = ("a", "b", "c", "")
_NAMES = ("f", "g", f"{DELEGATE_PREFIX}x", f"{DELEGATE_PREFIX}y", DELEGATE_PREFIX)
_PIECES = ("", "x", "Hello ", "\ud83d", "\ude00", "\ud83d\ude00", "\0", "é", "שלום", "\u2028")
_CANCELLED = "Error [cancelled] by the person"


def _chosen(values: Sequence[T]) -> SearchStrategy[T]:
    return st.sampled_from(values)


def texts() -> SearchStrategy[str]:
    """Any text: rows of UTF-16 units, where two halves that stand side by side are one character already."""
    pieces = st.lists(_chosen(_PIECES), max_size=3).map("".join)
    anything = st.text(st.characters(exclude_categories=()), max_size=8)
    return st.one_of(pieces, anything).map(joined)


def json_values(max_leaves: int = 6) -> SearchStrategy[Json]:
    """Any JSON value, as exact as JSON is: integers of any size, 1.0 beside 1, lone surrogates, deep nesting."""
    numbers = st.one_of(
        st.integers(),
        st.integers(min_value=2**62, max_value=2**200),
        st.floats(allow_nan=False, allow_infinity=False),
        _chosen((0, 1, 1.0, -0.0, 1e22, 2**53 + 1)),
    )
    leaves = st.one_of(st.none(), st.booleans(), numbers, texts())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(texts(), inner, max_size=3),
            st.tuples(inner, st.integers(1, 30)).map(_wrapped),
        ),
        max_leaves=max_leaves,
    )


def _wrapped(value: tuple[Json, int]) -> Json:
    inner, depth = value
    for _ in range(depth):
        inner = [inner]
    return inner


def _metadata() -> SearchStrategy[Json]:
    return st.one_of(st.just(UNSET), json_values(3))


def _outputs() -> SearchStrategy[Json]:
    return st.one_of(
        _chosen(({"content": [{"type": "text", "text": "ok"}]}, 1, 1.0, True, None)),
        json_values(4),
    )


def stream_parts() -> SearchStrategy[AgentStreamPart]:
    """Any stream part."""
    ids = _chosen(_IDS)
    return st.one_of(
        st.builds(MessageStart, ids),
        st.builds(TextDelta, ids, texts()),
        st.builds(TextDelta, ids, _chosen(_PIECES)),
        st.builds(Reasoning, ids, texts(), _metadata()),
        st.builds(ToolCall, ids, ids, _chosen(_NAMES), json_values(3), _metadata()),
        st.builds(ToolCall, ids, ids, _chosen(_NAMES), st.just(1)),
        st.builds(ToolResult, ids, _outputs()),
        st.builds(ToolError, ids, _chosen(("failed", _CANCELLED, "x Error [cancelled]"))),
        st.builds(StepFinish, _chosen((1, 2, 0.5))),
        st.builds(Finish, _chosen(("stop", "max-steps", "aborted"))),
        st.builds(RunError, texts(), _chosen((None, "network", "rate_limited"))),
    )


def actions() -> SearchStrategy[SessionAction]:
    """Any action; mostly parts, as in a log."""
    part = st.builds(Part, stream_parts(), st.one_of(st.none(), _chosen(_IDS)))
    phase = st.builds(
        ToolPhase, _chosen(_NAMES), _chosen(("running", "awaiting-confirmation")), _chosen((None, "", "Click"))
    )
    rare = st.one_of(st.builds(Stop), st.builds(Retry), st.builds(Retry), st.builds(Reset))
    return st.one_of(part, part, part, st.builds(Send, _chosen(_IDS), texts()), phase, rare)


def wild_logs(max_size: int = 40) -> SearchStrategy[list[SessionAction]]:
    """Actions in any order, whether they make sense or not."""
    return st.lists(actions(), max_size=max_size)


@st.composite
def plausible_logs(draw: DrawFn, max_turns: int = 3) -> list[SessionAction]:
    """What real runs write: turns of messages with text, reasoning, calls, confirmations and sub-agents, some of them
    cut short by a stop, an error or the end of the log, and tried again."""
    log: list[SessionAction] = []
    numbers = iter(range(1, 10_000))
    for turn in range(draw(st.integers(1, max_turns))):
        log.append(Send(f"u{turn}", draw(texts())))
        _play(draw, log, numbers, None, draw(st.integers(0, 2)))
        ending = draw(st.integers(0, 7))
        if ending < 4:
            log.append(Part(Finish(draw(_chosen(("stop", "max-steps", "aborted"))))))
        elif ending == 4:
            log.append(Part(RunError("Couldn't reach the assistant.", "network")))
        elif ending == 5:
            log.append(Stop())
        if ending >= 4 and draw(st.booleans()):
            log.append(Retry())
    cut = draw(st.integers(0, 6))
    return log[: len(log) - cut] if cut < len(log) else log


def _play(draw: DrawFn, log: list[SessionAction], numbers: Iterator[int], within: str | None, depth: int) -> None:
    """One run of an agent, or of a sub-agent behind the delegate call ``within``."""
    for _ in range(draw(st.integers(1, 3))):
        message_id = f"m{next(numbers)}"
        log.append(Part(MessageStart(message_id), within))
        for _ in range(draw(st.integers(0, 3))):
            step = draw(st.integers(0, 5))
            if step < 2:
                deltas = draw(st.lists(_chosen(_PIECES), min_size=1, max_size=4))
                log.extend(Part(TextDelta(message_id, delta), within) for delta in deltas)
            elif step == 2:
                log.append(Part(Reasoning(message_id, "hm", draw(_metadata())), within))
            else:
                _play_call(draw, log, numbers, within, depth, message_id)
        log.append(Part(StepFinish(1), within))


def _play_call(
    draw: DrawFn,
    log: list[SessionAction],
    numbers: Iterator[int],
    within: str | None,
    depth: int,
    message_id: str,
) -> None:
    # Some providers number the calls of every reply anew.
    call_id = draw(_chosen((f"c{next(numbers)}", "call_0")))
    delegate = depth > 0 and draw(st.booleans())
    name = f"{DELEGATE_PREFIX}helper" if delegate else draw(_chosen(("search", "buy")))
    log.append(Part(ToolCall(message_id, call_id, name, draw(json_values(2)), draw(_metadata())), within))
    if delegate:
        _play(draw, log, numbers, call_id, depth - 1)
        log.append(Part(Finish("stop"), call_id))
    if draw(st.booleans()):
        log.append(ToolPhase(name, "awaiting-confirmation", "Click Place order"))
        if draw(st.booleans()):
            log.append(ToolPhase(name, "running"))
    ending = draw(st.integers(0, 5))
    if ending < 4:
        log.append(Part(ToolResult(call_id, draw(_outputs())), within))
    elif ending == 4:
        log.append(Part(ToolError(call_id, draw(_chosen(("Error [failed] no", _CANCELLED)))), within))


def logs() -> SearchStrategy[list[SessionAction]]:
    """Logs of both kinds."""
    return st.one_of(wild_logs(), plausible_logs())


def messages(max_depth: int = 2) -> SearchStrategy[tuple[AgentMessage, ...]]:
    """Any messages that have the right types, also such as no log would make."""
    parts: list[SearchStrategy[AgentPart]] = [
        st.builds(TextPart, texts()),
        st.builds(ReasoningPart, texts(), _metadata()),
        _calls(max_depth),
    ]
    message = st.builds(
        AgentMessage,
        _chosen(_IDS),
        _chosen(("user", "assistant", "assistant")),
        st.lists(st.one_of(parts), max_size=4).map(tuple),
    )
    return st.lists(message, max_size=4).map(tuple)


@st.composite
def _calls(draw: DrawFn, max_depth: int) -> ToolPart:
    state: ToolCallState = draw(_chosen(("running", "awaiting-confirmation", "done", "error", "cancelled")))
    name = draw(_chosen(_NAMES))
    agent = None
    if max_depth and name.startswith(DELEGATE_PREFIX) and draw(st.booleans()):
        agent = AgentRun(name.removeprefix(DELEGATE_PREFIX), draw(messages(max_depth - 1)))
    return ToolPart(
        draw(_chosen(_IDS)),
        name,
        draw(json_values(3)),
        state,
        draw(_outputs()) if state == "done" else UNSET,
        draw(texts()) if state in ("error", "cancelled") else None,
        draw(_chosen((None, "Click"))) if state == "awaiting-confirmation" else None,
        agent,
        draw(_metadata()),
    )


def states() -> SearchStrategy[SessionState]:
    """Any state: made by a log, or of any messages."""
    made = st.builds(
        SessionState,
        messages(),
        _chosen(("idle", "streaming", "error")),
        st.one_of(st.none(), st.builds(SessionError, texts(), _chosen((None, "network")))),
    )
    return st.one_of(logs().map(fold), made)
