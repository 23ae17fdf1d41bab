-- The log of every session, and what is kept beside it for speed.
--
-- The log is the table `action`; all the rest can be checked against it (head, append_key) or thrown away
-- (snapshot). Rows are clustered by session, so a conversation is one range of neighbouring pages; a session's
-- key is a small integer because it stands in every row. Bodies are the actions' own JSON as BLOB: text with NUL
-- or escaped surrogate halves comes back byte for byte, and `sqlite3 chat.db` can still read it.
--
-- The log is append-only for every program that opens this file: the triggers refuse UPDATE, DELETE (except of
-- an erased session), a gap, and INSERT OR REPLACE, which would otherwise pass the first two. Whoever can drop
-- triggers can rewrite the file; the chain in `hash` makes that visible. The chain runs through every row; its value
-- is stored in the last row of each append.

BEGIN IMMEDIATE;

CREATE TABLE migration (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,
    sha256 TEXT NOT NULL
) STRICT;

-- An erased session keeps its row without any content: its tombstone, so that its id is never used again.
CREATE TABLE session (
    key         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL CHECK (id <> ''),
    owner       TEXT CHECK (owner <> ''),
    title       TEXT,
    metadata    TEXT,
    created     INTEGER NOT NULL,
    forked_from TEXT,
    forked_at   INTEGER,
    erased      INTEGER,
    erased_by   TEXT
) STRICT;

CREATE UNIQUE INDEX session_by_id ON session (id, ifnull(owner, ''));
CREATE INDEX session_by_owner ON session (owner) WHERE owner IS NOT NULL;

CREATE TABLE action (
    session INTEGER NOT NULL REFERENCES session (key),
    number  INTEGER NOT NULL CHECK (number > 0),
    time    INTEGER NOT NULL,
    run     TEXT,
    actor   TEXT,
    meta    BLOB,
    body    BLOB NOT NULL,
    hash    BLOB,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER action_append BEFORE INSERT ON action
    WHEN NEW.number <> ifnull((SELECT max(number) FROM action WHERE session = NEW.session), 0) + 1
BEGIN
    SELECT RAISE (ABORT, 'action: this is not the next number of its session');
END;

CREATE TRIGGER action_update BEFORE UPDATE ON action BEGIN
    SELECT RAISE (ABORT, 'action: the log is append-only');
END;

CREATE TRIGGER action_delete BEFORE DELETE ON action
    WHEN (SELECT erased FROM session WHERE key = OLD.session) IS NULL
BEGIN
    SELECT RAISE (ABORT, 'action: the log is append-only');
END;

-- Where each log ends: one narrow row, rewritten once per session and transaction. It makes a cut-off end of
-- the log visible (the chain alone cannot), and lists sessions by status without reading logs. `turns` counts
-- the user messages since the last reset: without one, `retry` does nothing.
CREATE TABLE head (
    session INTEGER PRIMARY KEY REFERENCES session (key),
    number  INTEGER NOT NULL,
    hash    BLOB NOT NULL,
    status  TEXT NOT NULL,
    turns   INTEGER NOT NULL,
    size    INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT;

CREATE INDEX head_by_status ON head (status, session);

-- Appends that named an idempotency key: the answer they got, and a hash of what they asked for.
CREATE TABLE append_key (
    session INTEGER NOT NULL REFERENCES session (key),
    key     TEXT NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    request BLOB NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

-- A state to start folding from. `state` holds only the messages that differ from the snapshot at `base` (0: no
-- base): the first `keep` messages are that one's. `fold` is the version of the fold that made it.
CREATE TABLE snapshot (
    session INTEGER NOT NULL REFERENCES session (key),
    number  INTEGER NOT NULL,
    fold    INTEGER NOT NULL,
    base    INTEGER NOT NULL,
    keep    INTEGER NOT NULL,
    size    INTEGER NOT NULL,
    state   BLOB NOT NULL,
    PRIMARY KEY (session, number)
) STRICT;

COMMIT;
