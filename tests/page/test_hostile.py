"""Whatever a log says, it stays text: no element, attribute or script of a page is made by data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args
from xml.etree.ElementTree import Element

import pytest
from parsed import page_of, parsed, text_of

from talkfold import LoggedAction, encode_action
from talkfold.actions import (
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
from talkfold.page.visible import visible
from talkfold.store.lease import Lease

HARMLESS = "harmless words"
PAYLOADS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea></title></summary></details></table><iframe srcdoc=x>",
    "<!--",
    "-->",
    "]]><![CDATA[",
    "&lt;b&gt; &amp; &#x3c;i&#x3e;",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "<base href=//evil.example><meta http-equiv=refresh content=0>",
    "\n<p>\n",
    '<a href="#n1" id=n1 class=m data-s=1>',
)


def log(text: str) -> Iterator[SessionAction]:
    """Every kind of action, with the text in every field that can hold it; ids of one call agree."""
    yield Send(f"u {text}", text)
    yield Part(MessageStart(f"a {text}"))
    yield Part(TextDelta(f"a {text}", text))
    yield Part(TextDelta(f"a {text}", text))
    yield Part(Reasoning(f"a {text}", text, {text: text}))
    yield Part(ToolCall(f"a {text}", f"c {text}", text, {text: [text, {"n": text}]}, {text: text}))
    yield ToolPhase(text, "awaiting-confirmation", text)
    yield ToolPhase(text, "running")
    yield Part(ToolResult(f"c {text}", {"content": [{"type": "text", "text": text}]}))
    yield Part(ToolCall(f"a {text}", f"d {text}", f"delegate_to_{text}", text))
    yield Part(MessageStart(f"n {text}"), f"d {text}")
    yield Part(TextDelta(f"n {text}", text), f"d {text}")
    yield Part(ToolCall(f"n {text}", f"e {text}", text, None), f"d {text}")
    yield Part(ToolError(f"e {text}", text), f"d {text}")
    yield Part(ToolResult(f"d {text}", {text: text}))
    yield Part(StepFinish(1))
    yield Part(ToolCall(f"a {text}", f"f {text}", text, [text]))
    yield Stop()
    yield Retry()
    yield Part(MessageStart(f"b {text}"))
    yield Part(TextDelta(f"b {text}", text))
    yield Part(RunError(text, "network"))
    yield Reset()
    yield Send(f"v {text}", text)
    yield Part(MessageStart(f"w {text}"))
    yield Part(ToolResult(f"nowhere {text}", text))
    yield Part(Finish("aborted"))
    yield Part(RunError(text))


def page_with(text: str) -> Element:
    meta = {"reason": text, "model": text, text: text, "usage": {"inputTokens": 1}}
    rows = [
        LoggedAction(number, number * 1000, action, encode_action(action), None, f"r {text}", text, meta)
        for number, action in enumerate(log(text), 1)
    ]
    lease = Lease(f"r {text}", text, 0, 1)
    metadata: dict[str, Any] = {"system": [{"content": text}, {"content": [{"text": text}]}], text: text}
    page = page_of(rows, id=text, title=text, owner=text, forked_from=text, metadata=metadata, lease=lease)
    return parsed(page)


def shape(element: Element) -> Any:
    """Everything of an element but its text: its name, the attributes that steer something, and what is inside."""
    steering = {key: value for key, value in element.attrib.items() if key not in ("value", "title")}
    return (element.tag, steering, [shape(child) for child in element])


def test_the_log_has_every_kind_of_action() -> None:
    seen = {type(action) for action in log("x")} | {type(it.part) for it in log("x") if isinstance(it, Part)}
    assert seen == {*get_args(SessionAction), *get_args(AgentStreamPart)}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_hostile_log_makes_the_very_elements_that_a_harmless_one_makes(payload: str) -> None:
    # As long as the harmless words, so that nothing is indented or cut that was not.
    hostile, harmless = page_with(payload), page_with(HARMLESS.ljust(len(payload), "x")[: len(payload)])
    assert shape(hostile) == shape(harmless)


UNSEEN = ("\x00\x1b[2J\u202eabc\u2069", "\ud83d", "\udc00\ud83d", "\r\n\x85\u2028")


@pytest.mark.parametrize("payload", [*PAYLOADS, *UNSEEN])
def test_it_stands_there_as_text(payload: str) -> None:
    root = page_with(payload)
    (talk,) = (element for element in root.iter("div") if element.get("class") == "talk")
    said = [text_of(it) for it in talk.iter("div") if "say" in it.get("class", "")]
    assert visible(payload) in said
    assert visible(payload + payload) in said
    assert len(list(root.iter("script"))) == 1
    assert not [key for element in root.iter() for key in element.attrib if key.startswith("on")]
