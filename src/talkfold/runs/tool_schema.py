"""A function's parameters as a JSON Schema, and a model's arguments as the function's.

The type hints are the one truth: a Struct is made from them, or the function takes one itself, and msgspec derives
from it both what the model is told and what is let through. The dialect is JSON Schema 2020-12.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from ..errors import InvalidArgument
from ..model import Json
from .docstring import described

__all__ = ("ToolInput", "described_input")


class ToolInput(Struct, frozen=True):
    """What a tool takes. ``kind`` is the Struct that arguments become; ``whole`` names the parameter that takes that
    Struct itself (``None``: its fields are the parameters); ``context`` the one that takes the call's context."""

    kind: type[Struct]
    schema: dict[str, Json]
    whole: str | None = None
    context: str | None = None

    def keywords(self, arguments: Struct, given: Mapping[str, Json]) -> dict[str, Any]:
        """The function's keyword arguments. What was not given is left to the function's own defaults."""
        if self.whole is not None:
            return {self.whole: arguments}
        return {name: getattr(arguments, name) for name in self.kind.__struct_fields__ if name in given}


def described_input(function: Callable[..., Any], name: str, context: type) -> tuple[str, ToolInput]:
    """The function's description from its docstring, and what it takes.

    ``context`` is the type that marks the parameter for the call's context. Raises InvalidArgument for a function that
    no model could call: a parameter without a type hint or with one that JSON has no form for, ``*args``, ``**kwargs``,
    positional-only parameters, a hint that cannot be resolved.
    """
    what = f"tool {name}"
    if not isinstance(function, FunctionType | MethodType):
        raise InvalidArgument(what, f"{function!r} is no function or method")
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:
        raise InvalidArgument(what, f"a type hint cannot be resolved ({error}); define it at module level") from None
    description, said = described(function.__doc__)
    parameters = inspect.signature(function).parameters
    own: dict[str, inspect.Parameter] = {}
    for_context: list[str] = []
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidArgument(what, f"the parameter {parameter} cannot be given by name")
        if parameter.name not in hints:
            raise InvalidArgument(what, f"the parameter {parameter.name!r} has no type hint")
        if hints[parameter.name] is context:
            for_context.append(parameter.name)
        else:
            own[parameter.name] = parameter
    if len(for_context) > 1:
        raise InvalidArgument(what, f"only one parameter can take the context, not {' and '.join(for_context)}")
    whole = _whole(own, hints)
    try:
        kind = hints[whole] if whole else _struct(name, own, hints, said)
        schema = _object_schema(kind, titled=whole is not None)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(what, f"its parameters have no JSON Schema: {error}") from None
    return description, ToolInput(kind, schema, whole, for_context[0] if for_context else None)


def _whole(parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]) -> str | None:
    """The only parameter, when it is a required Struct: then the input is that Struct, not an object around it."""
    if len(parameters) != 1:
        return None
    ((name, parameter),) = parameters.items()
    hint = hints[name]
    alone = isinstance(hint, type) and issubclass(hint, Struct) and not hint.__struct_config__.array_like
    return name if alone and parameter.default is parameter.empty else None


def _struct(
    name: str, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any], said: Mapping[str, str]
) -> type[Struct]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters.values():
        hint = hints[parameter.name]
        if parameter.name in said and not _says_itself(hint):
            hint = Annotated[hint, Meta(description=said[parameter.name])]
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter.default)))
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _says_itself(hint: object) -> bool:
    metas = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return any(isinstance(meta, Meta) and meta.description is not None for meta in metas)


def _default(value: object) -> Any:
    """The default to tell the model of, when JSON can say it and nobody can change it; else only that there is one."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return msgspec.field(default_factory=lambda: value)


def _object_schema(kind: type[Struct], *, titled: bool) -> dict[str, Json]:
    """The schema with its top written out: providers ask for an object there, not for a reference."""
    (top,), definitions = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    own = cast("str", top["$ref"]).removeprefix("#/$defs/")
    schema = dict(cast("dict[str, Json]", definitions[own]))
    if not titled:
        schema.pop("title", None)
    if not _refers(definitions, f"#/$defs/{own}"):
        del definitions[own]
    return {**schema, "$defs": definitions} if definitions else schema


def _refers(schema: object, reference: str) -> bool:
    if isinstance(schema, dict):
        fields = cast("dict[str, object]", schema)
        return fields.get("$ref") == reference or any(_refers(value, reference) for value in fields.values())
    return isinstance(schema, list) and any(_refers(item, reference) for item in cast("list[object]", schema))
