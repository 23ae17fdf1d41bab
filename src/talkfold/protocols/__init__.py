"""Conversations in other people's forms: pure mappings, no I/O.

``openai_chat`` and ``anthropic_messages`` speak to the model providers, ``native`` is the project's own file
of whole sessions. What a provider gets is always healed first (``talkfold.healing``).
"""

from __future__ import annotations

__all__ = ()
