-- Redactions, remembered for good: a backup may hold a text longer than its version's row is here.
CREATE TABLE redactions (
    workspace uuid NOT NULL,
    store uuid NOT NULL,
    version uuid NOT NULL,
    written_at bigint NOT NULL, -- of the version
    redacted_at bigint NOT NULL,
    redacted_by_kind smallint NOT NULL,
    redacted_by uuid NOT NULL,
    path_scrubbed boolean NOT NULL,
    PRIMARY KEY (workspace, store, version)
);
INSERT INTO redactions
    SELECT workspace, store, id, created_at, redacted_at, redacted_by_kind, redacted_by, path IS NULL
    FROM versions WHERE redacted_at IS NOT NULL;

-- Backups that were made of this database.
CREATE TABLE backups (
    id uuid PRIMARY KEY,
    host text NOT NULL,
    path text NOT NULL,
    made_at bigint NOT NULL,
    newest_at bigint,            -- when the newest version in it was written
    redactions bigint NOT NULL,  -- of versions up to then that are carried out in it
    versions bigint NOT NULL,
    bytes bigint NOT NULL
);
