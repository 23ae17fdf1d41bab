"""How long something took, for people."""

from __future__ import annotations

__all__ = ("duration",)

_MINUTE = 60_000
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def duration(ms: int) -> str:
    """Milliseconds in the units that matter: ``257 ms``, ``1.1 s``, ``2 min 5 s``, ``3 h 10 min``, ``2 d 4 h``."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    for size, unit, small, lesser in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (0, "min", 1000, "s")):
        if seconds * 1000 >= size:
            big, rest = divmod(seconds * 1000, size or _MINUTE)
            return f"{big} {unit} {rest // small} {lesser}" if rest // small else f"{big} {unit}"
    raise AssertionError("the last size is 0")
