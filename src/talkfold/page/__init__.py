"""A session as one page: a file that opens in any browser, offline, for whoever must say what an agent did.

Pure: rows in, text out. The page needs no network, no server and no script; nothing in a log can become markup.
"""

from __future__ import annotations

from .document import render
from .room import Limits

__all__ = ("Limits", "render")
