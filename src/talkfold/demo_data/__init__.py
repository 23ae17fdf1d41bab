"""What the demo imports when it is given no file: four invented conversations.

``conversations.jsonl`` is in the chat-completions form, one ``{id, messages}`` a line. Shops, trains and people in
them are invented.
"""

from __future__ import annotations

from importlib.resources import files

__all__ = ("CONVERSATIONS",)

CONVERSATIONS = files(__name__) / "conversations.jsonl"
