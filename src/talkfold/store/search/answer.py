"""What a search answers, and how a hit is made from the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from ...actions import Part, SessionAction
from .excerpt import excerpt_of
from .query import Query
from .texts import SearchKind, said, streamed

__all__ = ("Indexing", "SearchHit", "SearchPage", "hit_of")

Indexing: TypeAlias = "Callable[[int, int], object]"
"""Called while what is not in the index yet is put there: how many actions are done, and how many there are."""


class SearchHit(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A text that has all of the query. ``first`` and ``last`` are the numbers of the actions that it comes from.

    ``excerpt`` is the piece of it that shows why (``…`` where there is more), ``matches`` the ranges of the words
    in the excerpt: start, and end after it. ``name`` is the tool's, where the text is a call or a question;
    ``message_id`` and ``call_id`` are there where the action has them.
    """

    session_id: str
    first: int
    last: int
    kind: SearchKind
    excerpt: str
    matches: tuple[tuple[int, int], ...] = ()
    owner: str | None = None
    name: str | None = None
    message_id: str | None = None
    call_id: str | None = None


class SearchPage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Some hits, those of the newest session first, and the cursor of the next page (``None``: this was the last)."""

    hits: tuple[SearchHit, ...]
    next: str | None = None


def hit_of(
    session_id: str,
    owner: str | None,
    numbers: tuple[int, int],
    kind: SearchKind,
    actions: Sequence[SessionAction],
    query: Query,
) -> SearchHit:
    """A hit from the log's own actions: those from its first to its last number, or at least the first of them."""
    action = actions[0]
    what: Any = action.part if isinstance(action, Part) else action
    text = streamed(actions) if kind == "text-delta" else said(action)
    excerpt = excerpt_of(text, query)
    return SearchHit(
        session_id,
        *numbers,
        kind,
        excerpt.text,
        excerpt.matches,
        owner,
        getattr(what, "name", None),
        what.id if kind == "send" else getattr(what, "message_id", None),
        getattr(what, "id", None) if kind.startswith("tool-") else None,
    )
