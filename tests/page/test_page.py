"""The page: legal HTML, every step can be linked to, it shows what the audit says, and nothing is loaded."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from itertools import accumulate
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from parsed import classes, is_there, page_of, parsed, text_of, visible_text, with_class
from shop import SHOP_ID, shop_rows

from talkfold import EMPTY_SESSION, LoggedAction, encode_action, fold, session_reducer
from talkfold.actions import Finish, MessageStart, Part, Send, StepFinish, TextDelta, ToolCall, ToolError, ToolResult
from talkfold.audit import findings
from talkfold.model import AgentMessage, ReasoningPart, TextPart, ToolPart
from talkfold.page import Limits
from talkfold.page.visible import marked, visible
from talkfold.store.lease import Lease, Waiting
from talkfold.testing.strategies import logs


def rows_of(actions: list) -> list[LoggedAction]:
    return [LoggedAction(n, n * 1000, it, encode_action(it), None) for n, it in enumerate(actions, 1)]


@given(logs())
@settings(max_examples=40)
def test_any_log_is_faultless_html_with_a_link_to_every_step(log: list) -> None:
    root = parsed(page_of(rows_of(log)))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {f"n{number}" for number in range(1, len(log) + 1)} <= set(ids)
    links = {element.get("href") for element in root.iter("a")}
    assert links <= {f"#{each}" for each in ids}


# ---- back in time ---------------------------------------------------------------------------------------


def shown_at(parent: Element, at: int) -> list:
    """What stands there after an action: for each message its role, its texts, and each call's state and run."""
    return [
        [next(iter(set(classes(message)) & {"user", "assistant"})), *parts_at(message, at)]
        for message in nearest(parent, "m", at)
    ]


def parts_at(message: Element, at: int) -> list:
    found: list = []
    for part in nearest(message, ("say", "call"), at):
        if "call" not in classes(part):
            found.append(visible_text(part, at))
            continue
        badges = [text_of(it) for it in with_class(part[0], "state") if is_there(it, at)]
        found.append((badges, shown_at(part, at)))
    return found


def nearest(parent: Element, names: str | tuple[str, ...], at: int) -> list[Element]:
    """The elements with one of these classes that are there, and that stand in no other such element."""
    wanted = {names} if isinstance(names, str) else set(names)
    found: list[Element] = []
    for child in parent:
        if not is_there(child, at):
            continue
        if wanted & set(classes(child)) and child.tag != "header":
            found.append(child)
        else:
            found += nearest(child, names, at)
    return found


def folded(messages: tuple[AgentMessage, ...]) -> list:
    """The same of a state's messages."""
    return [[it.role, *(folded_part(part) for part in it.parts if type(part) is not ReasoningPart)] for it in messages]


def folded_part(part: object) -> object:
    match part:
        case TextPart():
            return visible(part.text)
        case ToolPart():
            state = "waits" if part.state == "awaiting-confirmation" else part.state
            return [state], folded(part.agent.messages if part.agent is not None else ())
    raise AssertionError(part)


HALF = re.compile(r"\\ud[89ab]..$")


def comparable(shown: list) -> list:
    """Without what cannot be seen: texts without a letter, and the first half of a pair, which comes with the other."""
    return [[part for part in map(comparable_part, message) if part] for message in shown]


def comparable_part(part: object) -> object:
    match part:
        case str():
            return HALF.sub("", part)
        case (badges, run):
            return badges, comparable(run)
    raise AssertionError(part)


@given(logs())
@settings(max_examples=60)
def test_the_conversation_at_a_step_is_the_state_at_that_step(log: list) -> None:
    root = parsed(page_of(rows_of(log)))
    (talk,) = with_class(root, "talk")
    for number, state in enumerate(accumulate(log, session_reducer, initial=EMPTY_SESSION)):
        assert comparable(shown_at(talk, number)) == comparable(folded(state.messages)), number


def test_what_a_retry_took_away_is_there_folded_and_says_so() -> None:
    root = parsed(page_of(shop_rows()))
    (gone,) = with_class(root, "gone")
    assert "2 parts taken away by Retry #78" in text_of(gone)
    assert "book_wrapping" in text_of(gone)


# ---- what is in it --------------------------------------------------------------------------------------


def test_the_head_says_what_the_page_is_of() -> None:
    rows = shop_rows()
    page = page_of(rows, owner="harbour-shop", title="Two blue mugs")
    head = text_of(with_class(parsed(page), "top"))
    digest = rows[-1].hash
    assert digest is not None
    for word in (SHOP_ID, "harbour-shop", "Two blue mugs", "96 actions", "idle", digest.hex(), "2025-12-01 13:22:00"):
        assert word in head


def test_it_has_every_finding_with_links() -> None:
    rows = rows_of([Send("u", "Hi"), Part(MessageStart("a")), Part(ToolResult("nowhere", 1)), Part(Finish("stop"))])
    told = list(findings(rows))
    assert told
    (listed,) = with_class(parsed(page_of(rows)), "findings")
    for finding in told:
        assert finding.text in text_of(listed)
        assert finding.code in text_of(listed)
    links = {element.get("href") for element in listed.iter("a")}
    assert links == {f"#n{number}" for finding in told for number in finding.numbers}


def test_steps_of_one_call_link_to_each_other() -> None:
    rows = shop_rows()
    root = parsed(page_of(rows))
    step = {element.get("id"): element for element in root.iter("tr")}
    numbers = [row.number for row in rows if isinstance(row.action, Part) and isinstance(row.action.part, ToolCall)]
    for number in numbers:
        links = {element.get("href") for element in step[f"n{number}"].iter("a")}
        assert f"#n{number}" in links
        assert len(links) > 1
    asked = step["n65"]
    assert {element.get("href") for element in asked.iter("a")} == {"#n65", "#n66", "#n67", "#n68"}


def test_pieces_of_one_text_are_one_row_that_opens() -> None:
    deltas = [Part(TextDelta("a", piece)) for piece in ("Two ", "blue ", "mugs")]
    rows = rows_of([Send("u", "Hi"), Part(MessageStart("a")), *deltas, Part(Finish("stop"))])
    root = parsed(page_of(rows))
    ids = [element.get("id") for element in root.iter("tr") if element.get("id")]
    assert ids == ["n1", "n2", "n3", "n6"]
    assert "3-5" in text_of(element for element in root.iter("tr") if element.get("id") == "n3")
    assert {"n4", "n5"} <= {element.get("id") for element in root.iter("span")}


def test_an_action_without_effect_is_marked() -> None:
    rows = rows_of([Send("u", "Hi"), Part(ToolError("nowhere", "x"))])
    cells = {row.get("id"): [text_of(cell) for cell in row] for row in parsed(page_of(rows)).iter("tr")}
    assert (cells["n1"][-1], cells["n2"][-1]) == ("", "none")


def test_retry_is_told_with_what_it_drops() -> None:
    root = parsed(page_of(shop_rows()[:77]))
    told = text_of(element for element in root.iter("section") if element.get("id") == "retry")
    assert "book_wrapping" in told
    assert "the call was cancelled" in told


def test_an_empty_session_has_a_page() -> None:
    assert "The log is empty." in text_of(parsed(page_of([])))


# ---- long logs ------------------------------------------------------------------------------------------


def test_a_long_text_is_folded_and_a_very_long_one_left_out_with_its_size() -> None:
    limits = Limits(head=10, whole=100)
    texts = ("x" * 10, "y" * 100, "z" * 101)
    page = page_of(rows_of([Send(f"u{place}", text) for place, text in enumerate(texts)]), limits=limits)
    (talk,) = with_class(parsed(page), "talk")
    told = text_of(talk)
    assert "x" * 10 in told
    assert "y" * 100 in told
    assert "z" * 10 + "…" in told
    assert "z" * 11 not in told
    assert "101 characters in all" in told


def test_many_steps_stand_in_groups_that_fold() -> None:
    page = page_of(rows_of([Send(f"u{number}", "Hi") for number in range(95)]), limits=Limits(group=20))
    groups = list(with_class(parsed(page), "group"))
    assert [group.tag for group in groups] == ["details"] * 5
    assert [group.get("open") is not None for group in groups] == [True, False, False, False, False]


@pytest.mark.parametrize("limits", [Limits(calls=3), Limits(bodies=5), Limits(total=50), Limits(lanes=2, pieces=2)])
def test_what_has_no_room_is_left_out_but_no_step_is(limits: Limits) -> None:
    rows = shop_rows()
    root = parsed(page_of(rows, limits=limits))
    ids = {element.get("id") for element in root.iter()}
    assert {f"n{row.number}" for row in rows} <= ids
    assert len(page_of(rows, limits=limits)) < len(page_of(rows))


def nested(depth: int) -> list:
    """Sub-agents inside each other."""
    actions: list = [Send("u", "Hi"), Part(MessageStart("a")), Part(ToolCall("a", "c0", "delegate_to_x", {}))]
    for level in range(depth):
        actions.append(Part(MessageStart(f"a{level}"), f"c{level}"))
        actions.append(Part(ToolCall(f"a{level}", f"c{level + 1}", "delegate_to_x", {}), f"c{level}"))
    return actions


def deep_value() -> object:
    value: object = 1
    for _ in range(190):
        value = [value]
    return value


@pytest.mark.parametrize(
    "log",
    [
        nested(60),
        [Send("u", "Hi"), Part(MessageStart("a")), Part(ToolCall("a", "c", "n", deep_value()))],
        [Send("u", "x" * 3_000_000)],
        [Send("u", "Hi"), Part(StepFinish(10**400)), Part(StepFinish(1.5))],
        [
            Send("u", "Hi"),
            Part(MessageStart("a")),
            Part(ToolCall("a", "c", "n", '{"no JSON')),
            Part(ToolResult("c", 1)),
        ],
    ],
    ids=["nested", "deep", "long", "numbers", "half-json"],
)
@pytest.mark.parametrize("first", [1_764_595_320_000, 10**18, -(10**15)])
def test_extremes_have_a_page_that_is_not_too_large(log: list, first: int) -> None:
    rows = [LoggedAction(number, first + number, it, encode_action(it), None) for number, it in enumerate(log, 1)]
    page = page_of(rows)
    assert f"n{len(log)}" in {element.get("id") for element in parsed(page).iter("tr")}
    assert len(page) < 500_000


def test_a_call_that_a_living_run_waits_with_is_named() -> None:
    lease = Lease("run-9", "host, process 12", 0, 1, Waiting(65, "c3", "place_order", "approval"))
    head = text_of(with_class(parsed(page_of(shop_rows()[:66], lease=lease)), "top"))
    assert "run-9" in head
    assert "#65 place_order" in head


# ---- nothing is loaded, nothing of a log is obeyed -------------------------------------------------------


def test_the_policy_lets_nothing_but_the_pages_own_style_and_script() -> None:
    root = parsed(page_of(shop_rows()))
    metas = {element.get("http-equiv"): element.get("content") for element in root.iter("meta")}
    policy = metas["Content-Security-Policy"] or ""
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert allowed["default-src"] == "'none'"
    for kind in ("style", "script"):
        (element,) = root.iter(kind)
        hashed = b64encode(sha256(text_of(element).encode()).digest()).decode()
        assert allowed[f"{kind}-src"] == f"'sha256-{hashed}'"
    assert not [element for element in root.iter() if element.get("src") or element.get("style")]
    assert not re.search(r"https?://|url\(|@import", page_of(shop_rows()))


def test_characters_that_cannot_be_seen_are_written_as_escapes() -> None:
    unseen = "\x00\x1b[2J\u202eevil\u2066\u200b\ufeff\U000e0041\ud800\r"
    assert visible(unseen) == r"\x00\x1b[2J\u202eevil\u2066\u200b\ufeff\U000e0041\ud800\r"
    assert visible("a\ud83d\ude00b") == "a😀b"
    assert visible("line\n\ttab 👨‍👩‍👧 é") == "line\n\ttab 👨‍👩‍👧 é"
    assert text_of(parsed(f"<!doctype html><title>t</title><p>{marked(unseen)}</p>").iter("p")) == visible(unseen)


def test_the_state_of_the_sample_is_what_the_page_ends_with() -> None:
    rows = shop_rows()
    (talk,) = with_class(parsed(page_of(rows)), "talk")
    assert comparable(shown_at(talk, len(rows))) == folded(fold(row.action for row in rows).messages)
