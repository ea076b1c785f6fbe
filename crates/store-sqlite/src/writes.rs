//! Carrying out a change inside the writer's transaction: load the situation, let core decide, apply.

use std::collections::HashMap;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};
use stele_core::changeset::Applied;
use stele_core::command::{Command, MemoryRef, NewStore, RedactedPath};
use stele_core::decide::{
    Context, Current, Decision, NewContent, NewVersion, Occupant, Outcome, Situation, WorkspaceSituation,
    Write, decide, decide_store,
};
use stele_core::id::{MemoryId, StoreId, VersionId, WorkspaceId};
use stele_core::limits::Limits;
use stele_core::model::{Actor, Memory, Recorded, Redaction, Store, Version};
use stele_core::path::MemoryPath;
use stele_core::storage::{Change, ChangeAll, Changed, ChangedAll};
use stele_core::text::{Content, Reason, SlugSearch, Summary};
use stele_core::time::Timestamp;

use crate::content::{Encoded, decode};
use crate::fault::{Fault, Stop};
use crate::marks::insert_mark;
use crate::rows::{self, Col, Cursor, Sql, actor_columns};

/// Contents by their hash, as they are to be stored: made before the writer thread is asked.
pub(crate) type Contents = HashMap<[u8; 32], Encoded>;

/// What surrounds a write on the writer thread.
pub(crate) struct Env<'a> {
    pub(crate) now: Timestamp,
    pub(crate) random: [u64; 2],
    pub(crate) limits: &'a Limits,
    /// Whether the disk has room for more.
    pub(crate) room: bool,
}

impl Env<'_> {
    fn context<'a>(&'a self, actor: Actor, reason: Option<&'a Reason>) -> Context<'a> {
        Context { actor, reason, now: self.now, random: self.random, limits: self.limits }
    }
}

/// Makes a store with a slug of its own.
pub(crate) fn create_store(
    connection: &Connection,
    workspace: WorkspaceId,
    actor: Actor,
    new: &NewStore,
    env: &Env<'_>,
) -> Result<Store, Stop> {
    let stores = match env.limits.stores_per_workspace {
        Some(_) => connection
            .prepare_cached("SELECT count(*) FROM stores WHERE workspace = ? AND deleted_at IS NULL")?
            .query_row([Col(workspace)], |row| row.get(0))?,
        None => 0,
    };
    let mut store = decide_store(&WorkspaceSituation { workspace, stores }, new, &env.context(actor, None))?;
    if !env.room {
        return Err(Stop::Full);
    }
    store.slug = free_slug(connection, workspace, &store.slug)?;
    insert_store(connection, &store)?;
    Ok(store)
}

pub(crate) fn free_slug(connection: &Connection, workspace: WorkspaceId, base: &str) -> Sql<String> {
    let mut taken = connection
        .prepare_cached("SELECT 1 FROM stores WHERE workspace = ? AND slug = ? AND deleted_at IS NULL")?;
    let mut search = SlugSearch::new(base);
    loop {
        match search.next() {
            Ok(free) => return Ok(free),
            Err(slug) => search.found(taken.exists(params![Col(workspace), slug])?),
        }
    }
}

pub(crate) fn insert_store(connection: &Connection, store: &Store) -> Sql<()> {
    let (kind, by) = actor_columns(store.created_by);
    connection
        .prepare_cached(
            "INSERT INTO stores (id, workspace, name, slug, description, metadata, origin, agent, \
             created_by_kind, created_by, created_at, updated_at, changed_at, archived_at, sequence, memories, \
             bytes, versions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0)",
        )?
        .execute(params![
            Col(store.id),
            Col(store.workspace),
            store.name.as_str(),
            store.slug,
            store.description.as_str(),
            rows::metadata_column(&store.metadata),
            Col(store.origin),
            store.agent.map(Col),
            kind,
            by,
            Col(store.created_at),
            Col(store.updated_at),
            Col(store.changed_at),
            store.archived_at.map(Col),
        ])?;
    Ok(())
}

/// Carries out one change; answers also with the time to announce, if the store changed.
pub(crate) fn change(
    connection: &Connection,
    change: &Change,
    contents: &Contents,
    env: &Env<'_>,
) -> Result<(Changed, Option<Timestamp>), Stop> {
    let step = Step { connection, workspace: change.workspace, store: change.store, contents, env };
    let decision = step.decide(&change.command, &env.context(change.actor, None))?;
    let changed_at = decision.changed_at();
    let content = match (&decision.outcome, change.with_content) {
        (Outcome::Memory(current), true) => Some(content_of(connection, &current.memory)?),
        _ => None,
    };
    Ok((Changed { outcome: decision.outcome, content, sequence: decision.sequence }, changed_at))
}

/// Carries out a changeset; the savepoint around it undoes what came before a refusal.
pub(crate) fn change_all(
    connection: &Connection,
    change: &ChangeAll,
    contents: &Contents,
    env: &Env<'_>,
) -> Result<(ChangedAll, Option<Timestamp>), Stop> {
    let step = Step { connection, workspace: change.workspace, store: change.store, contents, env };
    let context = env.context(change.actor, change.changeset.reason());
    let mut changed = ChangedAll { applied: Vec::new(), sequence: 0 };
    let (mut before, mut changed_at) = (None, None);
    for (index, command) in change.changeset.commands().iter().enumerate() {
        let decision = step.decide(command, &context).map_err(|stop| match stop {
            Stop::Refused(refusal, sequence) => Stop::Refused(refusal.at(index), before.or(sequence)),
            other => other,
        })?;
        changed_at = decision.changed_at().or(changed_at);
        changed.applied.push(Applied::of(&decision));
        changed.sequence = decision.sequence;
        // What a refusal leaves is the store as it was before the first change.
        before = before.or(Some(decision.sequence - u64::from(!decision.writes.is_empty())));
    }
    Ok((changed, changed_at))
}

/// One command of a transaction.
struct Step<'a> {
    connection: &'a Connection,
    workspace: WorkspaceId,
    store: StoreId,
    contents: &'a Contents,
    env: &'a Env<'a>,
}

impl Step<'_> {
    /// Loads, decides and applies.
    fn decide(&self, command: &Command, context: &Context<'_>) -> Result<Decision, Stop> {
        let Self { connection, workspace, store, contents, env } = *self;
        let (number, situation) = load(connection, workspace, store, command)?;
        let sequence = situation.store.as_ref().map(|store| store.counters.sequence);
        let decision = decide(&situation, store, command, context)
            .map_err(|refusal| Stop::Refused(refusal, sequence))?;
        // After the rules: what changes nothing or is refused needs no room.
        if !decision.writes.is_empty() && !env.room && !command.makes_room() {
            return Err(Stop::Full);
        }
        Target { connection, workspace, store: number, contents }.apply(&decision.writes)?;
        Ok(decision)
    }
}

/// The store's row number (0 if there is none) and what matters for the command.
fn load(
    connection: &Connection,
    workspace: WorkspaceId,
    store: StoreId,
    command: &Command,
) -> Result<(i64, Situation), Stop> {
    let mut situation =
        Situation { store: None, memory: None, version: None, occupant: None, memories_cap: None };
    let found = connection
        .prepare_cached(&format!(
            "SELECT {} FROM stores s WHERE s.id = ? AND s.workspace = ? AND s.deleted_at IS NULL",
            rows::STORE
        ))?
        .query_row(params![Col(store), Col(workspace)], rows::store)
        .optional()?;
    let Some((number, found)) = found else { return Ok((0, situation)) };
    situation.store = Some(found);
    if command.may_add_memory() {
        situation.memories_cap = connection
            .prepare_cached("SELECT max_memories_per_store FROM workspaces WHERE id = ?")?
            .query_row([Col(workspace)], |row| row.get(0))
            .optional()?
            .flatten();
    }
    let at = Place { connection, number, store };
    if let Some(id) = command.version() {
        situation.version = at.version(id)?;
    }
    let of_version = situation.version.as_ref().map(|(version, _)| MemoryRef::Id(version.memory));
    if let Some(which) = command.memory().or(of_version.as_ref()) {
        situation.memory = at.current(which)?;
    }
    let restored = situation.version.as_ref().filter(|_| situation.memory.is_none());
    let wanted = command.wanted_path().or(restored.and_then(|(version, _)| version.path.as_ref()));
    if let Some(path) = wanted {
        let own = situation.memory.as_ref().map(|current| current.memory.id);
        situation.occupant = at.occupant(path, own)?;
    }
    Ok((number, situation))
}

/// A store in the database.
struct Place<'a> {
    connection: &'a Connection,
    number: i64,
    store: StoreId,
}

impl Place<'_> {
    fn version(&self, id: VersionId) -> Sql<Option<(Version, Option<Summary>)>> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {}, v.summary FROM versions v WHERE v.id = ? AND v.store = ?",
                rows::VERSION
            ))?
            .query_row(params![Col(id), self.number], |row| {
                let c = &mut Cursor::new(row);
                Ok((rows::version(c, self.store)?, rows::summary(c)?))
            })
            .optional()
    }

    fn current(&self, which: &MemoryRef) -> Sql<Option<Current>> {
        let of = |condition: &str| {
            self.connection.prepare_cached(&format!(
                "SELECT {}, v.summary FROM memories m JOIN versions v ON v.version = m.head \
                 WHERE m.store = ? AND {condition}",
                rows::MEMORY
            ))
        };
        let current = |row: &rusqlite::Row<'_>| {
            let c = &mut Cursor::new(row);
            let (memory, _) = rows::memory(c, self.store)?;
            Ok(Current { memory, summary: rows::summary(c)?.unwrap_or_else(Summary::empty) })
        };
        match which {
            MemoryRef::Id(id) => of("m.id = ?")?.query_row(params![self.number, Col(*id)], current),
            MemoryRef::Path(path) => {
                of("m.path = ?")?.query_row(params![self.number, path.as_str()], current)
            }
        }
        .optional()
    }

    /// The live memory at, above or below `path`, other than `own`; of several, the one with the smallest path.
    fn occupant(&self, path: &MemoryPath, own: Option<MemoryId>) -> Sql<Option<Occupant>> {
        let mut exactly = self
            .connection
            .prepare_cached("SELECT id, path FROM memories WHERE store = ? AND path = ? AND id IS NOT ?")?;
        for candidate in path.ancestors().chain([path.as_str()]) {
            let found =
                exactly.query_row(params![self.number, candidate, own.map(Col)], occupant).optional()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let directory = path.as_directory();
        self.connection
            .prepare_cached(
                "SELECT id, path FROM memories WHERE store = ? AND path > ? AND path < ? AND id IS NOT ? \
                 ORDER BY path LIMIT 1",
            )?
            .query_row(params![self.number, directory, end_of(&directory), own.map(Col)], occupant)
            .optional()
    }
}

fn occupant(row: &rusqlite::Row<'_>) -> Sql<Occupant> {
    let c = &mut Cursor::new(row);
    Ok(Occupant { id: c.col()?, path: MemoryPath::from_trusted(c.take()?) })
}

/// The first text after all that start with `directory`, which ends in `/`: `0` follows `/`.
pub(crate) fn end_of(directory: &str) -> String {
    format!("{}0", &directory[..directory.len() - 1])
}

fn content_of(connection: &Connection, memory: &Memory) -> Result<Bytes, Fault> {
    let damaged = || Fault::Damaged(format!("{} of memory {}", memory.version, memory.id));
    connection
        .prepare_cached("SELECT encoding, content FROM versions WHERE id = ?")?
        .query_row([Col(memory.version)], |row| {
            Ok(decode(row.get(0)?, row.get_ref(1)?, memory.size_bytes, memory.content_sha256))
        })?
        .ok_or_else(damaged)
}

/// Where writes go.
struct Target<'a> {
    connection: &'a Connection,
    workspace: WorkspaceId,
    store: i64,
    contents: &'a Contents,
}

impl Target<'_> {
    fn apply(&self, writes: &[Write]) -> Result<(), Stop> {
        // The head's row number is known only once its version is written.
        let mut head: Option<&Write> = None;
        for write in writes {
            match write {
                Write::InsertMemory(_) | Write::ReplaceMemory(_) => head = Some(write),
                Write::AppendVersion(new) => {
                    let number = self.append(new)?;
                    match head.take() {
                        Some(Write::InsertMemory(memory)) => self.insert(memory, number)?,
                        Some(Write::ReplaceMemory(memory)) => self.replace(memory, number)?,
                        _ => {}
                    }
                }
                Write::RemoveMemory(id) => {
                    self.connection
                        .prepare_cached("DELETE FROM memories WHERE id = ?")?
                        .execute([Col(*id)])?;
                }
                Write::Redact { version, redaction, path } => {
                    redact(self.connection, *version, *redaction, *path)?;
                }
                Write::Store(store) => self.update_store(store)?,
                Write::Counters { changed_at, counters } => {
                    self.connection
                        .prepare_cached(
                            "UPDATE stores SET changed_at = ?, sequence = ?, memories = ?, bytes = ?, \
                             versions = ? WHERE store = ?",
                        )?
                        .execute(params![
                            Col(*changed_at),
                            counters.sequence,
                            counters.memories,
                            counters.bytes,
                            counters.versions,
                            self.store
                        ])?;
                }
                Write::DeleteStore { at, sequence } => {
                    self.connection
                        .prepare_cached(
                            "UPDATE stores SET deleted_at = ?1, changed_at = ?1, sequence = ?2 WHERE store = ?3",
                        )?
                        .execute(params![Col(*at), sequence, self.store])?;
                }
                Write::Mark(mark) => insert_mark(self.connection, self.workspace, mark)?,
            }
        }
        Ok(())
    }

    fn update_store(&self, store: &Store) -> Sql<()> {
        self.connection
            .prepare_cached(
                "UPDATE stores SET name = ?, description = ?, metadata = ?, updated_at = ?, changed_at = ?, \
                 archived_at = ?, sequence = ? WHERE store = ?",
            )?
            .execute(params![
                store.name.as_str(),
                store.description.as_str(),
                rows::metadata_column(&store.metadata),
                Col(store.updated_at),
                Col(store.changed_at),
                store.archived_at.map(Col),
                store.counters.sequence,
                self.store
            ])?;
        Ok(())
    }

    fn insert(&self, memory: &Memory, head: i64) -> Sql<()> {
        insert_memory(self.connection, self.store, memory, head)
    }

    fn replace(&self, memory: &Memory, head: i64) -> Sql<()> {
        self.connection
            .prepare_cached(
                "UPDATE memories SET path = ?, head = ?, version_id = ?, content_sha256 = ?, size_bytes = ?, \
                 updated_at = ? WHERE id = ?",
            )?
            .execute(params![
                memory.path.as_str(),
                head,
                Col(memory.version),
                Col(memory.content_sha256),
                memory.size_bytes,
                Col(memory.updated_at),
                Col(memory.id)
            ])?;
        Ok(())
    }

    /// Writes a version and returns its row number.
    fn append(&self, new: &NewVersion) -> Result<i64, Stop> {
        let (encoding, content): (Option<u8>, Option<Bytes>) = match &new.content {
            NewContent::None => (None, None),
            NewContent::Text(text) => {
                let encoded = self.encoded(text)?;
                (Some(encoded.encoding), Some(encoded.bytes.clone()))
            }
            NewContent::CopyOf(id) => self
                .connection
                .prepare_cached("SELECT encoding, content FROM versions WHERE id = ?")?
                .query_row([Col(*id)], |row| {
                    Ok((row.get(0)?, row.get::<_, Option<Vec<u8>>>(1)?.map(Bytes::from)))
                })?,
        };
        let version = &new.version;
        let (kind, author) = actor_columns(version.author);
        let recorded = version.recorded.as_ref();
        self.connection
            .prepare_cached(
                "INSERT INTO versions (store, sequence, id, memory_id, operation, created_at, author_kind, author, \
                 content_sha256, size_bytes, path, summary, reason, encoding, content) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                self.store,
                version.sequence,
                Col(version.id),
                Col(version.memory),
                Col(version.operation),
                Col(version.created_at),
                kind,
                author,
                recorded.map(|Recorded { content_sha256, .. }| Col(*content_sha256)),
                recorded.map(|Recorded { size_bytes, .. }| *size_bytes),
                version.path.as_ref().map(MemoryPath::as_str),
                new.summary.as_ref().map(Summary::as_str),
                new.reason.as_ref().map(Reason::as_str),
                encoding,
                content.as_deref()
            ])?;
        Ok(self.connection.last_insert_rowid())
    }

    fn encoded(&self, text: &Content) -> Result<&Encoded, Fault> {
        let hash = *text.sha256().as_bytes();
        self.contents.get(&hash).ok_or_else(|| Fault::Damaged("a content that was not prepared".into()))
    }
}

/// Removes the texts of a version for good, and remembers that.
pub(crate) fn redact(
    connection: &Connection,
    version: VersionId,
    redaction: Redaction,
    path: RedactedPath,
) -> Sql<()> {
    let (kind, by) = actor_columns(redaction.by);
    connection
        .prepare_cached(
            "UPDATE versions SET redacted_at = ?, redacted_by_kind = ?, redacted_by = ?, \
             content_sha256 = NULL, size_bytes = NULL, summary = NULL, reason = NULL, encoding = NULL, \
             content = NULL, path = CASE WHEN ? THEN NULL ELSE path END WHERE id = ?",
        )?
        .execute(params![Col(redaction.at), kind, by, path == RedactedPath::Scrub, Col(version)])?;
    crate::ledger::remember(connection, version, redaction, path)
}

/// Keeps a live memory of the store numbered `store`, its head being the version numbered `head`.
pub(crate) fn insert_memory(connection: &Connection, store: i64, memory: &Memory, head: i64) -> Sql<()> {
    connection
        .prepare_cached(
            "INSERT INTO memories (store, id, path, head, version_id, content_sha256, size_bytes, created_at, \
             updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            store,
            Col(memory.id),
            memory.path.as_str(),
            head,
            Col(memory.version),
            Col(memory.content_sha256),
            memory.size_bytes,
            Col(memory.created_at),
            Col(memory.updated_at)
        ])?;
    Ok(())
}
