"""What went wrong in a log, or is worth knowing: ``findings(rows)``.

The fold is total: what makes no sense changes nothing. Here it is told, with the actions that show it, in words, and
with what to do about it.
"""

from __future__ import annotations

from .auditor import HUGE_BYTES, Auditor, findings
from .codes import AGENT_FAULTS, FINDINGS, Finding, FindingKind, Severity, to_page

__all__ = (
    "AGENT_FAULTS",
    "FINDINGS",
    "HUGE_BYTES",
    "Auditor",
    "Finding",
    "FindingKind",
    "Severity",
    "findings",
    "to_page",
)
