"""A log with everything that steps can be chosen by: two runs, a sub-agent, calls that fail, thoughts, actors."""

from __future__ import annotations

from typing import Any

__all__ = ("ROWS", "SESSION", "file")

SESSION = "post-3"


def _part(within: str | None = None, **part: Any) -> dict[str, Any]:
    return {"type": "part", "part": part, **({"within": within} if within else {})}


def _logged(action: dict[str, Any], **envelope: Any) -> dict[str, Any]:
    return {"action": action, **envelope}


_FIRST = [
    _logged({"type": "send", "id": "u-1", "text": "Send the lamp."}, actor="ann"),
    _logged(_part(type="message-start", messageId="a-1")),
    _logged(_part(type="reasoning", messageId="a-1", text="Who can ")),
    _logged(_part(type="reasoning", messageId="a-1", text="send it?")),
    _logged(_part(type="text-delta", messageId="a-1", delta="I ask the po")),
    _logged(_part(type="text-delta", messageId="a-1", delta="st office.")),
    _logged(
        _part(type="tool-call", messageId="a-1", id="d1", name="delegate_to_post", input={"task": "Send the lamp"})
    ),
    _logged(_part("d1", type="message-start", messageId="n-1")),
    _logged(_part("d1", type="tool-call", messageId="n-1", id="c1", name="book", input={"to": "Oslo", "kg": 4.5})),
    _logged(_part("d1", type="tool-error", id="c1", error="Error: no courier today")),
    _logged(_part("d1", type="finish", reason="stop")),
    _logged(_part(type="tool-result", id="d1", output="No courier.")),
    _logged(_part(type="finish", reason="stop")),
]
_SECOND = [
    _logged({"type": "send", "id": "u-2", "text": "Then tomorrow."}, actor="ann"),
    _logged(_part(type="message-start", messageId="a-2")),
    _logged(_part(type="tool-call", messageId="a-2", id="c1", name="book", input={"to": "Oslo", "day": 2})),
    _logged({"type": "toolPhase", "name": "book", "state": "awaiting-confirmation", "prompt": "Book it?"}),
    _logged({"type": "toolPhase", "name": "book", "state": "running"}, actor="ann"),
    _logged(_part(type="tool-result", id="c1", output={"booked": True})),
    _logged(_part(type="text-delta", messageId="a-2", delta="It is on its way.")),
    _logged(_part(type="step-finish", step=1)),
    _logged(_part(type="tool-call", messageId="a-2", id="c2", name="tell", input={})),
    _logged({"type": "stop"}, actor="ann", meta={"reason": "enough"}),
]
ROWS: list[dict[str, Any]] = [
    {"number": number, "time": f"2026-01-02T03:04:{number:02}.000Z", "run": run, **row}
    for number, (run, row) in enumerate(
        [*(("run-1", row) for row in _FIRST), *(("run-2", row) for row in _SECOND)], start=1
    )
]
"""Numbers 1 to 13 are the first turn, 14 to 23 the second."""


def file() -> list[Any]:
    """The lines of the file to import."""
    return [{"talkfold": 1, "session": {"id": SESSION}}, *ROWS]
