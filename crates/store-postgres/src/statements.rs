//! All SQL of requests, prepared on every connection when it is made.
//!
//! Each statement names workspace and store, is served by one index, and takes one short snapshot. `$1` is the
//! workspace and `$2` the store wherever there are such.

use tokio_postgres::{Client, Statement};

/// Columns that `rows::store` reads.
macro_rules! store_columns {
    () => {
        "s.id, s.workspace, s.name, s.slug, s.description, s.metadata, s.origin, s.agent, s.created_by_kind, \
         s.created_by, s.created_at, s.updated_at, s.changed_at, s.archived_at, s.sequence, s.floor, s.memories, \
         s.bytes, s.versions"
    };
}

/// Columns that `rows::memory` reads.
macro_rules! memory_columns {
    () => {
        "m.id, m.path, m.version_id, m.content_sha256, m.size_bytes, m.created_at, m.updated_at"
    };
}

/// Columns that `rows::version` reads.
macro_rules! version_columns {
    () => {
        "v.id, v.memory_id, v.sequence, v.operation, v.created_at, v.author_kind, v.author, v.redacted_at, \
         v.redacted_by_kind, v.redacted_by, v.content_sha256, v.size_bytes, v.path"
    };
}

/// Columns that `marks::mark` reads.
macro_rules! mark_columns {
    () => {
        "k.store, k.sequence, k.kind, k.memory_id, k.version_id, k.created_at, k.author_kind, k.author"
    };
}

/// Columns that `rows::api_key` reads.
macro_rules! key_columns {
    () => {
        "k.id, k.workspace, k.name, k.role, k.permissions, k.contract, k.created_at, k.expires_at, k.revoked_at"
    };
}

/// The version that a memory `m` has as its head.
macro_rules! head {
    () => {
        "versions v ON v.workspace = m.workspace AND v.store = m.store AND v.sequence = m.head"
    };
}

/// The columns of a version's insert, without the content, which stands last.
macro_rules! insert_version {
    ($content:literal) => {
        concat!(
            "INSERT INTO versions (workspace, store, sequence, id, memory_id, operation, created_at, author_kind, \
             author, content_sha256, size_bytes, path, summary, reason, encoding, content) VALUES ($1, $2, $3, $4, $5, $6, \
             $7, $8, $9, $10, $11, $12, $13, $14, ",
            $content,
            ")"
        )
    };
}

/// Stores, newest first. $2 and $3 the time, $4 and $5 where to begin, $6 and $7 whether those that are active and
/// archived are shown, $8 the origin, $9 how many.
macro_rules! store_list {
    ($agent:literal) => {
        concat!(
            "SELECT ", store_columns!(), " FROM stores s WHERE s.workspace = $1 AND s.deleted_at IS NULL ", $agent,
            "AND s.created_at BETWEEN $2 AND $3 AND (s.created_at, s.id) < ($4, $5) \
             AND CASE WHEN s.archived_at IS NULL THEN $6::bool ELSE $7::bool END AND ($8::smallint IS NULL OR s.origin = $8) \
             ORDER BY s.created_at DESC, s.id DESC LIMIT $9"
        )
    };
}

/// Columns that `rows::record` reads.
macro_rules! record_columns {
    () => {
        "r.workspace, r.kind, r.id, r.revision, r.created_at, r.due_at, r.key, r.tags, r.body"
    };
}

/// Columns that `rows::entry` reads.
macro_rules! entry_columns {
    () => {
        "e.sequence, e.id, e.at, e.kind, e.body"
    };
}

/// Records of a kind $2 by creation; each found by its tag is looked up alone. $3 and $4 the time, $5 and $6 where to begin, $7 how many, $8 and $9 a tag.
macro_rules! record_list {
    ($comes:literal, $direction:literal) => {
        concat!(
            "SELECT ",
            record_columns!(),
            " FROM records r WHERE r.workspace = $1 AND r.kind = $2 \
             AND r.created_at BETWEEN $3 AND $4 AND (r.created_at, r.id) ",
            $comes,
            " ($5, $6) \
             ORDER BY r.created_at ",
            $direction,
            ", r.id ",
            $direction,
            " LIMIT $7"
        )
    };
    (tag $comes:literal, $direction:literal) => {
        concat!(
            "SELECT ",
            record_columns!(),
            " FROM (SELECT t.created_at, t.id FROM record_tags t WHERE t.workspace = $1 \
             AND t.kind = $2 AND t.created_at BETWEEN $3 AND $4 AND (t.created_at, t.id) ",
            $comes,
            " ($5, $6) \
             AND t.name = $8 AND t.value = $9 ORDER BY t.created_at ",
            $direction,
            ", t.id ",
            $direction,
            " LIMIT $7) t \
             CROSS JOIN LATERAL (SELECT * FROM records r WHERE r.workspace = $1 AND r.kind = $2 AND r.id = t.id LIMIT 1) r \
             ORDER BY t.created_at ", $direction, ", t.id ", $direction
        )
    };
}

/// Entries of the log $2. $3 and $4 the time, $5 where to begin, $6 how many, $7 of which kinds.
macro_rules! entry_list {
    ($comes:literal, $direction:literal) => {
        concat!(
            "SELECT ", entry_columns!(), " FROM entries e WHERE e.workspace = $1 AND e.log = $2 \
             AND e.at BETWEEN $3 AND $4 AND e.sequence ", $comes, " $5 \
             AND EXISTS (SELECT 1 FROM logs l WHERE l.workspace = $1 AND l.id = $2 AND NOT l.dropped) \
             ORDER BY e.sequence ", $direction, " LIMIT $6"
        )
    };
    // Each kind by its own index: one that is rare in a long log is found at once.
    (kinds $comes:literal, $direction:literal) => {
        concat!(
            "SELECT ", entry_columns!(), " FROM (SELECT DISTINCT kind FROM unnest($7::text[]) kind) k \
             CROSS JOIN LATERAL (SELECT * FROM entries e WHERE e.workspace = $1 AND e.log = $2 AND e.kind = k.kind \
             AND e.at BETWEEN $3 AND $4 AND e.sequence ", $comes, " $5 \
             ORDER BY e.sequence ", $direction, " LIMIT $6) e \
             WHERE EXISTS (SELECT 1 FROM logs l WHERE l.workspace = $1 AND l.id = $2 AND NOT l.dropped) \
             ORDER BY e.sequence ", $direction, " LIMIT $6"
        )
    };
}

macro_rules! statements {
    ($($name:ident: $sql:expr,)*) => {
        /// The statements of one connection.
        pub(crate) struct Statements {
            $(pub(crate) $name: Statement,)*
        }

        impl Statements {
            /// Prepares them all in one round.
            pub(crate) async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
                $(let $name = crate::pipeline::send(client.prepare($sql)).await;)*
                Ok(Self { $($name: $name.answer().await?,)* })
            }
        }
    };
}

statements! {
    // Writes.
    load_cap: "SELECT max_memories_per_store FROM workspaces WHERE workspace = $1",
    lock_store: concat!(
        "SELECT ", store_columns!(), " FROM stores s WHERE s.workspace = $1 AND s.id = $2 AND s.deleted_at IS NULL \
         FOR UPDATE"
    ),
    load_version: concat!(
        "SELECT ", version_columns!(), ", v.summary FROM versions v WHERE v.workspace = $1 AND v.store = $2 AND v.id = $3"
    ),
    load_current: concat!(
        "SELECT ", memory_columns!(), ", v.summary FROM memories m JOIN ", head!(),
        " WHERE m.workspace = $1 AND m.store = $2 AND m.id = $3"
    ),
    load_current_at: concat!(
        "SELECT ", memory_columns!(), ", v.summary FROM memories m JOIN ", head!(),
        " WHERE m.workspace = $1 AND m.store = $2 AND m.path = $3"
    ),
    load_current_of_version: concat!(
        "SELECT ", memory_columns!(), ", v.summary FROM memories m JOIN ", head!(),
        " WHERE m.workspace = $1 AND m.store = $2 AND m.id = \
         (SELECT w.memory_id FROM versions w WHERE w.workspace = $1 AND w.store = $2 AND w.id = $3)"
    ),
    // $3 the path and those above it, $4 the directory that the path would be, $5 the end of that, $6 and $7 who may be
    // there, by id or by path.
    load_occupant:
        "SELECT o.id, o.path FROM (\
         SELECT m.id, m.path FROM memories m WHERE m.workspace = $1 AND m.store = $2 AND m.path = ANY ($3::text[]) \
         AND m.id IS DISTINCT FROM $6 AND m.path IS DISTINCT FROM $7 UNION ALL (\
         SELECT m.id, m.path FROM memories m WHERE m.workspace = $1 AND m.store = $2 AND m.path > $4 AND m.path < $5 \
         AND m.id IS DISTINCT FROM $6 AND m.path IS DISTINCT FROM $7 ORDER BY m.path LIMIT 1)) o ORDER BY o.path LIMIT 1",
    insert_memory:
        "INSERT INTO memories (workspace, store, id, path, head, version_id, content_sha256, size_bytes, created_at, \
         updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    replace_memory:
        "UPDATE memories SET path = $4, head = $5, version_id = $6, content_sha256 = $7, size_bytes = $8, \
         updated_at = $9 WHERE workspace = $1 AND store = $2 AND id = $3",
    remove_memory: "DELETE FROM memories WHERE workspace = $1 AND store = $2 AND id = $3",
    insert_version: insert_version!("$15, $16"),
    insert_copy: insert_version!(
        "(SELECT c.encoding FROM versions c WHERE c.workspace = $1 AND c.store = $2 AND c.id = $15), \
         (SELECT c.content FROM versions c WHERE c.workspace = $1 AND c.store = $2 AND c.id = $15)"
    ),
    redact:
        "UPDATE versions SET redacted_at = $4, redacted_by_kind = $5, redacted_by = $6, content_sha256 = NULL, \
         size_bytes = NULL, summary = NULL, reason = NULL, encoding = NULL, content = NULL, \
         path = CASE WHEN $7 THEN NULL ELSE path END WHERE workspace = $1 AND store = $2 AND id = $3",
    remember_redaction:
        "INSERT INTO redactions SELECT v.workspace, v.store, v.id, v.created_at, $4, $5, $6, $7 FROM versions v \
         WHERE v.workspace = $1 AND v.store = $2 AND v.id = $3 ON CONFLICT (workspace, store, version) \
         DO UPDATE SET path_scrubbed = redactions.path_scrubbed OR excluded.path_scrubbed",
    update_counters:
        "UPDATE stores SET changed_at = $3, sequence = $4, memories = $5, bytes = $6, versions = $7 \
         WHERE workspace = $1 AND id = $2",
    update_store:
        "UPDATE stores SET changed_at = $3, sequence = $4, memories = $5, bytes = $6, versions = $7, name = $8, \
         description = $9, metadata = $10, updated_at = $11, archived_at = $12 WHERE workspace = $1 AND id = $2",
    delete_store:
        "UPDATE stores SET deleted_at = $3, changed_at = $3, sequence = $4 WHERE workspace = $1 AND id = $2",
    insert_mark:
        "INSERT INTO marks (workspace, store, sequence, kind, memory_id, version_id, created_at, author_kind, author) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    lock_workspace:
        "SELECT workspace, name, created_at, max_memories_per_store FROM workspaces WHERE workspace = $1 FOR UPDATE",
    update_workspace: "UPDATE workspaces SET name = $2, max_memories_per_store = $3 WHERE workspace = $1",
    count_stores: "SELECT count(*) FROM stores s WHERE s.workspace = $1 AND s.deleted_at IS NULL",
    taken_slug: "SELECT s.slug FROM stores s WHERE s.workspace = $1 AND s.slug = $2 AND s.deleted_at IS NULL",
    insert_store:
        "INSERT INTO stores (workspace, id, name, slug, description, metadata, origin, agent, created_by_kind, \
         created_by, created_at, updated_at, changed_at, archived_at, sequence, memories, bytes, versions) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, 0, 0, 0)",

    // Reads.
    store_by_id: concat!(
        "SELECT ", store_columns!(), " FROM stores s WHERE s.workspace = $1 AND s.id = $2 AND s.deleted_at IS NULL"
    ),
    store_list: store_list!(""),
    store_list_of_agent: store_list!("AND s.agent = $10 "),
    // The first column says that the store is there, and is its sequence. $4 how much: 0 nothing, 1 the summary, 2 the content too;
    // $5 a version whose content the caller has already.
    memory_by_id: concat!(
        "SELECT s.sequence, v.summary, v.encoding, CASE WHEN m.version_id IS DISTINCT FROM $5 THEN v.content END, ",
        memory_columns!(), " FROM stores s LEFT JOIN memories m ON m.workspace = s.workspace AND m.store = s.id \
         AND m.id = $3 LEFT JOIN ", head!(), " AND $4 > 0 \
         WHERE s.workspace = $1 AND s.id = $2 AND s.deleted_at IS NULL"
    ),
    memory_by_path: concat!(
        "SELECT s.sequence, v.summary, v.encoding, CASE WHEN m.version_id IS DISTINCT FROM $5 THEN v.content END, ",
        memory_columns!(), " FROM stores s LEFT JOIN memories m ON m.workspace = s.workspace AND m.store = s.id \
         AND m.path = $3 LEFT JOIN ", head!(), " AND $4 > 0 \
         WHERE s.workspace = $1 AND s.id = $2 AND s.deleted_at IS NULL"
    ),
    content_of_version:
        "SELECT encoding, content FROM versions WHERE workspace = $1 AND store = $2 AND id = $3",
    // $3 where to begin, $4 where to end, $5 how many, $6 how much of each.
    memory_list: concat!(
        "SELECT s.sequence, m.summary, m.encoding, m.content, m.directory, NULL::bigint, ", memory_columns!(),
        " FROM stores s LEFT JOIN (\
         SELECT v.summary, v.encoding, CASE WHEN $6 > 1 THEN v.content END AS content, NULL::text AS directory, ",
        memory_columns!(), " FROM memories m LEFT JOIN ", head!(), " AND $6 > 0 \
         WHERE m.workspace = $1 AND m.store = $2 AND m.path >= $3 AND m.path < $4 ORDER BY m.path LIMIT $5) m ON true \
         WHERE s.workspace = $1 AND s.id = $2 AND s.deleted_at IS NULL ORDER BY m.path"
    ),
    // The same, but what lies deeper than the prefix of $7 characters is one entry a directory: from each entry the
    // walk goes on behind it, behind all that a directory holds (`0` follows `/`), behind a memory (no path has
    // U+0001).
    memory_children: concat!(
        "WITH RECURSIVE walk AS ((",
        "SELECT m.workspace, m.store, m.id, m.path, strpos(substr(m.path, $7 + 1), '/') AS slash FROM memories m \
         WHERE m.workspace = $1 AND m.store = $2 AND m.path >= $3 AND m.path < $4 ORDER BY m.path LIMIT 1) \
         UNION ALL SELECT n.* FROM walk w CROSS JOIN LATERAL (\
         SELECT m.workspace, m.store, m.id, m.path, strpos(substr(m.path, $7 + 1), '/') AS slash FROM memories m \
         WHERE m.workspace = $1 AND m.store = $2 AND m.path >= CASE WHEN w.slash > 0 \
         THEN left(w.path, $7 + w.slash - 1) || '0' ELSE w.path || U&'\\0001' END \
         AND m.path < $4 ORDER BY m.path LIMIT 1) n) ",
        "SELECT s.sequence, e.summary, e.encoding, e.content, e.directory, e.beneath, e.memory, e.path, e.version_id, \
         e.content_sha256, e.size_bytes, e.created_at, e.updated_at FROM stores s LEFT JOIN (\
         SELECT v.summary, v.encoding, CASE WHEN $6 > 1 THEN v.content END AS content, \
         CASE WHEN w.slash > 0 THEN left(w.path, $7 + w.slash) END AS directory, \
         CASE WHEN w.slash > 0 AND $6 = 1 THEN (SELECT count(*) FROM memories b WHERE b.workspace = $1 \
         AND b.store = $2 AND b.path > left(w.path, $7 + w.slash) \
         AND b.path < left(w.path, $7 + w.slash - 1) || '0') END AS beneath, m.id AS memory, m.path, \
         m.version_id, m.content_sha256, m.size_bytes, m.created_at, m.updated_at \
         FROM (SELECT * FROM walk LIMIT $5) w JOIN memories m ON m.workspace = $1 AND m.store = $2 AND m.id = w.id \
         LEFT JOIN ", head!(), " AND $6 > 0 AND w.slash = 0) e ON true \
         WHERE s.workspace = $1 AND s.id = $2 AND s.deleted_at IS NULL ORDER BY e.path"
    ),
    version_by_id: concat!(
        "SELECT s.sequence, v.summary, v.reason, v.encoding, CASE WHEN $4 THEN v.content END, ", version_columns!(),
        " FROM stores s LEFT JOIN versions v ON v.workspace = s.workspace AND v.store = s.id AND v.id = $3 \
         WHERE s.workspace = $1 AND s.id = $2 AND s.deleted_at IS NULL"
    ),
    store_sequence: "SELECT sequence FROM stores WHERE workspace = $1 AND id = $2 AND deleted_at IS NULL",
    // $3 and $4 the stretch of sequences, $5 bits of operations, $6 and $7 the author, $8 and $9 the time, $10 how
    // many, $11 with the content.
    version_list: concat!(
        "SELECT v.sequence, v.summary, v.reason, v.encoding, CASE WHEN $11 THEN v.content END, ", version_columns!(),
        " FROM versions v WHERE v.workspace = $1 AND v.store = $2 AND v.sequence >= $3 AND v.sequence < $4 \
         AND ($5::int = 0 OR ($5 >> v.operation) & 1 = 1) AND ($6::smallint IS NULL OR (v.author_kind = $6 AND v.author = $7)) \
         AND v.created_at BETWEEN $8 AND $9 ORDER BY v.sequence DESC LIMIT $10"
    ),
    version_list_of_memory: concat!(
        "SELECT v.sequence, v.summary, v.reason, v.encoding, CASE WHEN $11 THEN v.content END, ", version_columns!(),
        " FROM versions v WHERE v.workspace = $1 AND v.store = $2 AND v.sequence >= $3 AND v.sequence < $4 \
         AND ($5::int = 0 OR ($5 >> v.operation) & 1 = 1) AND ($6::smallint IS NULL OR (v.author_kind = $6 AND v.author = $7)) \
         AND v.created_at BETWEEN $8 AND $9 AND v.memory_id = $12 ORDER BY v.sequence DESC LIMIT $10"
    ),

    newest_version_below:
        "SELECT v.sequence FROM versions v WHERE v.workspace = $1 AND v.store = $2 AND v.sequence < $3 \
         ORDER BY v.sequence DESC LIMIT 1",

    // What followers read. The first column says whether the store is deleted.
    followed_store: concat!(
        "SELECT s.deleted_at IS NOT NULL, ", store_columns!(), " FROM stores s WHERE s.workspace = $1 AND s.id = $2"
    ),
    // Each with the version before it of the same memory. $3 after which sequence, $4 how many.
    versions_after: concat!(
        "SELECT b.operation, b.path, b.redacted_at IS NOT NULL, ", version_columns!(), " FROM versions v \
         LEFT JOIN LATERAL (SELECT p.operation, p.path, p.redacted_at FROM versions p WHERE p.workspace = $1 \
         AND p.store = $2 AND p.memory_id = v.memory_id AND p.sequence < v.sequence \
         ORDER BY p.sequence DESC LIMIT 1) b ON true \
         WHERE v.workspace = $1 AND v.store = $2 AND v.sequence > $3 ORDER BY v.sequence LIMIT $4"
    ),
    marks_after: concat!(
        "SELECT ", mark_columns!(), " FROM marks k WHERE k.workspace = $1 AND k.store = $2 AND k.sequence > $3 \
         ORDER BY k.sequence LIMIT $4"
    ),
    history: concat!(
        "SELECT v.sequence, v.summary, v.reason, v.encoding, v.content, ", version_columns!(), " FROM versions v \
         WHERE v.workspace = $1 AND v.store = $2 AND v.sequence > $3 ORDER BY v.sequence LIMIT $4"
    ),
    snapshot: concat!(
        "SELECT s.sequence, ", memory_columns!(), " FROM stores s LEFT JOIN memories m ON m.workspace = s.workspace \
         AND m.store = s.id WHERE s.workspace = $1 AND s.id = $2 AND s.deleted_at IS NULL ORDER BY m.path"
    ),
    // The heads of the memories $3, and the versions $4; the last column tells which.
    contents: concat!(
        "SELECT v.sequence, v.summary, v.reason, v.encoding, v.content, ", version_columns!(),
        ", true FROM memories m JOIN ", head!(), " WHERE m.workspace = $1 AND m.store = $2 \
         AND m.id = ANY ($3::uuid[]) UNION ALL \
         SELECT v.sequence, v.summary, v.reason, v.encoding, v.content, ", version_columns!(),
        ", false FROM versions v WHERE v.workspace = $1 AND v.store = $2 AND v.id = ANY ($4::uuid[])"
    ),
    // How far stores are, also those of which only their deletion is left.
    positions:
        "SELECT id, changed_at FROM stores WHERE id = ANY ($1::uuid[]) UNION ALL \
         SELECT store, created_at FROM marks WHERE kind = 3 AND store = ANY ($1::uuid[]) UNION ALL \
         SELECT id, last + dropped::int FROM logs WHERE id = ANY ($1::uuid[])",
    notify: "SELECT pg_notify($1, $2)",

    // The installation, workspaces and keys.
    installation: "SELECT organization, first_workspace, epoch FROM installation",
    insert_installation:
        "INSERT INTO installation (one, organization, first_workspace, epoch) VALUES (1, $1, $2, $3) \
         ON CONFLICT DO NOTHING",
    insert_workspace: "INSERT INTO workspaces (workspace, name, created_at, max_memories_per_store) VALUES ($1, $2, $3, $4)",
    workspace_list: "SELECT workspace, name, created_at, max_memories_per_store FROM workspaces ORDER BY created_at, workspace",
    insert_key:
        "INSERT INTO api_keys (workspace, id, hash, name, role, permissions, contract, created_at, expires_at, \
         revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    key_by_hash: concat!("SELECT ", key_columns!(), " FROM api_keys k WHERE k.hash = $1"),
    key_list: concat!(
        "SELECT ", key_columns!(), " FROM api_keys k WHERE k.workspace = $1 AND k.revoked_at IS NULL \
         ORDER BY k.created_at, k.id"
    ),
    revoke_key:
        "UPDATE api_keys SET revoked_at = $3 WHERE workspace = $1 AND id = $2 AND revoked_at IS NULL",
    store_count: "SELECT count(*) FROM stores WHERE deleted_at IS NULL",
    ping: "SELECT 1",

    // Housekeeping.
    take_lease:
        "INSERT INTO leases VALUES ($1, $2, clock_timestamp() + $3::bigint * interval '1 millisecond') \
         ON CONFLICT (job) DO UPDATE SET holder = excluded.holder, until = excluded.until \
         WHERE leases.until < clock_timestamp() OR leases.holder = excluded.holder",
    give_lease: "DELETE FROM leases WHERE job = $1 AND holder = $2",
    // Stores after this one of which the oldest version is older than $3.
    aged_stores:
        "SELECT s.workspace, s.id FROM stores s CROSS JOIN LATERAL (SELECT v.created_at FROM versions v \
         WHERE v.workspace = s.workspace AND v.store = s.id ORDER BY v.sequence LIMIT 1) oldest \
         WHERE (s.workspace, s.id) > ($1, $2) AND s.deleted_at IS NULL AND oldest.created_at < $3 \
         ORDER BY s.workspace, s.id LIMIT $4",
    // Old versions of a store after a sequence, how many newer ones their memory has (up to $6), and when the memory
    // was deleted.
    aged_versions:
        "SELECT v.sequence, v.created_at, \
         (SELECT count(*) FROM (SELECT 1 FROM versions n WHERE n.workspace = $1 AND n.store = $2 \
         AND n.memory_id = v.memory_id AND n.sequence > v.sequence LIMIT $6) newer), \
         (SELECT CASE WHEN d.operation = 4 THEN d.created_at END FROM versions d WHERE d.workspace = $1 \
         AND d.store = $2 AND d.memory_id = v.memory_id ORDER BY d.sequence DESC LIMIT 1) \
         FROM versions v WHERE v.workspace = $1 AND v.store = $2 AND v.sequence > $3 AND v.created_at < $4 \
         ORDER BY v.sequence LIMIT $5",
    delete_versions:
        "DELETE FROM versions WHERE workspace = $1 AND store = $2 AND sequence = ANY ($3::bigint[])",
    count_down:
        "UPDATE stores SET versions = versions - $3, floor = greatest(floor, $4) WHERE workspace = $1 AND id = $2",
    // Old marks: those of one store together.
    aged_marks:
        "SELECT k.workspace, k.store, k.sequence FROM marks k WHERE k.created_at < $1 AND NOT EXISTS (SELECT 1 \
         FROM leases l WHERE l.job = 'restore ' || k.store::text AND l.until > clock_timestamp()) \
         ORDER BY k.created_at LIMIT $2",
    delete_mark: "DELETE FROM marks WHERE workspace = $1 AND store = $2 AND sequence = $3",
    raise_floor: "UPDATE stores SET floor = greatest(floor, $3) WHERE workspace = $1 AND id = $2",
    // Not one that is being put back.
    deleted_store:
        "SELECT s.workspace, s.id FROM stores s WHERE s.deleted_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM leases l \
         WHERE l.job = 'restore ' || s.id::text AND l.until > clock_timestamp()) ORDER BY s.workspace, s.id LIMIT 1",
    purge_memories:
        "DELETE FROM memories WHERE workspace = $1 AND store = $2 AND id = ANY (ARRAY(\
         SELECT id FROM memories WHERE workspace = $1 AND store = $2 LIMIT $3))",
    purge_versions:
        "DELETE FROM versions WHERE workspace = $1 AND store = $2 AND sequence = ANY (ARRAY(\
         SELECT sequence FROM versions WHERE workspace = $1 AND store = $2 ORDER BY sequence LIMIT $3))",
    // The mark of its deletion stays for those who follow it, until retention removes that.
    purge_marks:
        "DELETE FROM marks WHERE workspace = $1 AND store = $2 AND sequence = ANY (ARRAY(\
         SELECT sequence FROM marks WHERE workspace = $1 AND store = $2 AND kind <> 3 ORDER BY sequence LIMIT $3))",
    purge_store: "DELETE FROM stores WHERE workspace = $1 AND id = $2 AND deleted_at IS NOT NULL",
    // Records.
    record: concat!(
        "SELECT ", record_columns!(), " FROM records r WHERE r.workspace = $1 AND r.kind = $2 AND r.id = $3"
    ),
    record_many: concat!(
        "SELECT ", record_columns!(), " FROM unnest($3::uuid[]) WITH ORDINALITY w (id, place) \
         CROSS JOIN LATERAL (SELECT * FROM records r WHERE r.workspace = $1 AND r.kind = $2 AND r.id = w.id LIMIT 1) r \
         ORDER BY w.place"
    ),
    record_by_key: concat!("SELECT ", record_columns!(), " FROM records r WHERE r.kind = $1 AND r.key = $2"),
    record_due: concat!(
        "SELECT ", record_columns!(), " FROM records r WHERE r.kind = $1 AND r.due_at <= $2 \
         ORDER BY r.due_at, r.workspace, r.id LIMIT $3"
    ),
    records_newest: record_list!("<", "DESC"),
    records_oldest: record_list!(">", "ASC"),
    tagged_newest: record_list!(tag "<", "DESC"),
    tagged_oldest: record_list!(tag ">", "ASC"),
    entries_newest: entry_list!("<", "DESC"),
    entries_oldest: entry_list!(">", "ASC"),
    kinds_newest: entry_list!(kinds "<", "DESC"),
    kinds_oldest: entry_list!(kinds ">", "ASC"),
    lock_record: "SELECT 1 FROM records WHERE workspace = $1 AND kind = $2 AND id = $3 FOR UPDATE",
    lock_log: "SELECT 1 FROM logs WHERE workspace = $1 AND id = $2 FOR UPDATE",
    insert_record:
        "INSERT INTO records (workspace, kind, id, revision, created_at, due_at, key, tags, body) \
         VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
    // Answers with the tags that were there, as of the lock, and the time of creation.
    update_record:
        "WITH o AS (SELECT tags FROM records WHERE workspace = $1 AND kind = $2 AND id = $3 \
         AND revision = $4::bigint - 1 FOR UPDATE) \
         UPDATE records r SET revision = $4::bigint, due_at = $5, key = $6, tags = $7, body = $8 FROM o \
         WHERE r.workspace = $1 AND r.kind = $2 AND r.id = $3 AND r.revision = $4::bigint - 1 \
         RETURNING o.tags, r.created_at",
    delete_record:
        "DELETE FROM records WHERE workspace = $1 AND kind = $2 AND id = $3 AND revision = $4 \
         RETURNING tags, created_at",
    delete_tag:
        "DELETE FROM record_tags WHERE workspace = $1 AND kind = $2 AND name = $3 AND value = $4 \
         AND created_at = $5 AND id = $6",
    insert_tag:
        "INSERT INTO record_tags (workspace, kind, name, value, created_at, id) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT DO NOTHING",
    insert_log: "INSERT INTO logs (workspace, id, last) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    // A log that ends with $4.
    extend_log: "UPDATE logs SET last = $3 WHERE workspace = $1 AND id = $2 AND last = $4 AND NOT dropped",
    insert_entries:
        "INSERT INTO entries (workspace, log, sequence, id, at, kind, body) SELECT $1, $2, w.* \
         FROM unnest($3::bigint[], $4::uuid[], $5::bigint[], $6::text[], $7::bytea[]) w",
    drop_log: "UPDATE logs SET dropped = true WHERE workspace = $1 AND id = $2 AND NOT dropped RETURNING last",
    dropped_log: "SELECT workspace, id FROM logs WHERE dropped ORDER BY workspace, id LIMIT 1",
    purge_entries:
        "DELETE FROM entries WHERE workspace = $1 AND log = $2 AND sequence <= (SELECT max(f.sequence) FROM (\
         SELECT sequence FROM entries WHERE workspace = $1 AND log = $2 ORDER BY sequence LIMIT $3) f)",
    purge_log: "DELETE FROM logs WHERE workspace = $1 AND id = $2 AND dropped",
}
