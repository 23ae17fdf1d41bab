"""The contract's own cases: what every implementation of the fold must do, on the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from wire import same

from talkfold import (
    EMPTY_SESSION,
    decode_action,
    decode_messages,
    decode_state,
    encode_action,
    encode_messages,
    encode_state,
    fold,
    resumable,
    retry_plan,
    session_reducer,
)
from talkfold.codec import decode_actions

HERE = Path(__file__).resolve().parent.parent / "conformance"
ORIGINALS = HERE.parents[2] / "shared" / "conformance"


def cases(name: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in json.loads((HERE / name).read_bytes())]


REDUCER, RESUMABLE = cases("reducer.json"), cases("resumable.json")


def wire(value: Any) -> bytes:
    """A case's value as a client would send it."""
    return json.dumps(value, ensure_ascii=True).encode()


def test_all_cases_are_here() -> None:
    assert (len(REDUCER), len(RESUMABLE)) == (73, 18)


@pytest.mark.parametrize("name", ["reducer.json", "resumable.json"])
@pytest.mark.skipif(
    not ORIGINALS.is_dir(), reason="the shared folder with the original cases is not beside the project"
)
def test_the_copies_are_the_originals(name: str) -> None:
    assert (HERE / name).read_bytes() == (ORIGINALS / name).read_bytes()


@pytest.mark.parametrize("case", REDUCER)
def test_reducer(case: dict[str, Any]) -> None:
    """Every step's status and identity, and the state at the end; the fold of every prefix is the same state."""
    actions = [decode_action(wire(action)) for action in case["actions"]]
    state = EMPTY_SESSION
    statuses: list[str] = []
    unchanged: list[int] = []
    assert fold([]) is EMPTY_SESSION
    for index, action in enumerate(actions):
        after = session_reducer(state, action)
        if after is state:
            unchanged.append(index)
        statuses.append(after.status)
        folded = fold(actions[: index + 1])
        assert same(folded, after)
        assert (fold([action], state) is state) == (after is state)
        state = after
    assert statuses == case["statuses"]
    assert unchanged == case["unchanged"]
    assert json.loads(encode_state(state)) == case["state"]
    assert same(decode_state(wire(case["state"])), state)


@pytest.mark.parametrize("case", REDUCER)
def test_through_the_codec(case: dict[str, Any]) -> None:
    """Actions and states come back from JSON as they were."""
    bodies = [encode_action(decode_action(wire(action))) for action in case["actions"]]
    assert [json.loads(body) for body in bodies] == case["actions"]
    actions = decode_actions(bodies)
    assert actions == [decode_action(body) for body in bodies]
    for length in range(len(actions) + 1):
        state = fold(actions[:length])
        assert same(decode_state(encode_state(state)), state)
        assert same(fold(actions[length:], decode_state(encode_state(state))), fold(actions))


@pytest.mark.parametrize("case", RESUMABLE)
def test_resumable(case: dict[str, Any]) -> None:
    messages = decode_messages(wire(case["messages"]))
    kept = resumable(messages)
    assert json.loads(encode_messages(kept)) == case["resumable"]
    assert resumable(kept) is kept
    assert retry_plan(messages).messages == kept
