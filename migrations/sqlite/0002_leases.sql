-- Who runs a session now: one row a session, there only while a run holds it.
--
-- A row of its own and not columns of `session` or `head`: it comes and goes with every run, and the hot row `head`
-- stays narrow. Nothing here is part of the log: whoever deletes a row only lets the session be settled.
--
-- `expires` ends a run that froze or lost its database. `alive` ends one that was killed, at once: it is the offset
-- of a byte in the file `<database>-lock` that the run's process keeps locked, and that the kernel unlocks when the
-- process ends, however it ends. NULL: the system has no such locks, and only `expires` counts.
--
-- `waiting` is the call that the run is parked on, as JSON: what, for whom, until when.

BEGIN IMMEDIATE;

CREATE TABLE lease (
    session INTEGER PRIMARY KEY REFERENCES session (key),
    run     TEXT NOT NULL CHECK (run <> ''),
    holder  TEXT NOT NULL,
    alive   INTEGER,
    since   INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    waiting TEXT
) STRICT;

COMMIT;
