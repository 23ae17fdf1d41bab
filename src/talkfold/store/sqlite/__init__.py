"""The embedded store: one SQLite file."""

from __future__ import annotations

__all__ = ()
