"""Edits of a text and of a JSON value: made from before and after, and applied again.

Both are exact: applied to the value before, they give the value after, with number spelling (1 is not 1.0) and key
order. Nothing here recurses, so a value of any depth can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias, cast

import msgspec
from msgspec import UNSET, Struct

from ..codec.values import same_json
from ..errors import InvalidArgument
from ..json_values import is_list, is_object
from ..model import Json
from ._alignment import aligned

__all__ = (
    "EditText",
    "JsonEdit",
    "OrderKeys",
    "SetValue",
    "SpliceArray",
    "TextEdit",
    "common_start",
    "json_edits",
    "text_edits",
    "with_json_edits",
    "with_text_edits",
)


class TextEdit(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A stretch of text that became another one.

    ``at`` is its offset in the text *before*, in code points: in JavaScript, an index of ``[...text]``. One that
    stands at the end of the text and removes nothing is text that was appended.
    """

    at: int
    removed: str = ""
    inserted: str = ""


class SetValue(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="set"):
    """The value at a JSON Pointer: another one, or, where ``before`` or ``after`` is not set, added or removed.

    A key that is added comes last in its object.
    """

    path: str
    before: Json = UNSET
    after: Json = UNSET


class SpliceArray(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="splice"):
    """In the array at a JSON Pointer, these items from index ``at`` on became those."""

    path: str
    at: int
    removed: tuple[Json, ...] = ()
    inserted: tuple[Json, ...] = ()


class OrderKeys(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="order"):
    """The keys of the object at a JSON Pointer, in another order."""

    path: str
    before: tuple[str, ...]
    after: tuple[str, ...]


class EditText(Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="type", tag="edit-text"):
    """A long string at a JSON Pointer that is partly another."""

    path: str
    edits: tuple[TextEdit, ...]


JsonEdit: TypeAlias = SetValue | SpliceArray | OrderKeys | EditText
"""One edit of a JSON value. Edits are applied in order; a path is that of the value as it is by then."""

# ---- text -------------------------------------------------------------------------------------------------

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_TINY = 2
"""Equal stretches of at most so many code points between two edits are taken into one edit with them."""


def text_edits(before: str, after: str) -> tuple[TextEdit, ...]:
    """What makes one text of the other, word by word, in order; none when they are equal."""
    if before == after:
        return ()
    if after.startswith(before):
        return (TextEdit(len(before), "", after[len(before) :]),)
    start = common_start(before, after)
    end = _common_end(before, after, min(len(before), len(after)) - start)
    b, a = before[start : len(before) - end], after[start : len(after) - end]
    old, new = _WORD.findall(b), _WORD.findall(a)
    edits: list[TextEdit] = []
    i = j = b_at = a_at = 0
    b_from = a_from = 0  # where the edit begins that is being gathered
    for x, y in [*aligned(old, new), (len(old), len(new))]:
        b_next, a_next = b_at + sum(map(len, old[i:x])), a_at + sum(map(len, new[j:y]))
        if (b_next, a_next) != (b_at, a_at):
            if edits and b_at - (b_from + len(edits[-1].removed)) <= _TINY:
                edits.pop()
            else:
                b_from, a_from = b_at, a_at
            edits.append(TextEdit(start + b_from, b[b_from:b_next], a[a_from:a_next]))
        size = len(old[x]) if x < len(old) else 0
        i, j, b_at, a_at = x + 1, y + 1, b_next + size, a_next + size
    return tuple(_trimmed(edit) for edit in edits)


def _trimmed(edit: TextEdit) -> TextEdit:
    removed, inserted = edit.removed, edit.inserted
    start = common_start(removed, inserted)
    end = _common_end(removed, inserted, min(len(removed), len(inserted)) - start)
    return TextEdit(edit.at + start, removed[start : len(removed) - end], inserted[start : len(inserted) - end])


def common_start(one: str, other: str) -> int:
    """How many code points two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str, limit: int) -> int:
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def with_text_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """The text after the edits. Raises InvalidArgument when it is not the text that they were made for."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        end = edit.at + len(edit.removed)
        if edit.at < at or edit.at > len(text) or text[edit.at : end] != edit.removed:
            raise InvalidArgument("diff", f"there is no {edit.removed[:40]!r} at {edit.at} in the text")
        pieces += (text[at : edit.at], edit.inserted)
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


# ---- JSON -------------------------------------------------------------------------------------------------

_LONG = 64
"""A string of so many code points may be edited; a shorter one is replaced."""

_Place: TypeAlias = "tuple[_Place, str | int] | None"
"""Where a value stands: the place of what holds it, and its key or index there. None: it is the whole value."""


def json_edits(before: Json, after: Json) -> tuple[JsonEdit, ...]:
    """What makes one JSON value of the other; ``UNSET`` is no value. None when they are the same on the wire."""
    if before is UNSET or after is UNSET:
        return () if before is after else (SetValue("", before, after),)
    if before is after or _surely_same(before, after):
        return ()
    edits: list[JsonEdit] = []
    stack: list[tuple[Json, Json, _Place]] = [(before, after, None)]
    while stack:
        b, a, place = stack.pop()
        if b is a:
            continue
        if is_object(b) and is_object(a):
            edits += _object_edits(b, a, place)
            stack += [(b[key], a[key], (place, key)) for key in reversed(b) if key in a]
        elif is_list(b) and is_list(a):
            start, removed, inserted = (len(b), 0, 0) if len(b) == len(a) else _stretch(b, a)
            if removed or inserted:
                new = tuple(a[start : start + inserted])
                edits.append(SpliceArray(_pointer(place), start, tuple(b[start : start + removed]), new))
            stack += [(b[index], a[index], (place, index)) for index in range(start - 1, -1, -1)]
        elif isinstance(b, str) and isinstance(a, str) and b != a and min(len(b), len(a)) >= _LONG:
            edits.append(_string_edit(b, a, _pointer(place)))
        elif not same_json(b, a):
            edits.append(SetValue(_pointer(place), b, a))
    return tuple(edits)


_ENCODER = msgspec.json.Encoder()


def _surely_same(one: Json, other: Json) -> bool:
    """Whether two values are the same, when that can be told at once: most are, where states are compared."""
    try:
        return one == other and _ENCODER.encode(one) == _ENCODER.encode(other)
    except (TypeError, ValueError, RecursionError):  # too deep, or half of a surrogate pair
        return False


def _string_edit(before: str, after: str, path: str) -> EditText | SetValue:
    edits = text_edits(before, after)
    changed = sum(len(edit.removed) + len(edit.inserted) for edit in edits)
    return EditText(path, edits) if 2 * changed < len(before) + len(after) else SetValue(path, before, after)


def _object_edits(before: dict[str, Json], after: dict[str, Json], place: _Place) -> list[JsonEdit]:
    edits: list[JsonEdit] = [
        SetValue(_pointer((place, key)), before=value) for key, value in before.items() if key not in after
    ]
    edits += [SetValue(_pointer((place, key)), after=value) for key, value in after.items() if key not in before]
    order = (*(key for key in before if key in after), *(key for key in after if key not in before))
    if order != tuple(after):
        edits.append(OrderKeys(_pointer(place), order, tuple(after)))
    return edits


def _stretch(before: list[Json], after: list[Json]) -> tuple[int, int, int]:
    """Arrays of two lengths: where one stretch became another, and how many items that took and gave.

    Items before it are compared one by one, items after it are the same.
    """
    shorter = min(len(before), len(after))
    start = end = 0
    while start < shorter and same_json(before[start], after[start]):
        start += 1
    while end < shorter - start and same_json(before[-1 - end], after[-1 - end]):
        end += 1
    start = shorter - end
    return start, len(before) - shorter, len(after) - shorter


def _pointer(place: _Place) -> str:
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append("/" + str(step).replace("~", "~0").replace("/", "~1"))
    return "".join(reversed(steps))


def with_json_edits(value: Json, edits: Iterable[JsonEdit]) -> Json:
    """The value after the edits; the value itself is not changed, and what no edit concerns is shared.

    Raises InvalidArgument when it is not the value that they were made for.
    """
    root: list[Json] = [value]  # so that every value, the whole one too, stands in something
    own: dict[int, Json] = {}
    for edit in edits:
        holder: Json = root
        key: str | int = 0
        for step in edit.path.split("/")[1:]:
            holder = _owned(own, holder, key, edit.path)
            name = step.replace("~1", "/").replace("~0", "~")
            key = _index(name, edit.path) if is_list(holder) else name
        if isinstance(edit, SetValue):
            _set(holder, key, edit)
        elif isinstance(edit, EditText):
            found = _found(holder, key)
            _set(holder, key, SetValue(edit.path, found, _edited(found, edit)))
        elif isinstance(edit, SpliceArray):
            _splice(_owned(own, holder, key, edit.path), edit)
        else:
            _order(_owned(own, holder, key, edit.path), edit)
    return root[0]


def _index(step: str, path: str) -> int:
    if not (step.isascii() and step.isdigit() and len(step) < 19):
        raise _unfit(path)
    return int(step)


def _owned(own: dict[int, Json], holder: Json, key: str | int, path: str) -> Json:
    """The object or array at that place, as a copy that may be changed."""
    inner = _found(holder, key)
    if not is_list(inner) and not is_object(inner):
        raise _unfit(path)
    if id(inner) not in own:
        inner = holder[key] = inner.copy()
        own[id(inner)] = inner
    return inner


def _found(holder: Json, key: str | int) -> Json:
    """What stands there; UNSET where nothing does."""
    if is_list(holder):
        return holder[key] if isinstance(key, int) and key < len(holder) else UNSET
    return cast("dict[str | int, Json]", holder).get(key, UNSET)


def _set(holder: Json, key: str | int, edit: SetValue) -> None:
    found = _found(holder, key)
    is_new_item = found is UNSET and isinstance(key, int) and edit.path  # into an array, items are spliced
    if is_new_item or not same_json(found, edit.before):
        raise _unfit(edit.path)
    if edit.after is not UNSET or not edit.path:
        holder[key] = edit.after
    else:
        del holder[key]


def _edited(found: Json, edit: EditText) -> str:
    if not isinstance(found, str):
        raise _unfit(edit.path)
    return with_text_edits(found, edit.edits)


def _splice(inner: Json, edit: SpliceArray) -> None:
    end = edit.at + len(edit.removed)
    if not is_list(inner) or not 0 <= edit.at <= len(inner) or not same_json(inner[edit.at : end], [*edit.removed]):
        raise _unfit(edit.path)
    inner[edit.at : end] = edit.inserted


def _order(inner: Json, edit: OrderKeys) -> None:
    if not is_object(inner) or tuple(inner) != edit.before or sorted(edit.after) != sorted(edit.before):
        raise _unfit(edit.path)
    values = dict(inner)
    inner.clear()
    inner.update((key, values[key]) for key in edit.after)


def _unfit(path: str) -> InvalidArgument:
    return InvalidArgument("diff", f"it was made for another value (at {path or 'the root'!r})")
