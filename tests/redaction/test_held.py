"""What a run logs of a text that comes in deltas, wherever they cut it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from talkfold import Part, SessionAction, TextDelta, ToolCall, ToolResult, fold
from talkfold.actions import Finish, MessageStart, Send, StepFinish
from talkfold.log import Entry
from talkfold.redaction import PRIVATE_KEY, Redaction
from talkfold.runs.held import HeldTexts

SPAN = 12
PATTERN = r"(?<=k=)[a-f]{3,10}|<[0-9]{2,6}>|\b7+\b"
"""A pattern that looks back, one with both ends, one with word boundaries. None is longer than the span."""


def _function(text: str) -> str:
    return re.sub("<[0-9]{2,6}>", "~", text)


RULES = st.sampled_from(
    [
        Redaction(patterns=[PATTERN], span=SPAN),
        Redaction(patterns=PATTERN.split("|"), span=SPAN),
        Redaction(functions=[_function], span=SPAN),
        Redaction(patterns=["<[0-9]{2,6}>"], functions=[_function], span=SPAN),
    ]
)
TEXTS = st.lists(
    st.sampled_from(
        ["k=abcdef", "k=", "<123>", "<1", "23>", "77", " 7 ", "x", "ordinary words, and more", "\n", "é", "\ud83d"]
    )
).map("".join)


@st.composite
def cuts(draw: st.DrawFn) -> list[str]:
    """A text in pieces of any length, empty ones too."""
    text = draw(TEXTS)
    at = sorted(draw(st.lists(st.integers(0, len(text)), max_size=len(text))))
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


def _played(redaction: Redaction, actions: Sequence[SessionAction]) -> list[Any]:
    held = HeldTexts(redaction)
    rows = [row for action in actions for row in held.pass_on(action, None)] + held.end()
    return [row.action if isinstance(row, Entry) else row for row in rows]


def _text(rows: Sequence[Any], message: str = "m") -> str:
    return "".join(r.part.delta for r in rows if type(r.part) is TextDelta and r.part.message_id == message)


@given(cuts(), RULES)
def test_cut_anywhere_the_log_says_what_the_whole_text_would(pieces: list[str], redaction: Redaction) -> None:
    rows = _played(redaction, [Part(TextDelta("m", piece)) for piece in pieces])
    assert len(rows) == len(pieces)
    assert _text(rows) == redaction.text("".join(pieces))[0]


@given(cuts(), RULES)
def test_a_text_without_secrets_stays_delta_by_delta(pieces: list[str], redaction: Redaction) -> None:
    if redaction.text("".join(pieces))[1] == 0:
        actions = [Part(TextDelta("m", piece)) for piece in pieces]
        assert _played(redaction, actions) == actions


@given(
    st.lists(st.tuples(st.sampled_from("mn"), st.sampled_from([None, "c"]), st.sampled_from("<12345> x")), max_size=99)
)
def test_texts_do_not_wait_for_one_another_and_none_is_lost(deltas: list[tuple[str, str | None, str]]) -> None:
    redaction = Redaction(patterns=["<[0-9]{2,6}>"], span=SPAN)
    actions = [Part(TextDelta(message, delta), within) for message, within, delta in deltas]
    rows = _played(redaction, actions)
    for message in "mn":
        for within in (None, "c"):

            def whole(these: Sequence[Any], of: tuple[str, str | None] = (message, within)) -> str:
                return "".join(a.part.delta for a in these if (a.part.message_id, a.within) == of)

            assert whole(rows) == redaction.text(whole(actions))[0]


def test_no_more_is_held_back_than_a_secret_may_need() -> None:
    held = HeldTexts(Redaction(patterns=["<[0-9]{2,6}>"], span=SPAN))
    said = logged = 0
    for _ in range(100):
        said += 3
        logged += sum(len(row.action.part.delta) for row in held.pass_on(Part(TextDelta("m", "abc")), None))  # type: ignore[union-attr]
        assert said - logged <= SPAN + 3


ENDS: dict[str, Callable[[], SessionAction]] = {
    "a call": lambda: Part(ToolCall("m", "c", "f", {})),
    "the next message": lambda: Part(MessageStart("n")),
    "the end of the step": lambda: Part(StepFinish(1)),
    "the end": lambda: Part(Finish("stop")),
}


def test_what_ends_a_text_lets_it_go_first() -> None:
    for name, end in ENDS.items():
        held = HeldTexts(Redaction(patterns=["x"], span=SPAN))
        held.pass_on(Part(TextDelta("m", "ab")), None)
        rows = [row.action if isinstance(row, Entry) else row for row in held.pass_on(end(), None)]
        assert rows == [Part(TextDelta("m", "ab")), end()], name
        assert held.end() == []


def test_a_result_does_not_wait_for_the_text_around_it() -> None:
    held = HeldTexts(Redaction(patterns=["sk-[0-9]+"], span=SPAN))
    call = Part(ToolCall("m", "c", "f", {}))
    actions = [Send("u", "x"), Part(MessageStart("m")), call, Part(TextDelta("m", "sk-"))]
    rows = [row for action in actions for row in held.pass_on(action, None)]
    result = Part(ToolResult("c", 1))
    assert held.pass_on(result, None) == [result]
    rows += [result, *held.pass_on(Part(TextDelta("m", "12 ")), None), *held.end()]
    state = fold([row.action if isinstance(row, Entry) else row for row in rows])  # type: ignore[misc]
    assert state.messages[-1].parts[-1].text == "[redacted] "  # type: ignore[union-attr]


def test_a_match_that_still_grows_is_waited_for() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEow\n" * 300 + "-----END PRIVATE KEY-----"
    text = f"here: {key}, and so on, as far as it goes."
    rows = _played(
        Redaction(patterns=[PRIVATE_KEY]), [Part(TextDelta("m", text[i : i + 7])) for i in range(0, len(text), 7)]
    )
    assert _text(rows) == "here: [redacted], and so on, as far as it goes."


def test_what_no_log_takes_goes_on_to_be_refused() -> None:
    held = HeldTexts(Redaction(patterns=["x"]))
    strange = Part(TextDelta("m", None))  # type: ignore[arg-type]
    assert held.pass_on(strange, None) == [strange]
