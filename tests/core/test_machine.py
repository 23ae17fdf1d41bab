"""The tables: every state and trigger, the dicts against the machine that declares them, and the page of diagrams."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transitions import Machine

from talkfold.machine import (
    FINISHED,
    OPEN,
    SESSION,
    SESSION_NEXT,
    SESSION_STATES,
    TOOL_CALL,
    TOOL_CALL_NEXT,
    TOOL_CALL_STATES,
    TRIGGERS,
    to_mermaid,
    to_page,
    to_table,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "machine.md"

TABLES = [
    pytest.param(SESSION_STATES, SESSION, SESSION_NEXT, id="session"),
    pytest.param(TOOL_CALL_STATES, TOOL_CALL, TOOL_CALL_NEXT, id="tool call"),
]

# The contract, said a second time and the other way round: per state, what each trigger that does something leads to.
ENDS = {"finish stop": "idle", "finish max-steps": "idle", "finish aborted": "idle", "stop": "idle", "reset": "idle"}
ANY_STATUS = {"send": "streaming", "retry": "streaming", "error": "error", **ENDS}
TERMINAL = {"tool-result": "done", "tool-error": "error", "tool-error [cancelled]": "cancelled"}
WHILE_OPEN = {
    **TERMINAL,
    "toolPhase running": "running",
    "toolPhase awaiting-confirmation": "awaiting-confirmation",
    "stop": "cancelled",
    "finish aborted": "cancelled",
    "error": "cancelled",
}
SESSION_SAYS = {"idle": ANY_STATUS, "streaming": ANY_STATUS, "error": ANY_STATUS}
TOOL_CALL_SAYS = {
    "running": WHILE_OPEN,
    "awaiting-confirmation": WHILE_OPEN,
    "done": TERMINAL,
    "error": TERMINAL,
    "cancelled": TERMINAL,
}


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(SESSION_STATES, TRIGGERS)))
def test_every_pair_of_the_session(state: Any, trigger: str) -> None:
    assert SESSION_NEXT[state, trigger] == SESSION_SAYS[state].get(trigger, state)


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(TOOL_CALL_STATES, TRIGGERS)))
def test_every_pair_of_a_tool_call(state: Any, trigger: str) -> None:
    assert TOOL_CALL_NEXT[state, trigger] == TOOL_CALL_SAYS[state].get(trigger, state)


@pytest.mark.parametrize(("states", "rows", "flat"), TABLES)
def test_there_is_nothing_but_these_pairs(states: Any, rows: Any, flat: Any) -> None:
    assert set(flat) == set(itertools.product(states, TRIGGERS))
    assert {row["trigger"] for row in rows} <= set(TRIGGERS)
    assert len(set(TRIGGERS)) == len(TRIGGERS)


@pytest.mark.parametrize(("states", "rows", "flat"), TABLES)
def test_the_dict_is_the_machine(states: Any, rows: Any, flat: Any) -> None:
    """A running machine, put into each state and given each trigger, ends up where the dict says."""
    model = SimpleNamespace()
    running = Machine(
        model=model,
        states=list(states),
        transitions=rows,
        initial=states[0],
        auto_transitions=False,
        ignore_invalid_triggers=True,
    )
    for state, trigger in itertools.product(states, TRIGGERS):
        running.set_state(state, model)
        if trigger in running.events:
            model.trigger(trigger)
        assert model.state == flat[state, trigger], (state, trigger)


def test_no_state_is_out_of_reach() -> None:
    for states, flat in ((SESSION_STATES, SESSION_NEXT), (TOOL_CALL_STATES, TOOL_CALL_NEXT)):
        reached = {states[0]}
        for _ in states:
            reached |= {after for (before, _), after in flat.items() if before in reached}
        assert reached == set(states)


def test_open_and_finished() -> None:
    assert {"running", "awaiting-confirmation"} == OPEN
    assert {"done", "error"} == FINISHED
    assert set(TOOL_CALL_STATES) - OPEN - FINISHED == {"cancelled"}


def test_the_page_is_what_the_code_says() -> None:
    """`make docs` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == to_page()
    for states, rows in ((SESSION_STATES, SESSION), (TOOL_CALL_STATES, TOOL_CALL)):
        assert to_mermaid(states, rows) in to_page()
        assert to_table(states, rows) in to_page()


@pytest.mark.parametrize(("states", "rows", "flat"), TABLES)
def test_the_diagram_shows_every_move_once(states: Any, rows: Any, flat: Any) -> None:
    first, *lines = to_mermaid(states, rows).splitlines()
    assert first == "stateDiagram-v2"
    names = {state.replace("-", "_"): state for state in states}
    shown: list[tuple[str, str, str]] = []
    for line in lines:
        if arrow := re.fullmatch(r"    (\w+) --> (\w+): (.+)", line):
            start, end = names[arrow[1]], names[arrow[2]]
            shown += [(start, trigger, end) for trigger in arrow[3].split("<br/>")]
    assert f"    [*] --> {states[0]}" in lines
    assert sorted(shown) == sorted((a, trigger, b) for (a, trigger), b in flat.items() if a != b)


def test_a_state_whose_name_mermaid_cannot_take_has_another_name_there() -> None:
    assert '    state "awaiting-confirmation" as awaiting_confirmation\n' in to_mermaid(TOOL_CALL_STATES, TOOL_CALL)


@pytest.mark.parametrize(("states", "rows", "flat"), TABLES)
def test_the_table_shows_every_pair(states: Any, rows: Any, flat: Any) -> None:
    head, _, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in to_table(states, rows).splitlines()
    ]
    assert head == ["trigger", *states]
    shown = {
        (state, trigger.strip("`")): state if cell == "·" else cell
        for trigger, *cells in lines
        for state, cell in zip(states, cells, strict=True)
    }
    assert shown == flat
