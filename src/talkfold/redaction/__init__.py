"""Redaction: secrets taken out of what is logged, before it is written.

Nothing is active by itself. ``open_store(…, redact=Redaction(patterns=[BEARER_TOKEN], fields=["password"]))`` sets it
for everything that is written through that store. docs/privacy.md says what it can find and what it cannot.
"""

from __future__ import annotations

from .pieces import cut_out
from .ready import AWS_KEY_ID, BEARER_TOKEN, CARD_NUMBER, EMAIL, PRIVATE_KEY
from .rules import REDACTED, Edit, Pattern, Redaction

__all__ = (
    "AWS_KEY_ID",
    "BEARER_TOKEN",
    "CARD_NUMBER",
    "EMAIL",
    "PRIVATE_KEY",
    "REDACTED",
    "Edit",
    "Pattern",
    "Redaction",
    "cut_out",
)
