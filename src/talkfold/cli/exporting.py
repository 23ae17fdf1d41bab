"""``export``: sessions out of the database, whole or as a model provider wants them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from ..codec import encode_logged
from ..errors import InvalidArgument
from ..healing import ProviderExport
from ..protocols.anthropic_messages import to_anthropic
from ..protocols.native import encode_header, header_of
from ..protocols.openai_chat import to_openai_chat
from ..protocols.system_prompt import system_prompts
from ..store.protocol import Session, SessionStore
from .opening import all_sessions, find, opened, read_log
from .options import Form, SessionId, Where
from .output import json_bytes, record, say, write

__all__ = ("ExportFormat", "export")

ExportFormat: TypeAlias = Literal["native", "openai", "anthropic"]

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
        ExportFormat, Parameter(name="--format", help="The form of the export.", show_default=True)
    ] = "native",
    where: Where = Where(),
    form: Form = Form(),
) -> None:
    """Print sessions: whole, or as a model provider wants them.

    `native` is everything: a line that describes the session, then every logged action with its envelope;
    `talkfold import` reads it back. `openai` and `anthropic` are the conversation as it is now, one
    `{id, messages}` a line. It is healed: each call stands there once with one outcome, so that the provider
    takes it; what had to be healed is told on stderr. With `--json` the lines are one JSON array.
    """
    if (session is None) is not all_:
        raise InvalidArgument("ID", "name one session, or say --all")
    async with opened(where) as store:
        if session is not None:
            found = await find(store, session, where)
            lines = _lines(store, found, format_)
        else:
            lines = _every(store, where, format_)
        if form.json:
            write(b"[" + b",\n".join([line async for line in lines]) + b"]\n")
        else:
            async for line in lines:
                record(line)


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
