"""The page's colours: whatever is written can be read, in the light and in the dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = (files("talkfold.page") / "templates" / "style.css").read_text("utf-8")
LEAST = 4.5  # WCAG 2.2, level AA, for text of any size

ON_ANY = ("ink", "soft", "accent", "done", "error", "wait", "cancel")
PAIRS = [
    *((ink, ground) for ink in ON_ANY for ground in ("bg", "card", "fill")),
    *((ink, "person") for ink in ("ink", "soft", "accent")),
    *((ink, "mark") for ink in ("ink", "soft", "accent")),
    ("error", "tint-error"),
]


def colours(scheme: str) -> dict[str, str]:
    """A scheme's colours by their names, as six digits."""
    light, dark = re.findall(r":root\{([^}]*--bg:[^}]*)\}", STYLE.split("@media print")[0])
    found = re.findall(r"--([a-z-]+):#([0-9a-f]{6}|[0-9a-f]{3})\b", light if scheme == "light" else dark)
    return {name: digits if len(digits) == 6 else "".join(2 * digit for digit in digits) for name, digits in found}


def luminance(digits: str) -> float:
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS)
def test_text_stands_out(scheme: str, ink: str, ground: str) -> None:
    known = colours(scheme)
    darker, lighter = sorted((luminance(known[ink]), luminance(known[ground])))
    assert (lighter + 0.05) / (darker + 0.05) >= LEAST


def test_both_schemes_have_the_same_colours() -> None:
    assert colours("light").keys() == colours("dark").keys()
