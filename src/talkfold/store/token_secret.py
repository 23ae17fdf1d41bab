"""The secret of a new token: apart from what is known of tokens, because it comes from chance."""

from __future__ import annotations

import secrets
from typing import Final

__all__ = ("TOKEN_PREFIX", "new_secret")

TOKEN_PREFIX: Final = "talkfold_"
"""The beginning of every secret, so that people, and programs that look for leaked secrets, know what it is."""


def new_secret() -> str:
    """A new token's secret. It is shown once; a store gets ``secret_digest`` of it."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)
