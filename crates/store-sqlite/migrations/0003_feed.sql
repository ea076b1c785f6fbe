-- The change feed. DESIGN 7.

-- The present life of the database: sequences of one say nothing in another. A restore renews it.
ALTER TABLE installation ADD COLUMN epoch BLOB NOT NULL DEFAULT x'00000000000000000000000000000000';
UPDATE installation SET epoch = organization;

-- The newest sequence that retention removed.
ALTER TABLE stores ADD COLUMN floor INTEGER NOT NULL DEFAULT 0;
-- Above it there is every sequence. What was removed so far left no trace but its gap.
UPDATE stores SET floor = CASE
    WHEN sequence > ifnull((SELECT max(v.sequence) FROM versions v WHERE v.store = stores.store), 0) THEN sequence
    ELSE ifnull((SELECT max(v.sequence) - 1 FROM versions v WHERE v.store = stores.store AND NOT EXISTS
        (SELECT 1 FROM versions p WHERE p.store = v.store AND p.sequence = v.sequence - 1)), 0) END;

-- Changes of a store that take a sequence and write no version. They hold no text, so there is nothing to erase. That of
-- a deletion outlives its store, for the readers who follow it: hence ids, not row numbers.
CREATE TABLE marks (
    mark INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    store BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    kind INTEGER NOT NULL,  -- 1 redacted, 2 store archived, 3 store deleted
    memory_id BLOB,         -- of a redaction, as is the version
    version_id BLOB,
    created_at INTEGER NOT NULL,
    author_kind INTEGER NOT NULL,
    author BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX marks_sequence ON marks (store, sequence);
-- What retention looks through.
CREATE INDEX marks_age ON marks (created_at);
