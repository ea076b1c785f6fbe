-- The objects around memory, as documents. `tags` says what `record_tags` has of a record, so that it is read at once.
CREATE TABLE records (
    record INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    kind INTEGER NOT NULL,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER,
    key BLOB,
    tags BLOB NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_id ON records (workspace, kind, id);
CREATE INDEX records_list ON records (workspace, kind, created_at, id);
CREATE UNIQUE INDEX records_key ON records (kind, key) WHERE key IS NOT NULL;
CREATE INDEX records_due ON records (kind, due_at, workspace, id) WHERE due_at IS NOT NULL;

CREATE TABLE record_tags (
    workspace BLOB NOT NULL,
    kind INTEGER NOT NULL,
    name INTEGER NOT NULL,
    value BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    id BLOB NOT NULL,
    record INTEGER NOT NULL, -- records.record
    PRIMARY KEY (workspace, kind, name, value, created_at, id)
) STRICT, WITHOUT ROWID;

-- Logs, each with the sequence that it ends with.
CREATE TABLE logs (
    log INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace BLOB NOT NULL,
    id BLOB NOT NULL,
    last INTEGER NOT NULL,
    dropped INTEGER NOT NULL DEFAULT 0 -- 1 is a tombstone: gone from every read, purged in slices
) STRICT;
CREATE UNIQUE INDEX logs_id ON logs (workspace, id);
CREATE INDEX logs_dropped ON logs (log) WHERE dropped = 1;

CREATE TABLE entries (
    entry INTEGER PRIMARY KEY,
    log INTEGER NOT NULL,    -- logs.log
    sequence INTEGER NOT NULL,
    id BLOB NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX entries_sequence ON entries (log, sequence);
CREATE INDEX entries_kind ON entries (log, kind, sequence);
