"""The two machines, as data: where a session is, and where a tool call is.

This file is the only place that knows which state follows which. Each table is declared once, as rows for
``transitions``, whose ``Machine`` checks it; then it is flattened to a dict, because a fold asks a hundred
thousand times. A pair of state and trigger that has no row means: *stays as it is*. The flattened dicts
say that too: they hold every pair.

States and triggers are the words of the wire: an action's type, or a stream part's. Where one type has several
effects, the trigger says which: ``finish aborted``, ``toolPhase running``, ``tool-error [cancelled]``. What the
tables do not say is in the reducer: which call a part means, that ``retry`` needs a user message, and that a part
of a nested run moves that run's calls and never the session's status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypedDict, cast, get_args

from transitions import Machine

from .model import SessionStatus, ToolCallState

__all__ = (
    "FINISHED",
    "OPEN",
    "SESSION",
    "SESSION_NEXT",
    "SESSION_STATES",
    "TOOL_CALL",
    "TOOL_CALL_NEXT",
    "TOOL_CALL_STATES",
    "TRIGGERS",
    "Row",
    "Trigger",
    "to_mermaid",
    "to_page",
    "to_table",
)

Trigger: TypeAlias = str

SESSION_STATES: Final[tuple[SessionStatus, ...]] = get_args(SessionStatus)
TOOL_CALL_STATES: Final[tuple[ToolCallState, ...]] = get_args(ToolCallState)


class Row(TypedDict):
    """One row of a table: in these states (``*``: in any), this trigger leads there."""

    trigger: Trigger
    source: str | list[str]
    dest: str


OPEN: Final[frozenset[ToolCallState]] = frozenset(("running", "awaiting-confirmation"))
"""A call that has not ended."""

FINISHED: Final[frozenset[ToolCallState]] = frozenset(("done", "error"))
"""A call whose tool has run. A cancelled call is neither open nor finished."""

TRIGGERS: Final[tuple[Trigger, ...]] = (
    "send",
    "toolPhase running",
    "toolPhase awaiting-confirmation",
    "stop",
    "retry",
    "reset",
    "message-start",
    "text-delta",
    "reasoning",
    "tool-call",
    "tool-result",
    "tool-error",
    "tool-error [cancelled]",
    "step-finish",
    "finish stop",
    "finish max-steps",
    "finish aborted",
    "error",
)
"""Everything that can happen, to both machines."""

_open: list[str] = ["running", "awaiting-confirmation"]

SESSION: Final[list[Row]] = [
    {"trigger": "send", "source": "*", "dest": "streaming"},
    {"trigger": "retry", "source": "*", "dest": "streaming"},
    {"trigger": "finish stop", "source": "*", "dest": "idle"},
    {"trigger": "finish max-steps", "source": "*", "dest": "idle"},
    {"trigger": "finish aborted", "source": "*", "dest": "idle"},
    {"trigger": "stop", "source": "*", "dest": "idle"},
    {"trigger": "reset", "source": "*", "dest": "idle"},
    {"trigger": "error", "source": "*", "dest": "error"},
]
"""Where a session is. It starts idle."""

TOOL_CALL: Final[list[Row]] = [
    {"trigger": "toolPhase running", "source": _open, "dest": "running"},
    {"trigger": "toolPhase awaiting-confirmation", "source": _open, "dest": "awaiting-confirmation"},
    {"trigger": "tool-result", "source": "*", "dest": "done"},
    {"trigger": "tool-error", "source": "*", "dest": "error"},
    {"trigger": "tool-error [cancelled]", "source": "*", "dest": "cancelled"},
    {"trigger": "stop", "source": _open, "dest": "cancelled"},
    {"trigger": "finish aborted", "source": _open, "dest": "cancelled"},
    {"trigger": "error", "source": _open, "dest": "cancelled"},
]
"""Where a tool call is. It starts running, with its ``tool-call``."""


def _machine(states: Sequence[str], rows: Sequence[Row]) -> Machine:
    return Machine(
        model=None,
        states=list(states),
        transitions=[dict(row) for row in rows],
        initial=states[0],
        auto_transitions=False,
    )


class _Step(NamedTuple):
    source: str
    dest: str


def _steps(machine: Machine) -> list[tuple[Trigger, _Step]]:
    return [
        (trigger, _Step(step.source, str(step.dest)))
        for trigger in machine.events
        for step in machine.get_transitions(trigger)
    ]


def _flattened(machine: Machine) -> Mapping[tuple[str, Trigger], str]:
    stays = {(state, trigger): state for state in machine.states for trigger in TRIGGERS}
    return stays | {(step.source, trigger): step.dest for trigger, step in _steps(machine)}


SESSION_NEXT: Final = cast(
    "Mapping[tuple[SessionStatus, Trigger], SessionStatus]", _flattened(_machine(SESSION_STATES, SESSION))
)
"""(status, trigger) to status, for every pair."""

TOOL_CALL_NEXT: Final = cast(
    "Mapping[tuple[ToolCallState, Trigger], ToolCallState]",
    _flattened(_machine(TOOL_CALL_STATES, TOOL_CALL)),
)
"""(state, trigger) to state, for every pair."""


def to_mermaid(states: Sequence[str], rows: Sequence[Row]) -> str:
    """A table as a mermaid state diagram, made from the rows; the first state is where it starts.

    Triggers with the same way share one arrow. An arrow is a move: what leads back to the same state is not drawn.
    """
    machine = _machine(states, rows)
    arrows: dict[_Step, list[Trigger]] = {}
    for trigger, step in _steps(machine):
        if step.source != step.dest:
            arrows.setdefault(step, []).append(trigger)
    names = {state: state.replace("-", "_") for state in states}
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{state}" as {name}' for state, name in names.items() if state != name]
    lines.append(f"    [*] --> {names[states[0]]}")
    lines += [
        f"    {names[source]} --> {names[dest]}: {'<br/>'.join(arrows[_Step(source, dest)])}"
        for source in states
        for dest in states
        if (source, dest) in arrows
    ]
    return "\n".join(lines) + "\n"


def to_table(states: Sequence[str], rows: Sequence[Row]) -> str:
    """The same table as Markdown with every pair: a line a trigger, a column a state, a dot where it stays."""
    after = _flattened(_machine(states, rows))
    lines = [f"| trigger | {' | '.join(states)} |", "|---" * (len(states) + 1) + "|"]
    for trigger in TRIGGERS:
        cells = (after[state, trigger] for state in states)
        lines.append(
            f"| `{trigger}` | {' | '.join('·' if a == b else a for a, b in zip(cells, states, strict=True))} |"
        )
    return "\n".join(lines) + "\n"


def to_page() -> str:
    """Both machines as a page of Markdown: ``docs/machine.md``."""
    return _PAGE.format(
        session=to_mermaid(SESSION_STATES, SESSION),
        session_pairs=to_table(SESSION_STATES, SESSION),
        call=to_mermaid(TOOL_CALL_STATES, TOOL_CALL),
        call_pairs=to_table(TOOL_CALL_STATES, TOOL_CALL),
    )


_PAGE = """\
# The state machine

<!-- Made from the tables in src/talkfold/machine.py by `make docs`; do not edit. -->

Two machines tell where a conversation is: one for the session, one for each tool call. A trigger is an action's type
or a stream part's, as it stands on the wire; where one type has several effects, the trigger says which. The diagrams
show the moves. The tables show every pair of state and trigger; a dot means that it stays as it is.

## The session

```mermaid
{session}```

{session_pairs}
`retry` does so only when there is a user message. A part of a nested run never moves the session.

## A tool call

```mermaid
{call}```

{call_pairs}
A call is *open* while it is running or awaiting confirmation, and *finished* when it is done or ended in an error; a
cancelled call is neither. A late result still wins over a cancellation, because the tool did run. `stop` reaches open
calls at every depth; `finish aborted` and `error` reach those of their own run and of the runs inside it.
"""
