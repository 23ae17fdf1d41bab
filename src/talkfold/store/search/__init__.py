"""Search, as far as it needs no database: what a word is, what of a log is searched, and what a query means."""

from __future__ import annotations

__all__ = ()
