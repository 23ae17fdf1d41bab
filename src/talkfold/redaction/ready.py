"""Patterns that are precise enough to be used as they are. None is active until it is named."""

from __future__ import annotations

import re

from .rules import REDACTED, Pattern

__all__ = ("AWS_KEY_ID", "BEARER_TOKEN", "CARD_NUMBER", "EMAIL", "PRIVATE_KEY")

BEARER_TOKEN = Pattern(r"(?i)(?<=\bbearer )[a-z0-9._~+/-]{8,}={0,2}", name="bearer token")
"""What follows ``Bearer`` in an Authorization header."""

PRIVATE_KEY = Pattern(
    r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]{0,32}PRIVATE KEY-----)?",
    name="private key",
)
"""A PEM block, also one that was cut off before its end."""

AWS_KEY_ID = Pattern(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b", name="AWS key id")
"""An access key's id. The secret that belongs to it has no form of its own: name its field."""

EMAIL = Pattern(
    r"\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b", name="e-mail address"
)
"""An address in its everyday form."""


def _card(found: re.Match[str]) -> str:
    digits = [int(digit) for digit in found[0] if digit.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return found[0] if (sum(digits[::-2]) + sum(doubled)) % 10 else REDACTED


CARD_NUMBER = Pattern(r"(?<![0-9])(?<![0-9][ -])[2-6](?:[ -]?[0-9]){12,18}(?![ -]?[0-9])", _card, name="card number")
"""13 to 19 digits with the check digit of a payment card (Luhn), together or in groups."""
