"""What a log shows: pure functions for whoever must say what an agent did, and why the next step went wrong.

They read logged actions and nothing else: no I/O, no clock, no chance. Every result is a frozen Struct with a JSON
form.
"""

from __future__ import annotations

from .findings import Auditor, Finding, Severity, findings

__all__ = ("Auditor", "Finding", "Severity", "findings")
