-- What the migrations make together. Never run; tests/migrations/write_schema.py writes it.

PRAGMA application_id = 0x74666c64;
PRAGMA user_version = 4;

CREATE TABLE migration (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,
    sha256 TEXT NOT NULL
) STRICT;

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

CREATE TABLE append_key (
    session INTEGER NOT NULL REFERENCES session (key),
    key     TEXT NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    request BLOB NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE lease (
    session INTEGER PRIMARY KEY REFERENCES session (key),
    run     TEXT NOT NULL CHECK (run <> ''),
    holder  TEXT NOT NULL,
    alive   INTEGER,
    since   INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    waiting TEXT
) STRICT;

CREATE VIRTUAL TABLE search USING fts5 (words, marks, last UNINDEXED, tokenize = 'ascii', columnsize = 0);

CREATE TABLE 'search_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE 'search_content'(id INTEGER PRIMARY KEY, c0, c1, c2);

CREATE TABLE 'search_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE search_progress (
    session INTEGER PRIMARY KEY REFERENCES session (key),
    indexed INTEGER NOT NULL,
    streams TEXT
) STRICT;

CREATE TABLE search_switch (
    off INTEGER PRIMARY KEY CHECK (off = 1)
) STRICT;

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
