-- Ids are 16 bytes, times microseconds since the epoch, hashes 32 bytes, paths compared by bytes (BINARY).

CREATE TABLE installation (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    organization BLOB NOT NULL,
    first_workspace BLOB NOT NULL
) STRICT;

CREATE TABLE workspaces (
    workspace INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
    api_key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    workspace BLOB NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT,              -- NULL where `permissions` stand for themselves
    permissions INTEGER NOT NULL,
    contract TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX api_keys_list ON api_keys (workspace, created_at, id) WHERE revoked_at IS NULL;

CREATE TABLE stores (
    store INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    workspace BLOB NOT NULL,
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata TEXT NOT NULL, -- a JSON object of strings
    origin INTEGER NOT NULL, -- 0 curated, 1 reflection
    agent BLOB,
    created_by_kind INTEGER NOT NULL,
    created_by BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    archived_at INTEGER,
    deleted_at INTEGER,     -- a tombstone: gone from every read, purged in slices
    sequence INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    versions INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX stores_list ON stores (workspace, created_at, id) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX stores_slug ON stores (workspace, slug) WHERE deleted_at IS NULL;
CREATE INDEX stores_deleted ON stores (store) WHERE deleted_at IS NOT NULL;

-- Live memories. The head is a pointer to the version that holds the text.
CREATE TABLE memories (
    memory INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    id BLOB NOT NULL UNIQUE,
    path TEXT NOT NULL,
    head INTEGER NOT NULL,  -- versions.version
    version_id BLOB NOT NULL,
    content_sha256 BLOB NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX memories_path ON memories (store, path);

-- History: a log, appended to with growing row numbers. A row is never deleted beside one that holds text: SQLite
-- would then move its neighbours between pages and leave copies of them behind, which a later redaction of theirs
-- could not reach. What retention or a deleted store removes becomes a husk instead, all columns NULL (a row that
-- shrinks stays in its page, and secure_delete zeroes what it gave up), and `sweep.rs` reclaims husks from the old
-- end of the log. Texts stand last, so that reading the rest does not touch their pages.
CREATE TABLE versions (
    version INTEGER PRIMARY KEY,
    store INTEGER,
    sequence INTEGER,
    id BLOB,
    memory_id BLOB,
    operation INTEGER,
    created_at INTEGER,
    author_kind INTEGER,
    author BLOB,
    redacted_at INTEGER,
    redacted_by_kind INTEGER,
    redacted_by BLOB,
    content_sha256 BLOB,
    size_bytes INTEGER,
    path TEXT,
    summary TEXT,
    reason TEXT,
    encoding INTEGER,       -- 0 plain, 1 zstd
    content BLOB
) STRICT;
CREATE UNIQUE INDEX versions_id ON versions (id) WHERE id IS NOT NULL;
CREATE UNIQUE INDEX versions_sequence ON versions (store, sequence) WHERE store IS NOT NULL;
CREATE INDEX versions_memory ON versions (store, memory_id, sequence) WHERE store IS NOT NULL;
-- What retention looks through.
CREATE INDEX versions_age ON versions (created_at) WHERE created_at IS NOT NULL;
