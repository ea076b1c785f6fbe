-- Ids are 16 bytes, times microseconds since the epoch, hashes 32 bytes, paths compared by bytes (collation C).
-- Every key leads with the workspace, so that a distributed PostgreSQL can place a workspace together; what belongs
-- to the installation as a whole is one row or a few.

CREATE TABLE installation (
    one smallint PRIMARY KEY CHECK (one = 1),
    organization uuid NOT NULL,
    first_workspace uuid NOT NULL
);

-- Who does a job that one process at a time may do, and until when unless it says so again (by the database's clock).
CREATE TABLE leases (
    job text PRIMARY KEY,
    holder uuid NOT NULL,
    until timestamptz NOT NULL
);

CREATE TABLE workspaces (
    workspace uuid PRIMARY KEY,
    name text NOT NULL,
    created_at bigint NOT NULL,
    max_memories_per_store bigint -- NULL where the server's cap counts
);

CREATE TABLE api_keys (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    hash bytea NOT NULL,
    name text NOT NULL,
    role text,               -- NULL where `permissions` stand for themselves
    permissions smallint NOT NULL,
    contract text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    PRIMARY KEY (workspace, id)
);
-- 256 random bits need no constraint to be unique.
CREATE INDEX api_keys_hash ON api_keys (hash);

-- Every change of a memory rewrites its store's row: the free half of each page keeps that off the indexes (HOT).
CREATE TABLE stores (
    workspace uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    slug text NOT NULL,
    description text NOT NULL,
    metadata text NOT NULL,  -- a JSON object of strings
    origin smallint NOT NULL, -- 0 curated, 1 reflection
    agent uuid,
    created_by_kind smallint NOT NULL,
    created_by uuid NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    archived_at bigint,
    deleted_at bigint,       -- a tombstone: gone from every read, purged in slices
    sequence bigint NOT NULL,
    memories bigint NOT NULL,
    bytes bigint NOT NULL,
    versions bigint NOT NULL,
    PRIMARY KEY (workspace, id)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX stores_list ON stores (workspace, created_at, id) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX stores_slug ON stores (workspace, slug) WHERE deleted_at IS NULL;
CREATE INDEX stores_agent ON stores (workspace, agent, created_at, id) WHERE agent IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX stores_deleted ON stores (workspace, id) WHERE deleted_at IS NOT NULL;

-- Live memories. The head is the sequence of the version that holds the text.
CREATE TABLE memories (
    workspace uuid NOT NULL,
    store uuid NOT NULL,
    id uuid NOT NULL,
    path text COLLATE "C" NOT NULL,
    head bigint NOT NULL,
    version_id uuid NOT NULL,
    content_sha256 bytea NOT NULL,
    size_bytes bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (workspace, store, id)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX memories_path ON memories (workspace, store, path);

-- History. Contents are compressed by Stele, so PostgreSQL need not try again.
CREATE TABLE versions (
    workspace uuid NOT NULL,
    store uuid NOT NULL,
    sequence bigint NOT NULL,
    id uuid NOT NULL,
    memory_id uuid NOT NULL,
    operation smallint NOT NULL,
    created_at bigint NOT NULL,
    author_kind smallint NOT NULL,
    author uuid NOT NULL,
    redacted_at bigint,
    redacted_by_kind smallint,
    redacted_by uuid,
    content_sha256 bytea,
    size_bytes bigint,
    path text COLLATE "C",
    summary text,
    reason text,
    encoding smallint,       -- 0 plain, 1 zstd
    content bytea,
    PRIMARY KEY (workspace, store, sequence),
    -- A copy of a version that is gone would else be a version without its text.
    CONSTRAINT versions_whole CHECK ((content IS NULL) = (content_sha256 IS NULL) AND (content IS NULL) = (encoding IS NULL))
);
ALTER TABLE versions ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX versions_id ON versions (workspace, store, id);
CREATE INDEX versions_memory ON versions (workspace, store, memory_id, sequence);
