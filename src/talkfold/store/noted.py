"""A digest that was noted earlier, looked for in a log: proof that nobody has written that part of it anew.

Whoever can write the file can also make a chain that closes. What they cannot do is give a rewritten log the digest
that somebody has kept elsewhere.
"""

from __future__ import annotations

from .protocol import Problem

__all__ = ("Noted",)


class Noted:
    """What a walk along a log learns of a noted digest; of none, nothing.

    ``proven_to`` is the number of the action up to which the log is what was noted.
    """

    def __init__(self, digest: bytes | None, start: bytes) -> None:
        self.digest = digest
        self.proven_to: int | None = 0 if digest == start else None
        self._broken: int | None = None
        self._met: int | None = None

    def found(self, number: int) -> None:
        """The chain as it was walked has this digest at this number."""
        if self._broken is None:
            self.proven_to = number
        else:
            self._met = number

    def broken(self, number: int) -> None:
        """The chain does not close at this number: what stands behind it no longer proves what is before."""
        if self._broken is None:
            self._broken = number

    def problem(self, end: int) -> Problem | None:
        """What is wrong, at the end of the log."""
        if self.digest is None or self.proven_to is not None:
            return None
        if self._met is not None:
            text = f"the noted digest stands at {self._met}, but the log before it is not what was noted"
            return Problem("since", self._met, text)
        text = (
            "the noted digest is not in this log: what was noted is of another session, or has been rewritten, or its"
            " end is cut off"
        )
        return Problem("since", end, text)
