-- The objects around memory, as documents. `tags` says what `record_tags` has of a record, so that it is read at once.
CREATE TABLE records (
    workspace uuid NOT NULL,
    kind int NOT NULL,
    id uuid NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    due_at bigint,
    key bytea,
    tags bytea NOT NULL,
    body bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX records_list ON records (workspace, kind, created_at, id);
-- Two that lead with no workspace: a key is looked up and unique in all of them, and what is due is looked for in all.
CREATE UNIQUE INDEX records_key ON records (kind, key) WHERE key IS NOT NULL;
CREATE INDEX records_due ON records (kind, due_at, workspace, id) WHERE due_at IS NOT NULL;
-- Last: where two indexes look equally good, as in an empty table, the planner takes the younger one.
ALTER TABLE records ADD PRIMARY KEY (workspace, kind, id);

CREATE TABLE record_tags (
    workspace uuid NOT NULL,
    kind int NOT NULL,
    name int NOT NULL,
    value bytea NOT NULL,
    created_at bigint NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (workspace, kind, name, value, created_at, id)
);

-- Logs, each with the sequence that it ends with. Every append rewrites the row: the free half of each page keeps that
-- off the indexes (HOT).
CREATE TABLE logs (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    last bigint NOT NULL,
    dropped boolean NOT NULL DEFAULT false, -- a tombstone: gone from every read, purged in slices
    PRIMARY KEY (workspace, id)
) WITH (fillfactor = 50);
-- What somebody waits for is looked up every second, in all workspaces.
CREATE INDEX logs_id ON logs (id);
CREATE INDEX logs_dropped ON logs (workspace, id) WHERE dropped;

CREATE TABLE entries (
    workspace uuid NOT NULL,
    log uuid NOT NULL,
    sequence bigint NOT NULL,
    id uuid NOT NULL,
    at bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    body bytea NOT NULL
);
CREATE INDEX entries_kind ON entries (workspace, log, kind, sequence);
ALTER TABLE entries ADD PRIMARY KEY (workspace, log, sequence);
