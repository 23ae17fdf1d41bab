"""Options that many commands share, each explained once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from cyclopts import Parameter

__all__ = ("AtNumber", "Form", "RowForm", "SessionId", "Source", "Where")

SessionId: TypeAlias = Annotated[
    str, Parameter(name="ID", help="The session's id, or the beginning of it when no other begins so.")
]

Source: TypeAlias = Annotated[
    str, Parameter(name="FILE", allow_leading_hyphen=True, help="The file to read; `-` is stdin.")
]

AtNumber: TypeAlias = Annotated[
    int | None, Parameter(name="--at", help="As it was after this action of the log. [default: the newest]")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """Which database, and whose sessions."""

    db: Annotated[
        str | None,
        Parameter(
            env_var="TALKFOLD_DB",
            help="The database file to use. [default: chat.db in the platform's folder for user data]",
        ),
    ] = None
    owner: Annotated[str | None, Parameter(help="Only this owner's sessions exist. [default: everybody's]")] = None
    allow_network_file_system: Annotated[
        bool, Parameter(help="Open a database on a network file system; safe for one process only.")
    ] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Form:
    """The form of the answer."""

    json: Annotated[bool, Parameter(help="Answer with one JSON document.")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RowForm(Form):
    """The form of an answer that has rows."""

    jsonl: Annotated[bool, Parameter(help="Answer with one JSON document a line.")] = False
