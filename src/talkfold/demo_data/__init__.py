"""What the demo plays: four invented conversations, a run that dies, and how it is finished.

``conversations.jsonl`` is in the chat-completions form, one ``{id, messages}`` a line; ``run.jsonl`` and
``reply.jsonl`` are actions, one a line. Shops, trains and people in them are invented.
"""

from __future__ import annotations

from importlib.resources import files

__all__ = ("CONVERSATIONS", "REPLY", "RUN")

_HERE = files(__name__)

CONVERSATIONS = _HERE / "conversations.jsonl"
RUN = _HERE / "run.jsonl"
REPLY = _HERE / "reply.jsonl"
