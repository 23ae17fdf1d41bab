"""Hypothesis strategies for conversations: JSON values, actions, logs, messages and states.

Ids and names are drawn from very few, so that they collide: the same message started twice, a call id used again, two
open calls of one name. Texts hold what JavaScript's strings may hold, lone surrogate halves and NUL included. All
values are as JSON gives them back, so ``decode(encode(value))`` is the value itself.

Two kinds of logs. ``wild_logs`` are any actions in any order. ``plausible_logs`` are what agents write: turns with
text, reasoning, parallel calls, confirmations and sub-agents, which end well, fail, are stopped, are retried or
just break off. ``logs`` are both, and plausible ones in which wild things happen.

Needs hypothesis; nothing in talkfold imports this.
"""

from __future__ import annotations

from functools import cache

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
    ErrorCode,
    Json,
    ReasoningPart,
    SessionError,
    SessionState,
    SessionStatus,
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

_STATUSES: tuple[SessionStatus, ...] = ("idle", "streaming", "error")
_CALL_STATES: tuple[ToolCallState, ...] = ("running", "awaiting-confirmation", "done", "error", "cancelled")
_CODES: tuple[ErrorCode | None, ...] = (None, "chat_disabled", "rate_limited", "bad_request", "network")
_FAILURES = ("Error: no such flight", "Error [cancelled]", "Error [cancelled] by the person", "x Error [cancelled]", "")

_ids = st.sampled_from(("a", "b", "c", ""))
_names = st.sampled_from(("search", "book", f"{DELEGATE_PREFIX}clerk", DELEGATE_PREFIX))
_delegate_names = st.sampled_from((f"{DELEGATE_PREFIX}clerk", DELEGATE_PREFIX))
_phases = st.sampled_from(("running", "awaiting-confirmation"))
_prompts = st.sampled_from((None, "", "Press it"))
_failures = st.sampled_from(_FAILURES)

# ---- values -----------------------------------------------------------------------------------------------

_ODD_TEXTS = ("", "\0", "\ud83d", "\ude00", "a\ud83d", "\ude00b", "\U0001f600", "שלום", '"\\/\n\u2028', "\ufeff")
_ODD_NUMBERS = (0, -1, 1, 1.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, 1e22, 2**53 + 1, -(2**64), 10**40)


@cache
def texts() -> SearchStrategy[str]:
    """JavaScript strings: rows of UTF-16 units, every pair of halves in them joined."""
    return st.sampled_from(_ODD_TEXTS) | st.text(st.characters(exclude_categories=()), max_size=6).map(joined)


@cache
def json_values(max_depth: int = 40) -> SearchStrategy[Json]:
    """Any JSON value: big integers, floats without a fraction, odd keys, now and then up to ``max_depth`` brackets."""
    scalars: SearchStrategy[Json] = st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from(_ODD_NUMBERS),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        texts(),
    )
    bushy: SearchStrategy[Json] = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3), max_leaves=6
    )
    deep: SearchStrategy[Json] = st.builds(_wrapped, scalars, st.integers(0, max_depth), texts())
    return scalars | bushy | deep


def _wrapped(value: Json, depth: int, key: str) -> Json:
    for level in range(depth):
        value = {key: value} if level % 2 else [value]
    return value


# In logs, values that Python takes for equal and the wire does not are worth more than large ones; and they are cheap.
_contents: SearchStrategy[Json] = st.one_of(
    st.sampled_from(({}, None, 1, 1.0, True, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1.0, "b": 2}, "\ud83d")),
    st.sampled_from(({"content": [{"type": "text", "text": "found"}], "isError": True}, [], "", 0, -0.0, [[]])),
    st.builds(_wrapped, st.sampled_from(_ODD_NUMBERS), st.integers(0, 40), texts()),
)
_metadata: SearchStrategy[Json] = st.sampled_from((UNSET, UNSET, None, {"anthropic": {"signature": "sig=="}}, 1, 1.0))

# ---- actions and logs -------------------------------------------------------------------------------------


@cache
def stream_parts() -> SearchStrategy[AgentStreamPart]:
    """Any stream part."""
    return st.one_of(
        st.builds(MessageStart, _ids),
        st.builds(TextDelta, _ids, texts()),
        st.builds(Reasoning, _ids, texts(), _metadata),
        st.builds(ToolCall, _ids, _ids, _names, _contents, _metadata),
        st.builds(ToolCall, _ids, _ids, _delegate_names, _contents),
        st.builds(ToolResult, _ids, _contents),
        st.builds(ToolError, _ids, _failures),
        st.builds(StepFinish, st.sampled_from((0, 1, 1.0, 2.5))),
        st.builds(Finish, st.sampled_from(("stop", "max-steps", "aborted"))),
        st.builds(RunError, texts(), st.sampled_from(_CODES)),
    )


@cache
def actions() -> SearchStrategy[SessionAction]:
    """Any action; mostly parts, as in a log."""
    own = st.builds(Part, stream_parts())
    nested = st.builds(Part, stream_parts(), _ids)
    rare = st.sampled_from((Stop(), Retry(), Retry(), Reset()))
    phase = st.builds(ToolPhase, _names, _phases, _prompts)
    return st.one_of(own, own, nested, nested, st.builds(Send, _ids, texts()), phase, rare)


@cache
def wild_logs(max_size: int = 30) -> SearchStrategy[list[SessionAction]]:
    """Actions in any order, whether they make sense or not."""
    return st.lists(actions(), max_size=max_size) | st.lists(actions(), min_size=max_size // 2, max_size=max_size)


@st.composite
def plausible_logs(draw: DrawFn, max_turns: int = 3) -> list[SessionAction]:
    """The log of a conversation as agents write it, of up to ``max_turns`` turns."""
    log: list[SessionAction] = []
    for turn in range(draw(st.integers(1, max_turns))):
        log.append(Send(f"u{turn}", draw(texts())))
        _play(draw, log, None, depth=0)
        log += draw(st.sampled_from(_ENDINGS))
        if draw(st.booleans()):
            log.append(Retry())
            _play(draw, log, None, depth=0)
    return log


_ENDINGS: tuple[list[SessionAction], ...] = (
    [],
    [Part(Finish("stop"))],
    [Part(Finish("max-steps"))],
    [Part(Finish("aborted"))],
    [Stop()],
    [Part(RunError("the connection was lost", "network")), Stop()],
)
_NESTED_ENDINGS: tuple[AgentStreamPart, ...] = (Finish("stop"), Finish("aborted"), RunError("lost"))


def _play(draw: DrawFn, log: list[SessionAction], within: str | None, depth: int) -> None:
    """The steps of one agent, on its own level."""
    for step in range(draw(st.integers(1, 1 if depth else 2))):
        message = draw(_ids)
        log.append(Part(MessageStart(message), within))
        if draw(st.booleans()):
            log.append(Part(Reasoning(message, draw(texts()), draw(_metadata)), within))
        log += [Part(TextDelta(message, draw(texts())), within) for _ in range(draw(st.integers(0, 3)))]
        _call(draw, log, message, within, depth)
        log.append(Part(StepFinish(step), within))


def _call(draw: DrawFn, log: list[SessionAction], message: str, within: str | None, depth: int) -> None:
    """The calls of one step: begun together, ended in any order, or not at all."""
    later: list[SessionAction] = []
    for call in draw(st.lists(_ids, max_size=2)):
        name = draw(_names)
        log.append(Part(ToolCall(message, call, name, draw(_contents), draw(_metadata)), within))
        if name.startswith(DELEGATE_PREFIX):
            if depth < 2:
                _play(draw, later, call, depth + 1)
                later += [Part(ending, call) for ending in draw(st.lists(st.sampled_from(_NESTED_ENDINGS), max_size=1))]
        elif draw(st.booleans()):
            log.append(ToolPhase(name, "awaiting-confirmation", draw(_prompts)))
            later += draw(st.sampled_from(([], [ToolPhase(name, "running")])))
        ending = draw(st.none() | st.builds(ToolResult, st.just(call), _contents) | _failed(call))
        if ending is not None:
            later.insert(draw(st.integers(0, len(later))), Part(ending, within))
    log += later


def _failed(call: str) -> SearchStrategy[ToolError]:
    return st.builds(ToolError, st.just(call), _failures)


@cache
def logs() -> SearchStrategy[list[SessionAction]]:
    """Wild logs, plausible ones, and plausible ones in which wild things happen."""
    return wild_logs() | plausible_logs() | _disturbed()


@st.composite
def _disturbed(draw: DrawFn) -> list[SessionAction]:
    log = draw(plausible_logs())
    for action in draw(st.lists(actions(), max_size=6)):
        log.insert(draw(st.integers(0, len(log))), action)
    return log


# ---- messages and states ----------------------------------------------------------------------------------


@cache
def messages(max_depth: int = 2, max_size: int = 4) -> SearchStrategy[tuple[AgentMessage, ...]]:
    """Any messages that have the right types, also such as no log would make; nested runs up to ``max_depth``."""
    parts: SearchStrategy[AgentPart] = st.one_of(
        st.builds(TextPart, texts()), st.builds(ReasoningPart, texts(), _metadata), _calls(max_depth), _calls(max_depth)
    )
    message = st.builds(
        AgentMessage,
        _ids,
        st.sampled_from(("user", "assistant", "assistant")),
        st.lists(parts, max_size=4).map(lambda row: tuple(row)),
    )
    return st.lists(message, max_size=max_size).map(lambda row: tuple(row))


@st.composite
def _calls(draw: DrawFn, max_depth: int) -> ToolPart:
    """A call in any state, with the fields that this state has."""
    name = draw(_names)
    state = draw(st.sampled_from(_CALL_STATES))
    agent: AgentRun | None = None
    if max_depth and name.startswith(DELEGATE_PREFIX) and draw(st.booleans()):
        agent = AgentRun(name.removeprefix(DELEGATE_PREFIX), draw(messages(max_depth - 1, 2)))
    return ToolPart(
        id=draw(_ids),
        name=name,
        input=draw(_contents),
        state=state,
        output=draw(_contents) if state == "done" else UNSET,
        error=draw(_failures) if state in ("error", "cancelled") else None,
        prompt=draw(_prompts) if state == "awaiting-confirmation" else None,
        agent=agent,
        provider_metadata=draw(_metadata),
    )


@cache
def states() -> SearchStrategy[SessionState]:
    """Any state: made by a log, or of any messages, any status and any error."""
    errors = st.none() | st.builds(SessionError, texts(), st.sampled_from(_CODES))
    return logs().map(fold) | st.builds(SessionState, messages(), st.sampled_from(_STATUSES), errors)
