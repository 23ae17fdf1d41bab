"""Logs of real runs in which something went wrong, and the states that they fold to, looked over by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from talkfold import SessionState, ToolPart, fold, session_reducer
from talkfold.actions import SessionAction
from talkfold.codec import decode_action, decode_state
from talkfold.healing import heal
from talkfold.model import EMPTY_SESSION, AgentMessage, SessionStatus
from talkfold.resumable import resumable

REPLAYS = Path(__file__).with_name("replays")

ENDS: dict[str, tuple[SessionStatus, str | None]] = {
    "agent-ends-early-two-deep": ("idle", "u1-c2"),
    "agent-ends-with-an-open-call": ("error", "c1"),
    "agent-fails-after-a-call": ("error", "c2"),
    "agent-finishes-with-an-open-call-and-goes-on": ("idle", "c1"),
    "agent-floods-a-message": ("idle", "c2"),
    "agent-hangs-before-a-call": ("idle", "c1"),
    "agent-hangs-two-deep": ("idle", "u1-c1"),
    "agent-is-deaf-with-an-open-call": ("idle", "c1"),
    "agent-loses-the-network": ("error", "c1"),
    "agent-raises-after-its-end": ("idle", "c2"),
    "agent-raises-before-text": ("error", "c1"),
    "agent-raises-beside-its-call-in-a-sub-agent": ("idle", "u1-c2"),
    "agent-reuses-the-id-of-an-open-call": ("idle", "c2"),
    "agent-yields-no-part": ("error", "c1"),
    "agent-yields-no-part-two-deep": ("idle", "u1-c2"),
    "caller-cancelled-after-a-call": ("idle", "c2"),
    "caller-raises-before-the-end": ("idle", "c2"),
    "caller-task-cancelled-in-a-sub-agent": ("idle", "u1-c1"),
    "database-full-in-a-sub-agent": ("idle", "u1-c1"),
    "database-full-in-a-tool": ("idle", "c1"),
    "database-locked-for-a-second": ("idle", "c2"),
    "database-locked-for-long-in-a-tool": ("idle", "u1-c1"),
    "denied-from-another-process": ("idle", None),
    "killed-in-the-tool-of-a-sub-agent": ("idle", "user-r-c2"),
    "killed-while-a-call-waits-for-approval": ("idle", None),
    "stopped-by-the-tool-of-a-sub-agent": ("idle", "u1-c1"),
    "stopped-with-an-open-call": ("idle", "c1"),
    "store-closed-before-a-result": ("error", "c2"),
    "sub-agent-fails": ("idle", "u1-c2"),
    "sub-agent-floods-no-message": ("idle", "u1-c2"),
    "sub-agent-goes-on-after-its-end": ("idle", "u1-c2"),
    "sub-agent-reuses-ids-after-its-call": ("idle", "u1-c2"),
    "tool-dies": ("idle", "c2"),
    "tool-dies-in-a-thread": ("idle", "u1-c2"),
    "tool-exits": ("idle", "u1-c2"),
    "tool-exits-its-thread": ("idle", "c2"),
    "tool-hangs-until-stop": ("idle", "c1"),
    "tool-hangs-until-stop-two-deep": ("idle", "u1-c1"),
    "tool-hangs-until-the-caller-is-cancelled": ("idle", "u1-c1"),
    "tool-hangs-until-the-caller-raises": ("idle", "c1"),
    "tool-is-too-slow": ("idle", "c2"),
    "tool-is-too-slow-in-a-thread": ("idle", "u1-c2"),
    "tool-leaves-a-scope-cancelled": ("idle", "c2"),
    "tool-loses-its-server": ("idle", "u1-c2"),
    "tool-raises": ("idle", "c2"),
    "tool-raises-in-a-thread": ("idle", "u1-c2"),
    "tool-raises-two-deep": ("idle", "u1-c2"),
}
"""By hand, from the contract: the status at the end, and the call through which Retry keeps the conversation (``None``:
through the person's message)."""


def log(name: str) -> list[SessionAction]:
    return [decode_action(line) for line in (REPLAYS / f"{name}.jsonl").read_bytes().splitlines()]


def expected(name: str) -> SessionState:
    return decode_state((REPLAYS / f"{name}.state.json").read_bytes())


def calls(messages: tuple[AgentMessage, ...]) -> Iterator[ToolPart]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolPart):
                yield part
                yield from calls(part.agent.messages if part.agent else ())


def test_every_replay_is_told_of() -> None:
    told = (REPLAYS / "README.md").read_text()
    assert sorted(path.stem for path in REPLAYS.glob("*.jsonl")) == sorted(ENDS)
    assert {path.name for path in REPLAYS.glob("*.state.json")} == {f"{name}.state.json" for name in ENDS}
    assert [name for name in ENDS if told.count(f"| {name} |") != 1] == []


@pytest.mark.parametrize("name", ENDS)
def test_the_log_folds_to_the_state(name: str) -> None:
    actions, state = log(name), expected(name)
    assert fold(actions) == state
    step = EMPTY_SESSION
    for number, action in enumerate(actions):
        assert fold(actions[:number]) == step
        assert fold(actions[number:], step) == state
        step = session_reducer(step, action)
    assert step == state


@pytest.mark.parametrize("name", ENDS)
def test_nothing_is_left_open(name: str) -> None:
    state = expected(name)
    assert state.status == ENDS[name][0]
    assert (state.error is not None) == (state.status == "error")
    assert {call.state for call in calls(state.messages)} <= {"done", "error", "cancelled"}
    assert [call for call in calls(state.messages) if call.prompt is not None] == []


@pytest.mark.parametrize("name", ENDS)
def test_what_retry_keeps(name: str) -> None:
    state, last = expected(name), ENDS[name][1]
    kept = resumable(state.messages)
    assert resumable(kept) is kept
    end = kept[-1].parts[-1]
    if last is None:
        assert (len(kept), kept[-1].role) == (1, "user")
    else:
        assert isinstance(end, ToolPart)
        assert (end.id, end.state in ("done", "error")) == (last, True)
    made, sent = (
        [part for m in row for part in m.parts if isinstance(part, ToolPart)] for row in (kept, heal(kept).messages)
    )
    assert len(sent) == len(made) == len({call.id for call in sent})


def test_the_command_line_reads_them() -> None:
    name = "killed-in-the-tool-of-a-sub-agent"
    command = [sys.executable, "-m", "talkfold", "fold", str(REPLAYS / f"{name}.jsonl")]
    ended = subprocess.run(command, capture_output=True, check=True)
    assert decode_state(ended.stdout) == expected(name)
