"""A step in words: who did it and why, where the log says so."""

from __future__ import annotations

import pytest

from talkfold import LoggedAction, Send, SessionAction, Stop, ToolPhase
from talkfold.cli.wording import row_text
from talkfold.model import Json


@pytest.mark.parametrize(
    ("action", "actor", "meta", "text"),
    [
        (Send("u", "Hello"), None, None, "Hello"),
        (Send("u", "Hello"), "u-17", {"page": 1}, "Hello, by u-17"),
        (Stop(), None, None, ""),
        (Stop(), "bob", {"reason": "enough"}, "by bob, enough"),
        (Stop(), "talkfold", {"cause": "reload"}, "settled: nobody ran it any more"),
        (ToolPhase("pay", "running"), "anna", {"reason": 5}, "pay is running, by anna"),
    ],
)
def test_a_step_says_who_did_it_and_why(
    action: SessionAction, actor: str | None, meta: dict[str, Json] | None, text: str
) -> None:
    assert row_text(LoggedAction(1, 0, action, b"", None, None, actor, meta)) == text
