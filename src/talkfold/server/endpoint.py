"""An endpoint as data: its method and path, what it takes and who may call it, and the code behind it.

Routing, authentication, decoding, the OpenAPI document and the attack tests are all made from these rows, so that none
of them can forget one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ..errors import InvalidArgument, TalkfoldError
from .access import Caller, Scope

if TYPE_CHECKING:
    from .resources import Resources

__all__ = ("ACTIONS", "LINES", "Body", "Call", "Endpoint", "Handler", "Method", "Nothing", "Reply")

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

Q = TypeVar("Q", bound=Struct)
B = TypeVar("B")


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No query parameters, beside those that every endpoint has."""


class Call(Generic[Q, B]):
    """One request, understood: who asks, of whose session, with what."""

    def __init__(
        self,
        resources: Resources,
        request: Request,
        caller: Caller,
        owner: str | None,
        query: Q,
        body: B,
    ) -> None:
        self.resources: Resources = resources
        self.request: Request = request
        self.caller: Caller = caller
        self.owner: str | None = owner
        self.query: Q = query
        self.body: B = body

    @property
    def headers(self) -> Mapping[str, str]:
        """The request's headers; names are looked up whatever their case."""
        return self.request.headers

    @property
    def root(self) -> str:
        """The path under which the server is mounted."""
        return cast("str", self.request.scope.get("root_path", ""))

    def segment(self, name: str) -> str:
        """A segment of the path, as the caller meant it."""
        return cast("str", self.request.path_params[name])

    @property
    def session_id(self) -> str:
        """The session of the path."""
        return self.segment("session")


Handler: TypeAlias = Callable[[Call[Any, Any]], Awaitable[Response]]

ACTIONS: Literal["actions"] = "actions"
"""A body of actions: one, an array, or JSON lines. ``Call.body`` is a list of entries."""

LINES: Literal["lines"] = "lines"
"""A body that is a file of sessions. ``Call.body`` is its bytes."""

Body: TypeAlias = type[Struct] | Literal["actions", "lines"] | None


class Reply(Struct, frozen=True):
    """What an endpoint answers when all is well: the status, the type of the JSON (or a media type), and in words."""

    status: int
    content: Any
    text: str


class Endpoint(Struct, frozen=True, dict=True, kw_only=True):
    """One row of the table. ``errors`` are those of its own, besides what everything of its kind may answer.

    ``scope`` is what a caller needs; ``None``: anybody may ask, without a token.
    """

    method: Method
    path: str
    handler: Handler
    scope: Scope | None
    replies: tuple[Reply, ...]
    query: type[Struct] = Nothing
    body: Body = None
    optional_body: bool = False
    errors: tuple[type[TalkfoldError], ...] = ()
    headers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What it does: the docstring of its code."""
        return cleandoc(self.handler.__doc__ or "")

    @property
    def name(self) -> str:
        """Its name in the OpenAPI document: camelCase, unique."""
        head, *rest = self.handler.__name__.split("_")
        return head + "".join(map(str.capitalize, rest))

    @property
    def segments(self) -> tuple[str, ...]:
        """The names of the variable segments of its path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def parameters(self) -> dict[str, msgspec.inspect.Field]:
        """Its query parameters by their names on the wire."""
        described = msgspec.inspect.type_info(self.query)
        assert isinstance(described, msgspec.inspect.StructType)
        return {field.encode_name: field for field in described.fields}

    def read_query(self, given: list[tuple[str, str]]) -> Struct:
        """The query parameters as a Struct. Raises InvalidArgument, which names the parameter."""
        values: dict[str, Any] = {}
        for name, value in given:
            field = self.parameters.get(name)
            if field is None:
                known = ", ".join(self.parameters) or "none"
                raise InvalidArgument(name, f"there is no such parameter (there are: {known})")
            if _is_list(field.type):
                values.setdefault(name, []).append(value)
            elif name in values:
                raise InvalidArgument(name, "it is given twice")
            else:
                values[name] = value
        try:
            return msgspec.convert(values, self.query, strict=False)
        except msgspec.ValidationError as error:
            reason, _, path = str(error).partition(" - at `$.")
            name = re.split(r"[`.\[]", path, maxsplit=1)[0] or next(iter(values), "query")
            raise InvalidArgument(name, reason[0].lower() + reason[1:]) from None


def _is_list(kind: msgspec.inspect.Type) -> bool:
    return isinstance(kind, msgspec.inspect.VarTupleType | msgspec.inspect.ListType)
