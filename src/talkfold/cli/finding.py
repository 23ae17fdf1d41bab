"""``findings``: what is wrong with logs, or worth a look."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, NamedTuple, TypeAlias

from cyclopts import Parameter
from msgspec import to_builtins

from ..audit.findings import FINDINGS, Auditor, Finding, FindingKind, Severity
from ..errors import InvalidArgument, SessionErased, SessionNotFound, StoreDamaged
from ..log import LoggedAction
from ..model import Json
from ..store.protocol import Session, SessionStore
from .opening import all_sessions, find, opened
from .options import RowForm, SessionId, Where
from .output import Column, Line, document, line, paint, record, say, table
from .progress import Advance, progress
from .proof import FOUND
from .wording import count

__all__ = ("findings",)

_PAGE = 1000
_NUMBERS = 3

_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "info": "cyan"}
"""The severities, the gravest first, each with its colour; the word itself always stands there too."""

_RANKS = {severity: rank for rank, severity in enumerate(_STYLES)}

_Tell: TypeAlias = Callable[[Session, Finding], None]


class _Wanted(NamedTuple):
    """Which findings are asked for: at least so grave, and with one of these codes (none: with any)."""

    least: Severity
    codes: Sequence[str]

    def has(self, code: str) -> bool:
        """Whether findings with this code are asked for."""
        return _RANKS[FINDINGS[code].severity] <= _RANKS[self.least] and (not self.codes or code in self.codes)


async def findings(
    *sessions: SessionId,
    all_: Annotated[bool, Parameter(name="--all", help="Read every session.")] = False,
    severity: Annotated[Severity, Parameter(help="Only findings at least so grave.", show_default=True)] = "info",
    code: Annotated[
        tuple[str, ...], Parameter(name="--code", help="Only findings with this code; may be repeated.")
    ] = (),
    codes: Annotated[bool, Parameter(help="Print all codes that there are, and read no session.")] = False,
    where: Where = Where(),
    form: RowForm = RowForm(),
) -> int:
    """Tell what is wrong with a log, or worth a look.

    Reads the log from its first action and changes nothing. An `error` is where the conversation goes wrong or a
    promise was broken, a `warning` is where somebody should look, an `info` is worth knowing. Each says at which
    actions it shows, and what to do. While a run lives in the session, what is open may still end, and is no finding.

    Ends with 1 when an error is among what was asked for. Whether the stored bytes are still the same is proven by
    `talkfold check`. All codes are in docs/findings.md, and told by `--codes`.
    """
    if bool(sessions) + all_ + codes != 1:
        raise InvalidArgument("ID", "name sessions, or say --all or --codes")
    for each in code:
        _known(each)
    wanted = _Wanted(severity, code)
    if codes:
        _tell_codes(wanted, form)
        return 0
    return await _tell_findings(sessions, wanted, where, form)


def _known(code: str) -> None:
    if code not in FINDINGS:
        near = get_close_matches(code, FINDINGS, 1)
        hint = f"did you mean {near[0]}?" if near else "`talkfold findings --codes` has all"
        raise InvalidArgument("--code", f"{code!r} is no code; {hint}")


# ---- reading --------------------------------------------------------------------------------------------


async def _tell_findings(given: Sequence[str], wanted: _Wanted, where: Where, form: RowForm) -> int:
    """Read sessions, all when none is ``given``, and print what is wanted. Gives the exit code."""
    counts: Counter[Severity] = Counter()
    left_out = 0
    gathered: list[tuple[Session, list[Finding]]] = []
    at_once = form.jsonl and not form.json

    def tell(session: Session, finding: Finding) -> None:
        nonlocal left_out
        if not wanted.has(finding.code):
            left_out += 1
            return
        counts[finding.severity] += 1
        if at_once:
            record(_json(session, finding))
            return
        if not gathered or gathered[-1][0] is not session:
            gathered.append((session, []))
        gathered[-1][1].append(finding)

    async with opened(where) as store:
        if given:
            found = [await find(store, each, where) for each in given]
            sessions = list({(each.owner, each.id): each for each in found}.values())
        else:
            sessions = [each async for each in all_sessions(store, where)]
        # A bar has stderr for itself: where rows are printed as they come, they show how far it is.
        with progress("reading", 0 if at_once else sum(each.number for each in sessions)) as advance:
            read = await _read(store, sessions, tell, advance, gone_is_fine=not given)
    if form.json:
        document([_json(session, finding) for session, found in gathered for finding in found])
    elif not at_once:
        paint(_lines(gathered, grouped=not given or len(sessions) > 1))
    _say_counts(read, counts, left_out)
    if gathered and not form.json:
        say("All codes: `talkfold findings --codes`, or docs/findings.md.")
    return FOUND if counts["error"] else 0


async def _read(
    store: SessionStore, sessions: Sequence[Session], tell: _Tell, advance: Advance, *, gone_is_fine: bool
) -> list[Session]:
    """Read sessions one after the other, and give those that were there; erased ones may be missing or are raised."""
    read: list[Session] = []
    done = 0
    for session in sessions:
        auditor = Auditor()
        try:
            async for rows in _pages(store, session):
                for finding in auditor.read(rows):
                    tell(session, finding)
                advance(done + rows[-1].number)
        except (SessionErased, SessionNotFound):  # meanwhile, by somebody else
            if not gone_is_fine:
                raise
        else:
            # The lease is of the same moment as the number up to which the log was read.
            for finding in auditor.pending(living=session.lease is not None):
                tell(session, finding)
            read.append(session)
        done += session.number
        advance(done)
    return read


async def _pages(store: SessionStore, session: Session) -> AsyncIterator[Sequence[LoggedAction]]:
    """A session's log up to its number, page by page. Raises StoreDamaged where it ends before."""
    after = 0
    while after < session.number:
        limit = min(_PAGE, session.number - after)
        rows = await store.read(session.id, after=after, limit=limit, owner=session.owner)
        if not rows:
            raise StoreDamaged(f"the log of {session.id} ends with action {after}, and should with {session.number}")
        yield rows
        after = rows[-1].number


# ---- telling --------------------------------------------------------------------------------------------


def _json(session: Session, finding: Finding) -> dict[str, Json]:
    return {"sessionId": session.id, **to_builtins(finding)}


def _lines(gathered: Sequence[tuple[Session, Sequence[Finding]]], *, grouped: bool) -> Iterator[Line]:
    """Findings as a person reads them, by where they show; ``grouped``: each session's under its name."""
    for place, (session, found) in enumerate(gathered):
        if grouped:
            if place:
                yield line()
            title = f"  {session.title}" if session.title else ""
            yield line((session.id, "bold"), f"{title}  {count(len(found), 'finding')}")
        indent = 2 if grouped else 0
        width = max(len(_numbers(each)) for each in found)
        for each in sorted(found, key=lambda it: it.numbers[0]):
            lead = f"{each.severity:<7}  {_numbers(each):<{width}}  "
            body = (each.text, (f"  [{each.code}]", "dim"))
            yield line(*body, indent=indent, lead=(lead, _STYLES[each.severity]))
            yield line((each.next_step, "dim"), indent=indent + len(lead))


def _numbers(finding: Finding) -> str:
    numbers = list(dict.fromkeys(finding.numbers))
    return ", ".join(map(str, numbers[:_NUMBERS])) + (", …" if len(numbers) > _NUMBERS else "")


def _say_counts(read: Sequence[Session], counts: Counter[Severity], left_out: int) -> None:
    told = ", ".join(count(counts[severity], severity) for severity in _STYLES)
    more = f" Not asked for: {left_out:,} more." if left_out else ""
    say(f"{count(len(read), 'session')} read: {told}.{more}")
    living = sum(each.lease is not None for each in read)
    if living:
        say(f"{count(living, 'session')} running: what is open there may still end.")


# ---- codes ----------------------------------------------------------------------------------------------


_COLUMNS: Sequence[Column[tuple[str, FindingKind]]] = (
    ("code", lambda it: it[0]),
    ("severity", lambda it: it[1].severity),
    ("what it says", lambda it: _sentence(it[1])),
    ("next step", lambda it: it[1].next_step),
)


def _sentence(kind: FindingKind) -> str:
    """What findings of this kind say, with ``…`` for what each puts in."""
    return re.sub(r"{[^}]*}", "…", kind.sentence)


def _tell_codes(wanted: _Wanted, form: RowForm) -> None:
    kinds = [(code, kind) for code, kind in FINDINGS.items() if wanted.has(code)]
    rows: list[Json] = [
        {"code": code, "severity": kind.severity, "text": _sentence(kind), "nextStep": kind.next_step}
        for code, kind in kinds
    ]
    if form.json:
        document(rows)
    elif form.jsonl:
        for row in rows:
            record(row)
    elif kinds:
        table(_COLUMNS, kinds, elastic="what it says", styles={"code": "bold", "next step": "dim"})
