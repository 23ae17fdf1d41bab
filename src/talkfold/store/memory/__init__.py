"""The store in memory: sessions of one process, kept nowhere."""

from __future__ import annotations

__all__ = ()
