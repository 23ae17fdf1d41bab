"""``docs/session.html`` is a page of an invented afternoon in a shop, and is what ``render`` makes of it.

It is written anew when ``TALKFOLD_WRITE`` is set.
"""

from __future__ import annotations

import os
from pathlib import Path

from parsed import parsed, text_of, with_class
from shop import session_of, shop_rows

from talkfold.page import render

SAMPLE = Path(__file__).parents[2] / "docs" / "session.html"


def sample() -> str:
    rows = shop_rows()
    metadata = {"system": "You are the assistant of a small mug shop. Ask before you charge anybody.", "shop": "north"}
    session = session_of(rows, title="Two blue mugs before Friday", owner="harbour-shop", metadata=metadata)
    return "".join(render(session, rows, exported=rows[-1].time + 60_000))


def test_the_sample_in_the_docs_is_what_the_code_makes() -> None:
    if os.environ.get("TALKFOLD_WRITE"):
        SAMPLE.write_bytes(sample().encode())
    assert SAMPLE.read_bytes().decode() == sample(), "write it anew: TALKFOLD_WRITE=1 pytest tests/page/test_sample.py"


def test_the_sample_shows_what_it_is_for() -> None:
    root = parsed(sample())
    states = {text_of(it) for it in with_class(root, "state")}
    assert {"done", "error", "cancelled", "waits", "idle"} <= states
    assert any(with_class(root, "gone"))
    assert any(with_class(root, "agent"))
