"""Tokens as rows: written inside a write transaction, and read."""

from __future__ import annotations

import sqlite3
from typing import Any

from ...errors import InvalidArgument, TokenNotFound
from ..tokens import Token, is_this, scopes_in_order, token_id
from .transaction import Transaction

__all__ = ("add", "find", "newest_first", "revoke")

_COLUMNS = "id, scopes, created, owner, name, expires, revoked"


def add(tx: Transaction, digest: bytes, token: Token) -> Token:
    """Keep a token, made at the transaction's time."""
    if tx.connection.execute("SELECT 1 FROM token WHERE id = ?", (token.id,)).fetchone():
        raise InvalidArgument("digest", "it is kept already")
    tx.connection.execute(
        f"INSERT INTO token (digest, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
        (digest, token.id, " ".join(token.scopes), tx.now, token.owner, token.name, token.expires),
    )
    return _one(tx.connection, token.id)


def revoke(tx: Transaction, known: str, owner: str | None) -> Token:
    """End a token."""
    token = _one(tx.connection, known)
    if owner not in (None, token.owner):
        raise TokenNotFound(known)
    tx.connection.execute("UPDATE token SET revoked = ? WHERE id = ? AND revoked IS NULL", (tx.now, known))
    return _one(tx.connection, known)


def find(connection: sqlite3.Connection, digest: bytes) -> Token | None:
    """The token with this digest, good or not. Found by its id; the digest itself is compared here, not by an index."""
    row = connection.execute(f"SELECT {_COLUMNS}, digest FROM token WHERE id = ?", (token_id(digest),)).fetchone()
    return _token(row[:-1]) if row is not None and is_this(digest, row[-1]) else None


def newest_first(connection: sqlite3.Connection, owner: str | None) -> tuple[Token, ...]:
    """All tokens, or an owner's."""
    where, values = ("WHERE owner = ?", (owner,)) if owner is not None else ("", ())
    rows = connection.execute(f"SELECT {_COLUMNS} FROM token {where} ORDER BY key DESC", values)
    return tuple([_token(row) for row in rows])


def _one(connection: sqlite3.Connection, known: str) -> Token:
    row = connection.execute(f"SELECT {_COLUMNS} FROM token WHERE id = ?", (known,)).fetchone()
    if row is None:
        raise TokenNotFound(known)
    return _token(row)


def _token(row: tuple[Any, ...]) -> Token:
    known, scopes, created, owner, name, expires, revoked = row
    return Token(known, scopes_in_order(scopes.split()), created, owner, name, expires, revoked)
