-- The words of the log, to find texts by. All of it can be thrown away and made again from the log.
--
-- A row of `search` is one text: a message, a call with its input, an outcome, or what a stream of deltas spells. Its
-- rowid is the session's key and the number of its first action (key << 32 | number): newest first is the order of the
-- rows, and a session is one range of them. `words` are the words as talkfold cuts and folds them, with blanks
-- between, so the tokenizer has nothing to decide. `marks` are words as well: whose session it is (a hash) and what
-- kind of text, so that both narrow a search inside the index. `last` is the number of the text's last action.
--
-- `search_progress` says how much of each session's log is in the index, and which streams of text may go on, as JSON.
-- `search_switch` has a row while search is switched off.

BEGIN IMMEDIATE;

CREATE VIRTUAL TABLE search USING fts5 (words, marks, last UNINDEXED, tokenize = 'ascii', columnsize = 0);

CREATE TABLE search_progress (
    session INTEGER PRIMARY KEY REFERENCES session (key),
    indexed INTEGER NOT NULL,
    streams TEXT
) STRICT;

CREATE TABLE search_switch (
    off INTEGER PRIMARY KEY CHECK (off = 1)
) STRICT;

COMMIT;
