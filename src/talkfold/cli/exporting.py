"""``export``: sessions out of the database, whole, as a model provider wants them, or as a page for people."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from time import time_ns
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from ..codec import encode_logged
from ..errors import InvalidArgument
from ..healing import ProviderExport
from ..log import LoggedAction
from ..protocols.anthropic_messages import to_anthropic
from ..protocols.native import encode_header, header_of
from ..protocols.openai_chat import to_openai_chat
from ..protocols.system_prompt import system_prompts
from ..store.protocol import Session, SessionStore
from .destination import destination
from .opening import all_sessions, find, opened, read_log
from .options import Form, SessionId, Where
from .output import document, json_bytes, say
from .progress import progress
from .wording import count

__all__ = ("ExportFormat", "export")

ExportFormat: TypeAlias = Literal["native", "openai", "anthropic", "html"]

_PROVIDERS: Mapping[ExportFormat, Callable[..., ProviderExport]] = {
    "openai": to_openai_chat,
    "anthropic": to_anthropic,
}


async def export(
    session: SessionId | None = None,
    /,
    *,
    all_: Annotated[bool, Parameter(name="--all", help="Export every session.")] = False,
    format_: Annotated[
        ExportFormat | None, Parameter(name="--format", help="The form of the export. [default: native]")
    ] = None,
    html: Annotated[bool, Parameter(name="--html", help="The same as `--format html`.")] = False,
    output: Annotated[
        str | None,
        Parameter(
            name=("--output", "-o"),
            allow_leading_hyphen=True,
            help="The file to write; `-` is stdout. [default: stdout]",
        ),
    ] = None,
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Print sessions: whole, as a model provider wants them, or as a page for people.

    `native` is everything: a line that describes the session, then every logged action with its envelope;
    `talkfold import` reads it back. `openai` and `anthropic` are the conversation as it is now, one
    `{id, messages}` a line. It is healed: each call stands there once with one outcome, so that the provider
    takes it; what had to be healed is told on stderr. With `--json` the lines are one JSON array.

    `html` is one session as one file that any browser opens, without a network: the conversation, the findings,
    every step, how long everything took, and what Retry would send. With `--json` the answer says what was written.
    """
    if (session is None) is not all_:
        raise InvalidArgument("ID", "name one session, or say --all")
    wanted = _wanted(format_, html=html)
    if wanted == "html":
        _check_page(all_=all_, output=output, form=form)
    async with opened(where) as store:
        if session is not None:
            found = await find(store, session, where)
            if wanted == "html":
                await _page(store, found, output, form)
                return
            lines = _lines(store, found, wanted)
        else:
            lines = _every(store, where, wanted)
        with destination(output) as put:
            if form.json:
                put(b"[" + b",\n".join([line async for line in lines]) + b"]\n")
            else:
                async for line in lines:
                    put(line + b"\n")


def _wanted(format_: ExportFormat | None, *, html: bool) -> ExportFormat:
    if not html:
        return format_ or "native"
    if format_ not in (None, "html"):
        raise InvalidArgument("--html", f"the form is --format {format_} already; say one of the two")
    return "html"


# ---- a page ---------------------------------------------------------------------------------------------


def _check_page(*, all_: bool, output: str | None, form: Form) -> None:
    """Raise InvalidArgument where a page cannot be what was asked for."""
    if all_:
        raise InvalidArgument("--html", "a page shows one session; name it instead of --all")
    to_stdout = output is None or output == "-"
    if to_stdout and form.json:
        raise InvalidArgument("--json", "a page is no JSON; name a file for it with -o FILE")
    if to_stdout and sys.stdout.isatty():
        raise InvalidArgument("--html", "a page is for a browser, not for a terminal; name a file with -o FILE")


async def _page(store: SessionStore, session: Session, output: str | None, form: Form) -> None:
    """Write a session's page, and say where it is."""
    from ..page import render  # templates take a while to import

    with progress("reading", session.number) as advance:
        rows: list[LoggedAction] = []
        async for row in read_log(store, session):
            rows.append(row)
            if row.number % 1000 == 0:
                advance(row.number)
    size = 0
    with destination(output) as put:
        for block in render(session, rows, exported=time_ns() // 1_000_000):
            data = block.encode()
            size += len(data)
            put(data)
    if output is None or output == "-":
        return
    if form.json:
        document({"id": session.id, "number": session.number, "file": output, "size": size})
    else:
        say(f"{output}: {count(session.number, 'action')} of {session.id}, {size:,} bytes. Open it in any browser.")


# ---- lines ----------------------------------------------------------------------------------------------


async def _every(store: SessionStore, where: Where, format_: ExportFormat) -> AsyncIterator[bytes]:
    async for session in all_sessions(store, where):
        async for line in _lines(store, session, format_):
            yield line


async def _lines(store: SessionStore, session: Session, format_: ExportFormat) -> AsyncIterator[bytes]:
    if format_ == "native":
        yield encode_header(header_of(session))
        async for logged in read_log(store, session):
            yield encode_logged(logged)
        return
    state = (await store.state(session.id, owner=session.owner)).state
    exported = _PROVIDERS[format_](state.messages, system=system_prompts(session.metadata))
    for healed in exported.healed:
        where = healed.message_id if healed.call_id is None else f"{healed.message_id}, call {healed.call_id}"
        say(f"{session.id} ({where}): {healed.text}")
    yield json_bytes({"id": session.id, **exported.request})
