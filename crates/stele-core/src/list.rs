//! What lists are asked for and where they go on: keysets, never offsets. DESIGN 3.11, spec/anthropic.md 1.6.

use crate::id::KeyId;
use crate::id::{AgentId, MemoryId, ServiceAccountId, SessionId, StoreId};
use crate::model::{Actor, Memory, Operation, Origin, Status};
use crate::path::PathPrefix;
use crate::text::Summary;
use crate::time::Timestamp;

use bytes::Bytes;

/// Inclusive bounds of a creation time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Created {
    /// Not before.
    pub from: Option<Timestamp>,
    /// Not after.
    pub to: Option<Timestamp>,
}

/// Which stores of a workspace are listed; newest first by (created_at, id).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreFilter {
    /// Archived ones too; says nothing where `status` is given.
    pub include_archived: bool,
    /// By creation time.
    pub created: Created,
    /// Only those of this status.
    pub status: Option<Status>,
    /// Only those of this origin.
    pub origin: Option<Origin>,
    /// Only those that belong to this agent.
    pub agent: Option<AgentId>,
}

impl StoreFilter {
    /// Whether stores of this status are listed.
    pub fn shows(&self, status: Status) -> bool {
        match self.status {
            Some(wanted) => wanted == status,
            None => status == Status::Active || self.include_archived,
        }
    }
}

/// Where a list of stores goes on: after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorePosition {
    /// Creation time of the last store shown.
    pub created_at: Timestamp,
    /// Its id.
    pub id: StoreId,
}

/// How deep a list of memories looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every memory below the prefix.
    All,
    /// Direct children; what lies deeper is rolled up into one entry a child directory.
    One,
}

/// How much of each memory a read brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// No texts.
    Basic,
    /// The summary; of a directory, how many memories lie beneath it.
    Summary,
    /// Summary and content.
    Full,
}

/// Which memories of a store are listed; ascending by the bytes of the path, directories at their own path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryQuery {
    /// Below this directory.
    pub prefix: PathPrefix,
    /// How deep.
    pub depth: Depth,
    /// How much of each.
    pub detail: Detail,
    /// After this path; of a directory, its path with the trailing slash.
    pub after: Option<String>,
    /// At most so many entries.
    pub limit: usize,
}

/// One entry of a list of memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryEntry {
    /// A memory, with as much of its text as was asked for.
    Memory {
        /// The memory.
        memory: Memory,
        /// Its summary, with `Detail::Summary` and `Full`.
        summary: Option<Summary>,
        /// Its content, with `Detail::Full`.
        content: Option<Bytes>,
    },
    /// A directory that memories lie in.
    Directory {
        /// Its path, ending in `/`.
        path: String,
        /// The memories beneath it at all depths, with `Detail::Summary`.
        count: Option<u64>,
    },
}

impl MemoryEntry {
    /// Its path, behind which the list goes on.
    pub fn path(&self) -> &str {
        match self {
            Self::Memory { memory, .. } => memory.path.as_str(),
            Self::Directory { path, .. } => path,
        }
    }
}

/// Which versions of a store are listed; newest first by sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionFilter {
    /// Of this memory.
    pub memory: Option<MemoryId>,
    /// With one of these operations; empty: all.
    pub operations: Vec<Operation>,
    /// By these authors, all at once: naming two different ones finds nothing.
    pub authors: Vec<Actor>,
    /// By creation time.
    pub created: Created,
}

impl VersionFilter {
    /// Only what the session wrote.
    pub fn by_session(&mut self, id: SessionId) {
        self.authors.push(Actor::Session(id));
    }

    /// Only what the key wrote.
    pub fn by_key(&mut self, id: KeyId) {
        self.authors.push(Actor::ApiKey(id));
    }

    /// Only what the service account wrote.
    pub fn by_service_account(&mut self, id: ServiceAccountId) {
        self.authors.push(Actor::ServiceAccount(id));
    }
}

/// Which versions are listed, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionQuery {
    /// Which.
    pub filter: VersionFilter,
    /// With their content.
    pub full: bool,
    /// Below this sequence.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether there is at least one more.
    pub more: bool,
}

impl<T> Page<T> {
    /// The page of at most `limit` items out of `items`, which holds one more if there is one.
    pub fn cut(mut items: Vec<T>, limit: usize) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        Self { items, more }
    }
}
