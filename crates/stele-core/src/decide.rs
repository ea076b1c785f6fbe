//! Every rule about changes, as pure functions: situation and command in, writes or a refusal out. DESIGN 1 and 3.
//!
//! A back end opens a transaction, loads the [`Situation`], calls [`decide`], applies the writes and commits.

use crate::command::{Command, Expected, NewStore, OnArchived, RedactedPath};
use crate::id::{MemoryId, StoreId, VersionId, WorkspaceId};
use crate::limits::Limits;
use crate::model::{
    Actor, Counters, Mark, MarkKind, Memory, Operation, Origin, Recorded, Redaction, Store, Version,
};
use crate::path::MemoryPath;
use crate::refusal::Refusal;
use crate::text::{Content, Metadata, Reason, Summary};
use crate::time::Timestamp;

/// What the database holds that matters for one command, read inside its transaction.
#[derive(Clone, Debug)]
pub struct Situation {
    /// The store; `None` if it is unknown, deleted or of another workspace.
    pub store: Option<Store>,
    /// The live memory of [`Command::memory`], or the live memory of the version loaded.
    pub memory: Option<Current>,
    /// The version of [`Command::version`], with its summary.
    pub version: Option<(Version, Option<Summary>)>,
    /// A live memory at, above or below the path wanted, other than `memory`. The wanted path is
    /// [`Command::wanted_path`], or that of a version to restore whose memory is gone. Of several, the smallest.
    pub occupant: Option<Occupant>,
    /// The workspace's own cap of memories a store, where it has one; loaded for what may add a memory.
    pub memories_cap: Option<u64>,
}

/// A live memory with its summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// The memory.
    pub memory: Memory,
    /// Its summary.
    pub summary: Summary,
}

/// A live memory that is in the way of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// Its id.
    pub id: MemoryId,
    /// Its path.
    pub path: MemoryPath,
}

/// What surrounds a decision: who, when, chance and caps.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Who writes.
    pub actor: Actor,
    /// Why, if it was said.
    pub reason: Option<&'a Reason>,
    /// The present, read under the store's lock.
    pub now: Timestamp,
    /// Random bits for the ids that the decision mints.
    pub random: [u64; 2],
    /// The caps.
    pub limits: &'a Limits,
}

/// One thing to write. The order matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// The store's own fields, `changed_at` and counters are now these.
    Store(Box<Store>),
    /// Its `changed_at` and counters are now these.
    Counters {
        /// The time of the change.
        changed_at: Timestamp,
        /// The counters.
        counters: Counters,
    },
    /// The store and all of it is gone from every read.
    DeleteStore {
        /// The time of the change.
        at: Timestamp,
        /// The store's last sequence.
        sequence: u64,
    },
    /// A change that writes no version.
    Mark(Mark),
    /// A new live memory, whose head is the version written next.
    InsertMemory(Memory),
    /// The live memory of this id is now this, its head the version written next.
    ReplaceMemory(Memory),
    /// The live memory of this id is gone.
    RemoveMemory(MemoryId),
    /// A new version.
    AppendVersion(Box<NewVersion>),
    /// The version's texts, hash and size are gone, and its path too if it is to be scrubbed.
    Redact {
        /// Which.
        version: VersionId,
        /// When and by whom.
        redaction: Redaction,
        /// What becomes of its path.
        path: RedactedPath,
    },
}

/// A version to write, with its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVersion {
    /// The version.
    pub version: Version,
    /// The summary as it stands; `None` on a deletion.
    pub summary: Option<Summary>,
    /// Where its content comes from.
    pub content: NewContent,
    /// Why it was written, if it was said.
    pub reason: Option<Reason>,
}

/// Where the content of a new version comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewContent {
    /// It has none: a deletion.
    None,
    /// This text.
    Text(Content),
    /// The same bytes as an older version of the same memory.
    CopyOf(VersionId),
}

/// What the caller is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The store as it now is.
    Store(Box<Store>),
    /// The store is gone.
    StoreDeleted(StoreId),
    /// The memory as it now is, with its summary.
    Memory(Box<Current>),
    /// The memory is gone.
    MemoryDeleted(MemoryId),
    /// The version as it now is.
    Version(Box<Version>),
}

/// A decision: what to write (nothing, if nothing changes) and what to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The writes, in order.
    pub writes: Vec<Write>,
    /// The answer.
    pub outcome: Outcome,
    /// The store's sequence afterwards.
    pub sequence: u64,
}

impl Decision {
    /// The store's `changed_at` afterwards, if it changed.
    pub fn changed_at(&self) -> Option<Timestamp> {
        self.writes.iter().find_map(|write| match write {
            Write::Store(store) => Some(store.changed_at),
            Write::Counters { changed_at, .. } => Some(*changed_at),
            Write::DeleteStore { at, .. } => Some(*at),
            _ => None,
        })
    }
}

/// What matters for a new store, read inside its transaction.
#[derive(Clone, Debug)]
pub struct WorkspaceSituation {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its stores, archived ones included; counted only if there is a cap.
    pub stores: u64,
}

/// Judges a new store. The slug is still to be made unique by the back end, with [`Store::slug`] as its base.
///
/// # Errors
/// Metadata out of bounds, or too many stores.
pub fn decide_store(
    situation: &WorkspaceSituation,
    new: &NewStore,
    context: &Context<'_>,
) -> Result<Store, Refusal> {
    let metadata =
        Metadata::default().patched(&new.metadata).map_err(|error| Refusal::invalid("metadata", error))?;
    let origin = if new.learned.is_some() { Origin::Reflection } else { Origin::Curated };
    room_for_store(situation.stores, origin, context.limits)?;
    let id = new.learned.unwrap_or_else(|| StoreId::mint(context.now, context.random[0]));
    let slug = match crate::text::slug(new.name.as_str()) {
        empty if empty.is_empty() => id.to_string(),
        slug => slug,
    };
    Ok(Store {
        id,
        workspace: situation.workspace,
        name: new.name.clone(),
        slug,
        description: new.description.clone(),
        metadata,
        origin,
        agent: new.agent,
        created_by: context.actor,
        created_at: context.now,
        updated_at: context.now,
        changed_at: context.now,
        archived_at: None,
        counters: Counters::default(),
    })
}

/// Judges whether a workspace that has so many stores may have one more.
///
/// # Errors
/// It may not.
pub fn room_for_store(stores: u64, origin: Origin, limits: &Limits) -> Result<(), Refusal> {
    match limits.stores_per_workspace {
        // An agent's learned store comes with its first session, which the cap is not to keep from starting.
        Some(limit) if origin == Origin::Curated && stores >= limit => Err(Refusal::StoreLimit { limit }),
        _ => Ok(()),
    }
}

/// Judges a command on an existing store.
///
/// The order of checks is spec/anthropic.md 3.5 and spec/recursion.md 3.3: existence, state of the store, no-op,
/// precondition, path, caps.
///
/// # Errors
/// The first rule that the command breaks; then nothing is written.
pub fn decide(
    situation: &Situation,
    id: StoreId,
    command: &Command,
    context: &Context<'_>,
) -> Result<Decision, Refusal> {
    let store = situation.store.as_ref().ok_or(Refusal::StoreNotFound(id))?;
    let change = Change { store, situation, context, at: context.now.after(store.changed_at) };
    match command {
        Command::UpdateStore { name, description, metadata } => {
            change.writable()?;
            let mut new = store.clone();
            new.name = name.clone().unwrap_or(new.name);
            new.description = description.clone().unwrap_or(new.description);
            new.metadata =
                new.metadata.patched(metadata).map_err(|error| Refusal::invalid("metadata", error))?;
            Ok(change.store_fields(new))
        }
        Command::ArchiveStore => {
            change.not_learned()?;
            Ok(change.archive())
        }
        Command::DeleteStore => {
            change.not_learned()?;
            let mark = change.mark(MarkKind::StoreDeleted);
            let (at, sequence) = (change.at, mark.sequence);
            Ok(Decision {
                writes: vec![Write::Mark(mark), Write::DeleteStore { at, sequence }],
                outcome: Outcome::StoreDeleted(store.id),
                sequence,
            })
        }
        Command::CreateMemory { path, summary, content } => change.create(path, summary, content),
        Command::UpdateMemory { memory, path, summary, content, expected } => {
            change.writable()?;
            let current = situation.memory.as_ref().ok_or_else(|| memory.missing())?;
            change.update(current, path.as_ref(), summary.as_ref(), content.as_ref(), *expected)
        }
        Command::DeleteMemory { memory, expected, on_archived } => {
            change.deletable(*on_archived)?;
            let current = situation.memory.as_ref().ok_or_else(|| memory.missing())?;
            change.delete(&current.memory, *expected)
        }
        Command::RestoreVersion { version } => {
            change.writable()?;
            change.restore(*version)
        }
        Command::RedactVersion { version, path } => change.redact(*version, *path),
    }
}

/// One command under judgement.
struct Change<'a> {
    store: &'a Store,
    situation: &'a Situation,
    context: &'a Context<'a>,
    /// The time of the change: the present, and later than the store's last one.
    at: Timestamp,
}

impl Change<'_> {
    fn not_learned(&self) -> Result<(), Refusal> {
        match self.store.origin {
            Origin::Curated => Ok(()),
            Origin::Reflection => Err(Refusal::StoreLearned(self.store.id)),
        }
    }

    fn deletable(&self, on_archived: OnArchived) -> Result<(), Refusal> {
        self.not_learned()?;
        match (self.store.archived_at, on_archived) {
            (Some(_), OnArchived::Refuse) => Err(Refusal::StoreArchived(self.store.id)),
            (Some(_), OnArchived::Allow) | (None, _) => Ok(()),
        }
    }

    fn writable(&self) -> Result<(), Refusal> {
        self.deletable(OnArchived::Refuse)
    }

    /// Nothing changes.
    fn nothing(&self, outcome: Outcome) -> Decision {
        Decision { writes: Vec::new(), outcome, sequence: self.store.counters.sequence }
    }

    /// The store with its own fields changed; unchanged fields write nothing.
    fn store_fields(&self, mut new: Store) -> Decision {
        if new == *self.store {
            return self.nothing(Outcome::Store(Box::new(new)));
        }
        new.updated_at = self.at;
        new.changed_at = self.at;
        let sequence = new.counters.sequence;
        let writes = vec![Write::Store(Box::new(new.clone()))];
        Decision { writes, outcome: Outcome::Store(Box::new(new)), sequence }
    }

    fn archive(&self) -> Decision {
        let mut new = self.store.clone();
        if new.archived_at.is_some() {
            return self.nothing(Outcome::Store(Box::new(new)));
        }
        let mark = self.mark(MarkKind::StoreArchived);
        new.archived_at = Some(self.at);
        new.counters.sequence = mark.sequence;
        let mut decision = self.store_fields(new);
        decision.writes.insert(0, Write::Mark(mark));
        decision
    }

    /// A change without a version, at the next place in history.
    fn mark(&self, kind: MarkKind) -> Mark {
        let sequence = self.store.counters.sequence + 1;
        Mark { store: self.store.id, sequence, kind, created_at: self.at, author: self.context.actor }
    }

    fn path_is_free(&self, wanted: &MemoryPath) -> Result<(), Refusal> {
        match &self.situation.occupant {
            Some(Occupant { id, path }) => {
                Err(Refusal::PathOccupied { wanted: wanted.clone(), by: *id, at: path.clone() })
            }
            None => Ok(()),
        }
    }

    /// Whether one more memory fits.
    fn memory_fits(&self) -> Result<(), Refusal> {
        let limit = self.situation.memories_cap.unwrap_or(self.context.limits.memories_per_store);
        if self.store.counters.memories >= limit { Err(Refusal::MemoryLimit { limit }) } else { Ok(()) }
    }

    /// The counters after one more version and the given change of memories and bytes.
    fn counters(&self, memories: i64, old_bytes: u64, new_bytes: u64) -> Result<Counters, Refusal> {
        let Counters { sequence, floor, memories: count, bytes, versions } = self.store.counters;
        let after = bytes.saturating_sub(old_bytes) + new_bytes;
        match self.context.limits.store_bytes {
            Some(limit) if new_bytes > old_bytes && after > limit => {
                return Err(Refusal::StoreBytesLimit { limit });
            }
            _ => {}
        }
        match self.context.limits.versions_per_store {
            // A deletion is let through: it is the way back under the other caps.
            Some(limit) if versions >= limit && memories >= 0 => return Err(Refusal::VersionLimit { limit }),
            _ => {}
        }
        Ok(Counters {
            sequence: sequence + 1,
            floor,
            memories: count.saturating_add_signed(memories),
            bytes: after,
            versions: versions + 1,
        })
    }

    fn version(&self, memory: &Memory, operation: Operation, sequence: u64) -> Version {
        let recorded = Recorded { content_sha256: memory.content_sha256, size_bytes: memory.size_bytes };
        Version {
            id: memory.version,
            store: self.store.id,
            memory: memory.id,
            sequence,
            operation,
            created_at: self.at,
            author: self.context.actor,
            path: Some(memory.path.clone()),
            recorded: (operation != Operation::Deleted).then_some(recorded),
            redaction: None,
        }
    }

    fn new_version_id(&self) -> VersionId {
        VersionId::mint(self.at, self.context.random[0])
    }

    /// Writes of a memory and the version that is now its head.
    fn head_writes(
        &self,
        head: Write,
        current: Current,
        operation: Operation,
        counters: Counters,
        content: NewContent,
    ) -> Decision {
        let version = self.version(&current.memory, operation, counters.sequence);
        let reason = self.context.reason.cloned();
        let new = NewVersion { version, summary: Some(current.summary.clone()), content, reason };
        Decision {
            writes: vec![
                head,
                Write::AppendVersion(Box::new(new)),
                Write::Counters { changed_at: self.at, counters },
            ],
            outcome: Outcome::Memory(Box::new(current)),
            sequence: counters.sequence,
        }
    }

    fn create(&self, path: &MemoryPath, summary: &Summary, content: &Content) -> Result<Decision, Refusal> {
        self.writable()?;
        self.path_is_free(path)?;
        self.memory_fits()?;
        let counters = self.counters(1, 0, content.size_bytes())?;
        let memory = Memory {
            id: MemoryId::mint(self.at, self.context.random[1]),
            store: self.store.id,
            path: path.clone(),
            version: self.new_version_id(),
            content_sha256: content.sha256(),
            size_bytes: content.size_bytes(),
            created_at: self.at,
            updated_at: self.at,
        };
        let current = Current { memory: memory.clone(), summary: summary.clone() };
        let content = NewContent::Text(content.clone());
        Ok(self.head_writes(Write::InsertMemory(memory), current, Operation::Created, counters, content))
    }

    fn update(
        &self,
        current: &Current,
        path: Option<&MemoryPath>,
        summary: Option<&Summary>,
        content: Option<&Content>,
        expected: Expected,
    ) -> Result<Decision, Refusal> {
        let old = &current.memory;
        let path = path.filter(|path| **path != old.path);
        let summary = summary.filter(|summary| **summary != current.summary);
        let content = content.filter(|content| content.sha256() != old.content_sha256);
        // A repeated success stays a success, even with a stale hash: spec/anthropic.md 3.5, step 3.
        if path.is_none() && summary.is_none() && content.is_none() {
            return Ok(self.nothing(Outcome::Memory(Box::new(current.clone()))));
        }
        if !expected.fits(old.content_sha256) {
            return Err(Refusal::ContentChanged { memory: old.id, actual: old.content_sha256 });
        }
        if let Some(path) = path {
            self.path_is_free(path)?;
        }
        let mut new = Current { memory: old.clone(), summary: summary.unwrap_or(&current.summary).clone() };
        new.memory.version = self.new_version_id();
        new.memory.updated_at = self.at;
        if let Some(path) = path {
            new.memory.path = path.clone();
        }
        if let Some(content) = content {
            new.memory.content_sha256 = content.sha256();
            new.memory.size_bytes = content.size_bytes();
        }
        let counters = self.counters(0, old.size_bytes, new.memory.size_bytes)?;
        let operation = match (summary, content) {
            (None, None) => Operation::Renamed,
            _ => Operation::Updated,
        };
        let content = match content {
            Some(content) => NewContent::Text(content.clone()),
            None => NewContent::CopyOf(old.version),
        };
        Ok(self.head_writes(Write::ReplaceMemory(new.memory.clone()), new, operation, counters, content))
    }

    fn delete(&self, old: &Memory, expected: Expected) -> Result<Decision, Refusal> {
        if !expected.fits(old.content_sha256) {
            return Err(Refusal::ContentChanged { memory: old.id, actual: old.content_sha256 });
        }
        let counters = self.counters(-1, old.size_bytes, 0)?;
        let gone = Memory { version: self.new_version_id(), ..old.clone() };
        let version = self.version(&gone, Operation::Deleted, counters.sequence);
        let reason = self.context.reason.cloned();
        let new = NewVersion { version, summary: None, content: NewContent::None, reason };
        Ok(Decision {
            writes: vec![
                Write::RemoveMemory(old.id),
                Write::AppendVersion(Box::new(new)),
                Write::Counters { changed_at: self.at, counters },
            ],
            outcome: Outcome::MemoryDeleted(old.id),
            sequence: counters.sequence,
        })
    }

    /// spec/recursion.md 7.4: over a live memory the path stays as it is now; a deleted one comes back under its
    /// id at the version's path. Always a version, also when the text is the same.
    fn restore(&self, id: VersionId) -> Result<Decision, Refusal> {
        let (version, summary) = self.situation.version.as_ref().ok_or(Refusal::VersionNotFound(id))?;
        let (Some(recorded), Some(summary), Some(path)) = (&version.recorded, summary, &version.path) else {
            return Err(Refusal::VersionNotRestorable(id));
        };
        let restored = Memory {
            id: version.memory,
            store: self.store.id,
            path: path.clone(),
            version: self.new_version_id(),
            content_sha256: recorded.content_sha256,
            size_bytes: recorded.size_bytes,
            created_at: self.at,
            updated_at: self.at,
        };
        let copy = NewContent::CopyOf(id);
        let Some(current) = &self.situation.memory else {
            self.path_is_free(path)?;
            self.memory_fits()?;
            let counters = self.counters(1, 0, recorded.size_bytes)?;
            let new = Current { memory: restored.clone(), summary: summary.clone() };
            return Ok(self.head_writes(
                Write::InsertMemory(restored),
                new,
                Operation::Recreated,
                counters,
                copy,
            ));
        };
        let memory =
            Memory { path: current.memory.path.clone(), created_at: current.memory.created_at, ..restored };
        let counters = self.counters(0, current.memory.size_bytes, recorded.size_bytes)?;
        let new = Current { memory: memory.clone(), summary: summary.clone() };
        Ok(self.head_writes(Write::ReplaceMemory(memory), new, Operation::Updated, counters, copy))
    }

    fn redact(&self, id: VersionId, path: RedactedPath) -> Result<Decision, Refusal> {
        let (version, _) = self.situation.version.as_ref().ok_or(Refusal::VersionNotFound(id))?;
        if self.situation.memory.as_ref().is_some_and(|current| current.memory.version == id) {
            return Err(Refusal::VersionIsHead(id));
        }
        let scrubs_path = path == RedactedPath::Scrub && version.path.is_some();
        if version.redaction.is_some() && !scrubs_path {
            return Ok(self.nothing(Outcome::Version(Box::new(version.clone()))));
        }
        // A second redaction that also scrubs the path keeps the first stamps.
        let redaction = version.redaction.unwrap_or(Redaction { at: self.at, by: self.context.actor });
        let mut redacted = version.clone();
        redacted.recorded = None;
        redacted.redaction = Some(redaction);
        if scrubs_path {
            redacted.path = None;
        }
        let mark = self.mark(MarkKind::Redacted { memory: version.memory, version: id });
        let counters = Counters { sequence: mark.sequence, ..self.store.counters };
        Ok(Decision {
            writes: vec![
                Write::Redact { version: id, redaction, path },
                Write::Mark(mark),
                Write::Counters { changed_at: self.at, counters },
            ],
            outcome: Outcome::Version(Box::new(redacted)),
            sequence: counters.sequence,
        })
    }
}

#[cfg(test)]
mod tests;
