"""Which calls of a server the person must agree to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from ...errors import InvalidArgument
from ..adapter import ToolCallRequest
from ..tool import unsaid_confirmation

__all__ = ("ConfirmMcp", "check_confirm", "question")

_log = logging.getLogger("talkfold.runs.mcp")

ConfirmMcp: TypeAlias = Literal["destructive", "always"] | Callable[[ToolCallRequest, dict[str, Any]], str | None]
"""Which calls are asked about: those of tools that may destroy something, all, or what a function of the call and the
tool's annotations makes a question of (``None``: nothing is asked).

Annotations are what the server says of itself: believe them only of a server that you trust."""


def check_confirm(confirm: object) -> None:
    """Raises InvalidArgument for what is no ConfirmMcp."""
    if confirm is not None and confirm not in ("destructive", "always") and not callable(confirm):
        raise InvalidArgument("confirm", f"{confirm!r} is neither 'destructive' nor 'always' nor a function")


def question(confirm: ConfirmMcp | None, call: ToolCallRequest, annotations: dict[str, Any]) -> str | None:
    """What to ask before the call. A function that fails must never let it through unasked."""
    if confirm is None:
        return None
    if callable(confirm):
        try:
            asked = confirm(replace(call, input=deepcopy(call.input)), deepcopy(annotations))
            return None if asked is None else str(asked)
        except Exception:
            _log.exception("the confirmation text of tool %r cannot be made", call.name)
            return unsaid_confirmation(call.name)
    return unsaid_confirmation(call.name) if confirm == "always" or _may_destroy(annotations) else None


def _may_destroy(annotations: dict[str, Any]) -> bool:
    """As the protocol has it: a tool that says nothing may."""
    return annotations.get("readOnlyHint") is not True and annotations.get("destructiveHint") is not False
