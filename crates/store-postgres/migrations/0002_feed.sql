-- The change feed. DESIGN 7.

-- The present life of the database: sequences of one say nothing in another. A restore renews it.
ALTER TABLE installation ADD COLUMN epoch uuid;
UPDATE installation SET epoch = organization;
ALTER TABLE installation ALTER COLUMN epoch SET NOT NULL;

-- The newest sequence that retention removed. Above it there is every sequence; what was removed so far left no trace
-- but its gap.
ALTER TABLE stores ADD COLUMN floor bigint NOT NULL DEFAULT 0;
UPDATE stores s SET floor = CASE
    WHEN s.sequence > coalesce((SELECT max(v.sequence) FROM versions v WHERE v.workspace = s.workspace AND v.store = s.id), 0)
    THEN s.sequence
    ELSE coalesce((SELECT max(v.sequence) - 1 FROM versions v WHERE v.workspace = s.workspace AND v.store = s.id
        AND NOT EXISTS (SELECT 1 FROM versions p WHERE p.workspace = v.workspace AND p.store = v.store
        AND p.sequence = v.sequence - 1)), 0) END;

-- Changes of a store that take a sequence and write no version. They hold no text. That of a deletion outlives its
-- store, for the readers who follow it.
CREATE TABLE marks (
    workspace uuid NOT NULL,
    store uuid NOT NULL,
    sequence bigint NOT NULL,
    kind smallint NOT NULL,  -- 1 redacted, 2 store archived, 3 store deleted
    memory_id uuid,          -- of a redaction, as is the version
    version_id uuid,
    created_at bigint NOT NULL,
    author_kind smallint NOT NULL,
    author uuid NOT NULL,
    PRIMARY KEY (workspace, store, sequence)
);
-- What retention looks through.
CREATE INDEX marks_age ON marks (created_at);

-- What a process looks up once a second: whether the stores that somebody follows have changed, or are gone.
CREATE INDEX stores_id ON stores (id);
CREATE INDEX marks_deleted ON marks (store) WHERE kind = 3;
