"""What a log shows: pure functions for whoever must say what an agent did, and why the next step went wrong.

They read logged actions and nothing else: no I/O, no clock, no chance. Every result is a frozen Struct with a JSON
form.
"""

from __future__ import annotations

from .diff import diff
from .findings import Auditor, Finding, Severity, findings
from .operations import Diff, LevelDiff, decode_diff, encode_diff
from .patch import apply
from .view import Line, describe

__all__ = (
    "Auditor",
    "Diff",
    "Finding",
    "LevelDiff",
    "Line",
    "Severity",
    "apply",
    "decode_diff",
    "describe",
    "diff",
    "encode_diff",
    "findings",
)
