"""``search``: texts in all sessions, and whether there is a search at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import Annotated, Self, TypeAlias

from cyclopts import Parameter
from msgspec import to_builtins

from ..errors import InvalidArgument
from ..store.protocol import Session, SessionStore
from ..store.search.answer import SearchHit, SearchPage
from ..store.search.texts import SearchKind
from .asking import agreed
from .opening import find, opened
from .options import RowForm, Where
from .output import Line, document, line, paint, record, say
from .progress import Advance, progress
from .wording import count

__all__ = ("search",)

_MATCH = "bold yellow"
_BLANKS = re.compile(r"\s+")


async def search(
    *words: Annotated[
        str,
        Parameter(name="WORDS", help="What to search for. One with blanks in it is a phrase; `mug*` also finds mugs."),
    ],
    session: Annotated[
        str | None, Parameter(help="Only in this session: its id, or the beginning of it. [default: in all]")
    ] = None,
    kind: Annotated[
        tuple[SearchKind, ...], Parameter(help="Only texts of this kind; say it again for more kinds. [default: all]")
    ] = (),
    limit: Annotated[int, Parameter(help="How many texts to show at most, up to 200.", show_default=True)] = 20,
    cursor: Annotated[str | None, Parameter(help="Go on after an earlier page, with what it gave as `next`.")] = None,
    on: Annotated[bool, Parameter(name="--on", help="Switch search on, and make its index anew.")] = False,
    off: Annotated[bool, Parameter(name="--off", help="Switch search off and remove its index. Asks before.")] = False,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask before switching off.")] = False,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> None:
    """Search in what was said, called and answered, in all sessions.

    Finds the texts that have all of the words: messages, streamed replies, reasoning, tool calls with their inputs,
    results, errors, questions. Case and accents do not count. Newest sessions come first; the numbers are those that
    `talkfold show ID --at N` takes.

    What is not in the index yet is put there first. The index can be switched off for a database, and on again.
    """
    if on or off:
        if (on and off) or words:
            raise InvalidArgument("--on" if on else "--off", "it stands alone: without words, and without its opposite")
        await _switch(on, yes, where, form)
        return
    if not words:
        raise InvalidArgument("WORDS", "say what to search for, such as `talkfold search basket`")
    async with opened(where) as store:
        found = None if session is None else await find(store, session, where)
        with _Indexing() as told:
            page = await store.search(
                " ".join(map(_quoted, words)),
                owner=where.owner if found is None else found.owner,
                session_id=None if found is None else found.id,
                kinds=kind,
                limit=limit,
                cursor=cursor,
                told=told,
            )
        titles = {} if form.json or form.jsonl else await _titles(store, page.hits)
    if form.json:
        document(to_builtins(page))
    elif form.jsonl:
        for hit in page.hits:
            record(to_builtins(hit))
    else:
        paint(_lines(page.hits, titles))
        say(_summary(page, titles))
    if page.next is not None:
        say(f"There are more: --cursor {page.next}")


def _quoted(word: str) -> str:
    """What the shell left of a phrase in quotation marks is a phrase again."""
    return f'"{word}"' if '"' not in word and len(word.split()) > 1 else word


async def _switch(on: bool, yes: bool, where: Where, form: RowForm) -> None:
    async with opened(where) as store:
        question = "Remove the search index of this database, and do without search until it is switched on again?"
        if not on and not yes and not agreed(question, "--yes", "say it to switch off without a question"):
            say("Nothing was changed.")
            return
        with _Indexing() as told:
            await store.set_search(on, told=told)
    if form.json or form.jsonl:
        document({"search": on})
    else:
        say("Search is on." if on else "Search is off: its index is removed, the logs are as they were.")


class _Indexing:
    """A progress bar for what is indexed first: there only when that is anything."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._advance: Advance | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, done: int, total: int) -> None:
        if self._advance is None:
            self._advance = self._stack.enter_context(progress("indexing actions", total))
        self._advance(done)


# ---- for people -----------------------------------------------------------------------------------------

_Key: TypeAlias = "tuple[str, str | None]"


async def _titles(store: SessionStore, hits: Sequence[SearchHit]) -> dict[_Key, Session]:
    return {
        (hit.session_id, hit.owner): await store.get(hit.session_id, owner=hit.owner)
        for hit in {(each.session_id, each.owner): each for each in hits}.values()
    }


def _numbers(hit: SearchHit) -> str:
    return str(hit.first) if hit.first == hit.last else f"{hit.first}-{hit.last}"


def _lines(hits: Sequence[SearchHit], sessions: dict[_Key, Session]) -> Iterator[Line]:
    for key, group in groupby(hits, lambda hit: (hit.session_id, hit.owner)):
        session = sessions[key]
        about = "".join(f"  {each}" for each in (session.title, session.owner and f"of {session.owner}") if each)
        yield line((session.id, "bold"), about)
        theirs = list(group)
        width = max(len(_numbers(hit)) for hit in theirs)
        kinds = max(len(hit.kind) for hit in theirs)
        for hit in theirs:
            lead = f"{_numbers(hit):>{width}}  {hit.kind:<{kinds}}  "
            yield line(*_spans(hit), indent=2, lead=(lead, "dim"))


def _spans(hit: SearchHit) -> Iterator[str | tuple[str, str]]:
    """The excerpt on one line, its matches marked."""
    end = 0
    for start, after in hit.matches:
        yield _BLANKS.sub(" ", hit.excerpt[end:start])
        yield _BLANKS.sub(" ", hit.excerpt[start:after]), _MATCH
        end = after
    yield _BLANKS.sub(" ", hit.excerpt[end:])


def _summary(page: SearchPage, sessions: dict[_Key, Session]) -> str:
    if not page.hits:
        return "Nothing was found: whole words count, and all of them in one text; `mug*` also finds mugs."
    first = page.hits[0]
    found = f"{count(len(page.hits), 'text')} in {count(len(sessions), 'session')}"
    return f"{found}. In its place: talkfold show {first.session_id} --at {first.last}"
