"""OpenAI's chat-completions messages: in as a log, out as a request that the provider takes.

Source of the rules: OpenAI's API reference for chat completions, and the error messages of the API itself.
"""

from __future__ import annotations

from .exporting import to_openai_chat
from .importing import Note, NoteCode, OpenAIImport, from_openai_chat
from .rules import OPENAI, check_openai_chat

__all__ = (
    "OPENAI",
    "Note",
    "NoteCode",
    "OpenAIImport",
    "check_openai_chat",
    "from_openai_chat",
    "to_openai_chat",
)
