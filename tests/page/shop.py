"""An invented afternoon in a mug shop: a sub-agent, a confirmation, a failed call, a stop and a retry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from talkfold import LoggedAction, encode_action
from talkfold.actions import (
    AgentStreamPart,
    Finish,
    MessageStart,
    Part,
    Reasoning,
    Retry,
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
from talkfold.log import chain_link, chain_start
from talkfold.store.protocol import Session

__all__ = ("SHOP_ID", "session_of", "shop_rows")

SHOP_ID = "order-2041"
_START = 1_764_595_320_000

_Meta = dict[str, Any] | None
_Told = tuple[int, SessionAction, str, str | None, _Meta]


def _says(message: str, text: str, run: str, within: str | None = None, pace: int = 45) -> Iterator[_Told]:
    words = text.split(" ")
    for place, word in enumerate(words):
        delta = word if place == len(words) - 1 else word + " "
        yield pace, Part(TextDelta(message, delta), within), run, None, None


def _does(after: int, part: AgentStreamPart, run: str, within: str | None = None, meta: _Meta = None) -> _Told:
    return after, Part(part, within), run, None, meta


def _used(tokens: int, output: int, cost: float, model: str = "large-2") -> _Meta:
    return {"model": model, "usage": {"inputTokens": tokens, "outputTokens": output, "cost": cost}}


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _afternoon() -> Iterator[_Told]:
    yield 0, Send("u-1", "Do you have two blue mugs, and could they be here before Friday?"), "run-1", "customer", None
    yield _does(420, MessageStart("a-1"), "run-1")
    yield _does(310, Reasoning("a-1", "Stock first, then delivery. The customer gave no postcode."), "run-1")
    yield from _says("a-1", "Let me look at the shelf and ask our delivery desk.", "run-1")
    yield _does(60, ToolCall("a-1", "c1", "find_products", {"query": "mug", "colour": "blue"}), "run-1")
    found = {"products": [{"sku": "MUG-B-01", "name": "Harbour mug", "price": "12.50", "stock": 31}], "total": 1}
    yield _does(640, ToolResult("c1", found), "run-1")
    yield _does(30, ToolCall("a-1", "c2", "delegate_to_delivery", {"task": "Two mugs before Friday: how?"}), "run-1")
    yield _does(280, MessageStart("d-1"), "run-1", "c2")
    yield from _says("d-1", "I compare the two carriers.", "run-1", "c2", 30)
    yield _does(40, ToolCall("d-1", "k1", "carrier_quote", {"carrier": "Northline", "weight_g": 760}), "run-1", "c2")
    yield _does(35, ToolCall("d-1", "k2", "carrier_quote", {"carrier": "Tern Post", "weight_g": 760}), "run-1", "c2")
    yield _does(910, ToolError("k1", "Error: the carrier did not answer within 0.9 s"), "run-1", "c2")
    yield _does(420, ToolResult("k2", _text("Tern Post: 4.20, arrives Thursday before noon.")), "run-1", "c2")
    yield _does(15, ToolResult("k9", _text("Tern Post: 4.20, arrives Thursday before noon.")), "run-1", "c2")
    yield from _says("d-1", "Tern Post, 4.20, Thursday before noon.", "run-1", "c2", 30)
    yield _does(90, Finish("stop"), "run-1", "c2", _used(640, 58, 0.0011, "small-2"))
    yield _does(10, ToolResult("c2", _text("Tern Post, 4.20, Thursday before noon.")), "run-1")
    yield _does(5, StepFinish(1), "run-1", None, _used(1480, 96, 0.0068))
    yield _does(700, MessageStart("a-2"), "run-1")
    yield from _says(
        "a-2",
        "Yes: the **Harbour mug**, 12.50 each, 31 in stock.\n\nWith Tern Post they arrive on Thursday before noon, "
        "for 4.20. Shall I order two?",
        "run-1",
    )
    yield _does(40, Finish("stop"), "run-1", None, _used(1730, 71, 0.0073))

    yield 48_000, Send("u-2", "Yes please. Gift wrap, and write <3 on the card."), "run-2", "customer", None
    yield _does(500, MessageStart("a-3"), "run-2")
    order = {"items": [{"sku": "MUG-B-01", "count": 2}], "carrier": "Tern Post", "wrap": True, "card": "<3"}
    yield _does(380, ToolCall("a-3", "c3", "place_order", {**order, "total": "29.20"}), "run-2")
    asks = ToolPhase("place_order", "awaiting-confirmation", "Order two Harbour mugs for 29.20, gift-wrapped?")
    yield 20, asks, "run-2", None, None
    yield 11_400, ToolPhase("place_order", "running"), "run-2", "customer", None
    yield _does(870, ToolResult("c3", {"order": "2041-7", "charged": "29.20", "arrives": "Thursday"}), "run-2")
    yield from _says("a-3", "Ordered. I also book the gift wrap", "run-2")
    yield _does(30, ToolCall("a-3", "c4", "book_wrapping", {"order": "2041-7", "paper": "stars"}), "run-2")
    yield 2_600, Stop(), "run-2", "customer", {"reason": "It took too long"}

    yield 9_000, Retry(), "run-3", "customer", None
    yield _does(450, MessageStart("a-4"), "run-3")
    yield _does(90, ToolCall("a-4", "c5", "book_wrapping", {"order": "2041-7", "paper": "stars"}), "run-3")
    yield _does(530, ToolResult("c5", {"booked": True}), "run-3")
    yield from _says("a-4", "All done: two Harbour mugs, wrapped in stars, with <3 on the card. Thursday!", "run-3")
    yield _does(35, Finish("stop"), "run-3", None, _used(2210, 64, 0.0085))


def shop_rows() -> list[LoggedAction]:
    """The afternoon as the rows of a log, with the hash chain that a store would give it."""
    rows: list[LoggedAction] = []
    time, link = _START, chain_start(SHOP_ID)
    for number, (after, action, run, actor, meta) in enumerate(_afternoon(), 1):
        time += after
        body = encode_action(action)
        link = chain_link(link, number, time, run, actor, None, body)
        rows.append(LoggedAction(number, time, action, body, link, run, actor, meta))
    return rows


def session_of(rows: Sequence[LoggedAction], **fields: Any) -> Session:
    """The row of a session that has this log."""
    known: dict[str, Any] = {
        "id": SHOP_ID,
        "status": "idle",
        "number": len(rows),
        "digest": (rows[-1].hash if rows else None) or chain_start(SHOP_ID),
        "size": sum(len(row.body) for row in rows),
        "created": rows[0].time if rows else _START,
        "updated": rows[-1].time if rows else _START,
    }
    return Session(**{**known, **fields})
