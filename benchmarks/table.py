"""The table: one line for each claim, in Markdown for the page and the same text for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .measure import Timing, ratio

__all__ = ("Line", "duration", "markdown", "peer_ratios", "speed")


@dataclass(frozen=True)
class Line:
    """One claim and what came of it. ``met`` is ``None`` where nothing was promised."""

    work: str
    reach: str
    reached: str
    met: bool | None
    peers: tuple[str, ...] = ()


def duration(seconds: float) -> str:
    """A time with three significant digits, in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def speed(ours: Timing, floor: Timing, floor_name: str) -> str:
    """Our speed as a share of the floor's (0.5 ×: twice the time), with both times."""
    share = floor.median / ours.median
    return f"{share:.2f} × ({duration(ours.median)}; {floor_name} {duration(floor.median)})"


def peer_ratios(ours: Timing, peers: Mapping[str, Timing]) -> tuple[str, ...]:
    """How many times as long as talkfold each peer takes."""
    return tuple(f"{name} {_digits(ratio(timing, ours))} ×" for name, timing in peers.items())


def markdown(lines: Sequence[Line]) -> str:
    """The lines as a Markdown table."""
    marks = {True: "✓ ", False: "✗ ", None: ""}
    rows = [(line.work, line.reach, marks[line.met] + line.reached, "<br>".join(line.peers) or "–") for line in lines]
    head = [("work", "reach", "reached", "peers"), ("---", "---", "---", "---")]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (*head, *rows)) + "\n"


def _digits(number: float) -> str:
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"
