"""``fold`` and ``resumable``: the pure functions on files, without any database and without an event loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from ..actions import SessionAction
from ..codec import TornLine, decode_messages, encode_messages, encode_state
from ..errors import DamagedLine, InvalidAction, InvalidArgument
from ..fold import fold
from ..model import EMPTY_SESSION
from ..protocols.native import SessionHeader, read_native
from ..reducer import session_reducer
from ..resumable import resumable
from .options import Form, Source
from .output import document, record
from .source import read_document, source, warn_torn

__all__ = ("fold_log", "resumable_messages")


def fold_log(
    file: Source,
    /,
    *,
    each: Annotated[bool, Parameter(help="Print the state after every action, one a line.")] = False,
    form: Form = Form(),
) -> None:
    """Fold a log into its state.

    JSON lines of actions in, one JSON document out. A line is an action, or a logged action with its envelope
    as `talkfold export` writes it. A last line that was cut short is told on stderr and left out; any other
    damage ends with 6 and the line's number.
    """
    del form  # the answer is JSON anyway
    with source(file) as stream:
        actions = _actions(stream)
        if not each:
            document(encode_state(fold(actions)))
            return
        state = EMPTY_SESSION
        for action in actions:
            state = session_reducer(state, action)
            record(encode_state(state))


_NO_LOG = (
    "A log has an action a line. `talkfold import --format openai FILE` reads whole conversations, {id, messages} a "
    "line; `talkfold resumable FILE` reads an array of messages."
)
_SEVERAL = "`talkfold import FILE` takes all of them into a database; `talkfold show ID` shows each."


def _actions(stream: BinaryIO) -> Iterator[SessionAction]:
    """The actions of one session's log, read while they are folded.

    Raises DamagedLine, which names the command for such a file when already the first line, though it is JSON, has
    not the form of an action; InvalidArgument for a file of several sessions.
    """
    begun = False
    try:
        for item in read_native(stream):
            if isinstance(item, TornLine):
                warn_torn(item)
            elif isinstance(item, SessionHeader):
                if begun:
                    error = InvalidArgument("FILE", "it holds several sessions, and a fold takes one")
                    error.next_step = _SEVERAL
                    raise error
                begun = True
            else:
                begun = True
                yield item.action
    except DamagedLine as error:
        if not begun and isinstance(error.reason, InvalidAction) and error.reason.path == "$":
            error.next_step = _NO_LOG
        raise


def resumable_messages(file: Source, /, *, form: Form = Form()) -> None:
    """Cut a conversation to what Retry sends.

    A JSON array of messages in, a JSON array of messages out. Kept is everything through the last finished tool
    call after the last user message, else through that message.
    """
    del form  # the answer is JSON anyway
    with source(file) as stream:
        messages = decode_messages(read_document(stream, "list of messages"))
    document(encode_messages(resumable(messages)))
