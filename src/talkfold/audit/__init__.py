"""What a log shows: pure functions for whoever must say what an agent did, and why the next step went wrong.

They read logged actions and nothing else: no I/O, no clock, no chance. Every result is a frozen Struct with a JSON
form.
"""

from __future__ import annotations

from .blame import Blame, Contribution, Place, PlaceStep, place_at
from .diff import diff
from .findings import Auditor, Finding, Severity, findings
from .lanes import Lane, lanes, lanes_by_row
from .marks import Mark, MarkKind
from .operations import Diff, LevelDiff, decode_diff, encode_diff
from .patch import apply
from .replay import Pages, Replay
from .timings import CallTiming, RunTiming, StepTiming, Timings, Usage, timings
from .view import Line, describe
from .whatif import Change, Insert, Replace, Skip, WhatIf, skip_where, what_if, with_changes

__all__ = (
    "Auditor",
    "Blame",
    "CallTiming",
    "Change",
    "Contribution",
    "Diff",
    "Finding",
    "Insert",
    "Lane",
    "LevelDiff",
    "Line",
    "Mark",
    "MarkKind",
    "Pages",
    "Place",
    "PlaceStep",
    "Replace",
    "Replay",
    "RunTiming",
    "Severity",
    "Skip",
    "StepTiming",
    "Timings",
    "Usage",
    "WhatIf",
    "apply",
    "decode_diff",
    "describe",
    "diff",
    "encode_diff",
    "findings",
    "lanes",
    "lanes_by_row",
    "place_at",
    "skip_where",
    "timings",
    "what_if",
    "with_changes",
)
