-- Redactions, remembered for good: a backup may hold a text longer than its version's row is here.
CREATE TABLE redactions (
    redaction INTEGER PRIMARY KEY,
    workspace BLOB NOT NULL,
    store BLOB NOT NULL,
    version BLOB NOT NULL,
    written_at INTEGER NOT NULL,  -- of the version
    redacted_at INTEGER NOT NULL,
    redacted_by_kind INTEGER NOT NULL,
    redacted_by BLOB NOT NULL,
    path_scrubbed INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX redactions_place ON redactions (workspace, store, version);
INSERT INTO redactions (workspace, store, version, written_at, redacted_at, redacted_by_kind, redacted_by, path_scrubbed)
    SELECT s.workspace, s.id, v.id, v.created_at, v.redacted_at, v.redacted_by_kind, v.redacted_by, v.path IS NULL
    FROM versions v JOIN stores s ON s.store = v.store WHERE v.redacted_at IS NOT NULL;

-- Backups that were made of this database.
CREATE TABLE backups (
    backup INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    host TEXT NOT NULL,
    path TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    newest_at INTEGER,            -- when the newest version in it was written
    redactions INTEGER NOT NULL,  -- of versions up to then that are carried out in it
    versions INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;
