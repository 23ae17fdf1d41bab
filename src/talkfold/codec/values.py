"""JSON values as Python holds them: what may go onto the wire, and when two of them are the same there.

Both questions are answered without recursion, so a value of any depth gets an answer and never a crash.
"""

from __future__ import annotations

from math import isfinite
from typing import TypeAlias, cast

from ..errors import NotJsonValue, TooDeep
from ..model import UNSET, Json

__all__ = ("refuse_unjson", "same_json")

_Place: TypeAlias = "tuple[_Place | None, str | int, int]"
"""Where a value stands: the place of what holds it, its key or index there, and how deep that is."""


def refuse_unjson(value: Json, path: str, *, what: str, max_depth: int, around: int = 0) -> None:
    """Raise unless the value comes back from JSON exactly as it is.

    Takes ``UNSET`` as well: a field that is not there. Raises NotJsonValue with the JSONPath of the first
    offender (NaN, an infinity, a tuple, a key that is no str, an integer that Python would not read back …),
    TooDeep where the document nests deeper than ``max_depth``: the value's own brackets (one that contains itself
    has no end of them) and the ``around`` ones that it stands in.
    """
    if value is UNSET:
        return
    room = max_depth - around
    stack: list[tuple[object, _Place]] = [(value, (None, path, 0))]
    while stack:
        item, place = stack.pop()
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            _refuse_huge(cast("int", item), place)
        elif kind is float:
            if not isfinite(cast("float", item)):
                raise NotJsonValue(_spelled(place), f"JSON has no number for {item}")
        elif kind is dict or kind is list:
            depth = place[2] + 1
            if depth > room:
                raise TooDeep(what, max_depth)
            if kind is list:
                stack.extend((child, (place, i, depth)) for i, child in enumerate(cast("list[object]", item)))
                continue
            for key, child in cast("dict[object, object]", item).items():
                if type(key) is not str:
                    raise NotJsonValue(_spelled(place), f"the key {key!r} is {type(key).__name__}, not str")
                stack.append((child, (place, key, depth)))
        else:
            raise NotJsonValue(_spelled(place), f"{kind.__name__} has no JSON form of its own")


def _refuse_huge(number: int, place: _Place) -> None:
    # Python itself refuses to write or read integers beyond a number of digits; its limit can be changed.
    if number.bit_length() > 2000:
        try:
            str(number)
        except ValueError:
            raise NotJsonValue(_spelled(place), "the integer has more digits than Python writes") from None


def _spelled(place: _Place) -> str:
    steps: list[str] = []
    step: _Place | None = place
    while step is not None:
        step, key, depth = step
        steps.append(str(key) if depth == 0 else f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(steps))


def same_json(one: Json, other: Json) -> bool:
    """Whether two values are the same on the wire, key order included.

    Stricter than ``==``, where 1, 1.0 and True are equal, and so are 0.0 and -0.0. What is no JSON value is the
    same only as itself.
    """
    stack: list[tuple[object, object]] = [(one, other)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        kind = type(a)
        if kind is not type(b):
            return False
        if kind is str or kind is int:
            if a != b:
                return False
        elif kind is float:
            if cast("float", a).hex() != cast("float", b).hex():
                return False
        elif kind is list:
            x, y = cast("list[object]", a), cast("list[object]", b)
            if len(x) != len(y):
                return False
            stack.extend(zip(x, y, strict=True))
        elif kind is dict:
            d, e = cast("dict[object, object]", a), cast("dict[object, object]", b)
            if len(d) != len(e) or any(k is not j and k != j for k, j in zip(d, e, strict=True)):
                return False
            stack.extend(zip(d.values(), e.values(), strict=True))
        else:
            return False
    return True
