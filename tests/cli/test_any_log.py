"""What ``diff``, ``whatif`` and ``blame`` answer about any log, however strange."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cli_world import Talkfold
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from talkfold.actions import SessionAction
from talkfold.audit import apply, decode_diff
from talkfold.codec import decode_state, encode_action, encode_state
from talkfold.fold import fold
from talkfold.testing.strategies import logs

few = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


def kept(talkfold: Talkfold, log: Sequence[SessionAction]) -> str:
    """A new session with this log; its id."""
    ended = talkfold("import", "-", "--jsonl", stdin=b"".join(encode_action(action) + b"\n" for action in log))
    (row,) = ended.jsonl
    return str(row["id"])


def folded(log: Sequence[SessionAction]) -> bytes:
    return encode_state(fold(log))


@few
@given(log=logs().filter(bool), data=st.data())
def test_a_difference_makes_the_one_state_of_the_other(
    talkfold: Talkfold, log: list[SessionAction], data: st.DataObject
) -> None:
    first, second = (data.draw(st.integers(0, len(log))) for _ in range(2))
    session = kept(talkfold, log)
    ended = talkfold("diff", session, str(first), str(second), "--json")
    assert encode_state(apply(fold(log[:first]), decode_diff(ended.out))) == folded(log[:second])
    told = talkfold("diff", session, str(first), str(second))
    assert (told.code, bool(told.out)) == (0, bool(ended.json))


@few
@given(log=logs().filter(bool), data=st.data())
def test_without_some_actions_it_is_the_log_without_them(
    talkfold: Talkfold, log: list[SessionAction], data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, len(log)))
    last = data.draw(st.integers(first, len(log)))
    session = kept(talkfold, log)
    told = talkfold("whatif", session, "--skip", f"{first}-{last}", "--json").json
    assert encode_state(decode_state(json.dumps(told["state"]))) == folded(log[: first - 1] + log[last:])
    assert first <= told.get("first", first) <= last
    assert talkfold("whatif", session, "--skip", f"{first}-{last}").code == 0


@few
@given(log=logs().filter(bool))
def test_whatever_is_blamed_is_blamed_at_its_place(talkfold: Talkfold, log: list[SessionAction]) -> None:
    session = kept(talkfold, log)
    for row in talkfold("blame", session, "--json").json[:5]:
        there = talkfold("blame", session, row["place"], "--json").json
        assert row in there
    for command in ("blame", "lanes", "stats"):
        assert talkfold(command, session).code == 0
