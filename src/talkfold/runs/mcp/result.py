"""What a call gives back: the server's result as it came, and its errors under our codes."""

from __future__ import annotations

import re
from typing import Any, get_args

from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT

from ...model import Json
from ..output import ToolErrorCode, ToolOutput, error_output

__all__ = ("error_of", "output_of_result")

_CODES: dict[int, ToolErrorCode] = {
    INVALID_PARAMS: "invalid_input",
    METHOD_NOT_FOUND: "not_found",
    REQUEST_TIMEOUT: "timeout",
}
_NO_TOOL = re.compile(r"unknown tool|no such tool|tool\b.*\b(not found|does not exist)", re.IGNORECASE | re.DOTALL)
_CODED = re.compile(rf"Error \[({'|'.join(get_args(ToolErrorCode))})\] ")
_MAX_TEXT = 2_000


def output_of_result(name: str, result: dict[str, Json]) -> ToolOutput:
    """The result exactly, with one exception: the text of a failed one begins with a code of ours.

    Raises InvalidAction for what is no result.
    """
    output = ToolOutput(result)
    if not output.is_error or _CODED.match(output.text):
        return output
    content: list[dict[str, Any]] = list(output.content)
    for index, block in enumerate(content):
        if block["type"] == "text" and isinstance(block.get("text"), str):
            content[index] = {**block, "text": f"Error [failed] {block['text']}"}
            break
    else:
        content.insert(0, {"type": "text", "text": f"Error [failed] {name}: it says nothing more"})
    return ToolOutput({**result, "content": content})


def error_of(name: str, code: int, message: str) -> ToolOutput:
    """A JSON-RPC error as an output. The protocol answers a tool that it does not have with invalid params too."""
    ours = _CODES.get(code, "failed")
    if ours == "invalid_input" and _NO_TOOL.search(message):
        ours = "not_found"
    return error_output(ours, f"{name}: {message[:_MAX_TEXT]}")
