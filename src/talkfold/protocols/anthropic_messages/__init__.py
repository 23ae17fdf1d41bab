"""Anthropic's Messages API: out as a request that the provider takes.

Source of the rules: Anthropic's API reference for messages, tool use and extended thinking, and the error
messages of the API itself.
"""

from __future__ import annotations

from .exporting import to_anthropic
from .rules import ANTHROPIC, check_anthropic

__all__ = ("ANTHROPIC", "check_anthropic", "to_anthropic")
