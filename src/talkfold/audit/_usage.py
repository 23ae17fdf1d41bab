"""What a model call used, as ``meta`` may tell it, and sums of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from ..json_values import is_object
from ..model import Json

__all__ = ("Sum", "Usage", "model_of", "usage_of")


class Usage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Tokens and cost, under ``usage`` in a row's ``meta``: ``{"usage": {"inputTokens": 12, "cost": 0.0003, …}}``.

    Every field may be absent, and others may stand beside them. ``cost`` is in whatever currency the log's writer
    uses; one session should keep to one. ``total_tokens``, where it is absent, is input and output together.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    cost: float | None = None


_TOKENS = (
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("totalTokens", "total_tokens"),
    ("reasoningTokens", "reasoning_tokens"),
    ("cachedInputTokens", "cached_input_tokens"),
)


def usage_of(meta: Mapping[str, Json]) -> tuple[Usage | None, bool]:
    """The usage that a row's ``meta`` tells, and whether all of it could be read.

    A number is no amount when it is negative or a million million and more, and no number of tokens when it has a
    fraction. What cannot be read counts as absent.
    """
    told = meta.get("usage")
    if told is None:
        return None, True
    if not is_object(told):
        return None, False
    known = [key for key in (*(key for key, _ in _TOKENS), "cost") if told.get(key) is not None]
    amounts = {key: amount for key in known if (amount := _amount(told[key], key)) is not None}
    if not amounts:
        return None, not known
    tokens = {name: int(amounts[key]) for key, name in _TOKENS if key in amounts}
    if "total_tokens" not in tokens and ("input_tokens" in tokens or "output_tokens" in tokens):
        tokens["total_tokens"] = tokens.get("input_tokens", 0) + tokens.get("output_tokens", 0)
    cost = float(amounts["cost"]) if "cost" in amounts else None
    return Usage(**tokens, cost=cost), len(amounts) == len(known)


def _amount(value: Json, key: str) -> int | float | None:
    if type(value) is not int and type(value) is not float:
        return None
    if not 0 <= value < _LIMIT:
        return None
    if key == "cost":
        return value
    return int(value) if value == int(value) else None


_LIMIT = 10**12


def model_of(meta: Mapping[str, Json]) -> str | None:
    """The model that a row's ``meta`` names, if it does."""
    model = meta.get("model")
    return model if isinstance(model, str) else None


class Sum:
    """A sum of usages, each field by itself: absent where no summand has it. Costs add up as decimals do on paper."""

    __slots__ = ("_cost", "_tokens", "rows")

    def __init__(self) -> None:
        self.rows: int = 0
        self._tokens: dict[str, int] = {}
        self._cost: Decimal | None = None

    def add(self, usage: Usage) -> None:
        """One more row's usage."""
        self.rows += 1
        for _, name in _TOKENS:
            amount: int | None = getattr(usage, name)
            if amount is not None:
                self._tokens[name] = self._tokens.get(name, 0) + amount
        if usage.cost is not None:
            self._cost = (self._cost or Decimal()) + Decimal(repr(usage.cost))

    def include(self, other: Sum) -> None:
        """All that another sum has."""
        self.rows += other.rows
        for name, amount in other._tokens.items():
            self._tokens[name] = self._tokens.get(name, 0) + amount
        if other._cost is not None:
            self._cost = (self._cost or Decimal()) + other._cost

    def usage(self) -> Usage | None:
        """The sum; None where nothing was added."""
        if not self.rows:
            return None
        return Usage(**self._tokens, cost=None if self._cost is None else float(self._cost))
