-- Who may ask a server: one row a token, kept when it is revoked, so that a list still shows it.
--
-- The token itself is nowhere: `digest` is its SHA-256, and it is 32 random bytes, so nothing can be guessed from it.
-- `id` is the beginning of the digest in hex: what people call it by, and what it is looked up by. `owner` is whose
-- sessions it reaches; NULL: everybody's. `scopes` are words with blanks between.

BEGIN IMMEDIATE;

CREATE TABLE token (
    key     INTEGER PRIMARY KEY,
    id      TEXT NOT NULL UNIQUE CHECK (length(id) = 16),
    digest  BLOB NOT NULL CHECK (length(digest) = 32),
    owner   TEXT CHECK (owner <> ''),
    scopes  TEXT NOT NULL CHECK (scopes <> ''),
    name    TEXT,
    created INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER
) STRICT;

COMMIT;
