"""What users need to test their own stores. Needs pytest; nothing in talkfold itself imports it."""

from __future__ import annotations

__all__ = ()
