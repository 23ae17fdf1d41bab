"""A server's list of tools: under names that every provider takes, each with a check of its input."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, cast

from jsonschema.exceptions import SchemaError, best_match  # type: ignore[import-untyped]
from jsonschema.validators import validator_for  # type: ignore[import-untyped]
from msgspec import Struct
from referencing import Registry

from ...model import DELEGATE_PREFIX, Json
from ..adapter import ToolDescriptor

__all__ = ("NAME", "InputCheck", "McpTool", "legal_name", "tools_of")

_log = logging.getLogger("talkfold.runs.mcp")

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME = 64
_MAX_FAULT = 500  # characters: the text may quote the input


class McpTool(Struct, frozen=True, eq=False):
    """One tool: its name on the server, what the model is told, and what the server says of it besides."""

    name: str
    descriptor: ToolDescriptor
    annotations: dict[str, Any]
    check: InputCheck

    def fault(self, given: Json) -> str | None:
        """What is wrong with a call's input; ``None`` when it fits."""
        return self.check.fault(given)


class InputCheck:
    """A JSON Schema, compiled when it is first needed. One that is none, or needs others, checks nothing: then the
    server has to."""

    def __init__(self, schema: dict[str, Json]) -> None:
        self._schema = schema
        self._made: Any = None

    def fault(self, given: Json) -> str | None:
        """What is wrong with the input; ``None`` when it fits, or cannot be checked."""
        try:
            if self._made is None:
                kind = validator_for(self._schema)
                kind.check_schema(self._schema)
                self._made = kind(self._schema, registry=Registry[Any]())  # nothing is fetched from anywhere
            found = cast("Any", best_match(self._made.iter_errors(given)))
        except SchemaError as error:
            _log.warning("a tool's input schema is none: %s", str(error.message)[:_MAX_FAULT])
            return None
        except Exception as error:  # a reference that leads nowhere, a pattern that is none, endless recursion
            _log.warning("an input cannot be checked: %s: %s", type(error).__name__, str(error)[:_MAX_FAULT])
            return None
        if found is None:
            return None
        path = ".".join(map(str, found.absolute_path))
        return f"{path}: {found.message}"[:_MAX_FAULT] if path else str(found.message)[:_MAX_FAULT]


def tools_of(listed: Iterable[object], prefix: str) -> dict[str, McpTool]:
    """The tools by the name that models call them by; of two with one name the first. No tool: passed over."""
    found: dict[str, McpTool] = {}
    for each in listed:
        made = _tool(each, prefix)
        if made is None or made.descriptor.name in found:
            _log.warning("passed over a tool that has no name, or one that is taken: %.200r", each)
        else:
            found[made.descriptor.name] = made
    return found


def _tool(listed: object, prefix: str) -> McpTool | None:
    fields = cast("dict[str, Any]", listed) if isinstance(listed, dict) else {}
    name, description, schema = (fields.get(key) for key in ("name", "description", "inputSchema"))
    if not isinstance(name, str) or not name:
        return None
    schema = cast("dict[str, Json]", schema) if isinstance(schema, dict) else {"type": "object"}
    annotations = fields.get("annotations")
    return McpTool(
        name,
        ToolDescriptor(legal_name(prefix + name), description if isinstance(description, str) else "", schema),
        cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {},
        InputCheck(schema),
    )


def legal_name(name: str) -> str:
    """The name itself when every provider takes it; else one made from it that no other name is made into.

    It depends on nothing but the name, so that a name that a model has seen never means another tool.
    """
    if NAME.fullmatch(name) and not name.startswith(DELEGATE_PREFIX):
        return name
    tail = "_" + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    head = _ILLEGAL.sub("_", name)
    if head.startswith(DELEGATE_PREFIX):
        head = "_" + head
    return head[: _MAX_NAME - len(tail)] + tail
